// docs/cost-models.md: its formulas are what the closed forms are on a machine of one latency and one bandwidth.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "libgccl/algorithms/table.hpp"
#include "libgccl/schedule/layout.hpp"
#include "tests/algorithms/formula.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::test;

namespace closed_form_page {

// A line of the table: | `collective` `algorithm` | a | b | c | d | source |
struct Row {
  std::string collective, algorithm;
  std::array<std::string, 4> factors;  // of alpha, beta, gamma and delta
  std::string source;
};

std::string trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

std::vector<Row> rows() {
  std::vector<Row> rows;
  std::istringstream page(read_text(kRoot / "docs/cost-models.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream rest(line.substr(1));
    for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(trimmed(cell));
    REQUIRE_MESSAGE(cells.size() == 6, line);
    std::istringstream names(cells[0]);
    Row row;
    names >> row.collective >> row.algorithm;
    for (std::string* name : {&row.collective, &row.algorithm}) std::erase(*name, '`');
    std::copy_n(cells.begin() + 1, 4, row.factors.begin());
    row.source = cells[5];
    rows.push_back(std::move(row));
  }
  return rows;
}

const Algorithm& algorithm_of(const Row& row) {
  const auto all = algorithms();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Algorithm& a) {
    return name(a.kind) == row.collective && a.name == row.algorithm;
  });
  REQUIRE_MESSAGE(at != all.end(), row.collective, " ", row.algorithm);
  return *at;
}

// Where it names g or k it speaks of nodes; `hierarchical` is another algorithm there; else of ranks alone.
bool of_nodes(const Row& row) {
  return row.algorithm == "hierarchical" || std::ranges::any_of(row.factors, [](const std::string& f) {
           for (std::size_t i = 0; i < f.size(); ++i)
             if ((f[i] == 'g' || f[i] == 'k') && (i == 0 || f[i - 1] != 'o')) return true;  // of "log2"
           return false;
         });
}

void check(const Row& row, Rank n, Rank per_node, std::array<double, 4>& closest) {
  const Algorithm& a = algorithm_of(row);
  // Long enough that `pat` aggregates nothing, and every part of a part has a whole number of elements.
  const Count block = 64 * 720720, length = a.kind == Collective::barrier ? 0
                                            : counts_blocks(a.kind)       ? block
                                                                          : n * block;
  const Call call{.kind = a.kind, .count = length};
  const Layout layout = Layout::regular(n, per_node);
  const View v = layout.view(0);
  if (!a.can(call, v)) return;
  CAPTURE(row.collective);
  CAPTURE(row.algorithm);
  CAPTURE(n);
  CAPTURE(per_node);
  const auto taken = [&](double alpha, double beta, double gamma, double delta) {
    CostModel m = CostModel::bare(alpha, beta, 1);
    m.combine_ns_per_byte = gamma;
    m.copy_ns_per_byte = delta;
    return a.cost(call, v, m);
  };
  const std::map<char, double> variables = {
      {'n', n},
      {'g', per_node},
      {'k', n / per_node},
      {'x', v.columns},
      {'y', n / v.columns},
      {'p', std::bit_floor(n)},
      {'b', double(block)},
      {'V', double(n) * double(block)},
  };
  const std::array<Cost, 4> found = {taken(1, 0, 0, 0), taken(0, 1, 0, 0), taken(0, 0, 1, 0), taken(0, 0, 0, 1)};
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(row.factors[i]);
    const Stated due = stated(row.factors[i], variables);
    if (due.value > 0) closest[i] = std::max(closest[i], found[i] / due.value);
    if (due.bound)
      CHECK(found[i] <= due.value * (1 + 1e-9));
    else
      CHECK(found[i] == doctest::Approx(due.value).epsilon(1e-9));
  }
  // All at once, a message's latency as long as a block's bytes.
  const double latency = double(block);
  const Cost all = taken(latency, 1, 1, 1);
  CHECK(all <= (latency * found[0] + found[1] + found[2] + found[3]) * (1 + 1e-9));
  CHECK(all >= std::max({latency * found[0], found[1], found[2], found[3]}) * (1 - 1e-9));
}

TEST_CASE("the formulas of docs/cost-models.md are the closed forms on a plain machine") {
  const std::vector<Row> page = rows();
  for (const Row& row : page) {
    CAPTURE(row.collective);
    CAPTURE(row.algorithm);
    CHECK(row.source == algorithm_of(row).source);
    std::array<double, 4> closest{};  // how near a bound comes to what it bounds, anywhere
    for (Rank n = 2; n <= 40; ++n) check(row, n, n, closest);
    for (const Rank n : {64u, 100u}) check(row, n, n, closest);
    if (of_nodes(row))
      for (const Rank per_node : {1u, 2u, 3u, 4u, 7u, 8u})
        for (Rank nodes = 2; nodes <= 9; ++nodes) check(row, nodes * per_node, per_node, closest);
    for (std::size_t i = 0; i < closest.size(); ++i)
      if (row.factors[i] != "0") CHECK(closest[i] > 0.8);
  }
}

TEST_CASE("docs/cost-models.md has every closed form, once") {
  std::multiset<std::string> listed, due;
  for (const Row& row : rows()) listed.insert(row.collective + " " + row.algorithm);
  for (const Algorithm& a : algorithms())
    if (a.cost && !a.variant && !has_counts(a.kind)) due.insert(std::string(name(a.kind)) + " " + std::string(a.name));
  CHECK(listed == due);
}

}  // namespace closed_form_page
