#include "sim/measured/validation/outliers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gccl::sim {
namespace {

struct CurvePoint {
  double x, time;
  std::size_t row;
};
using Curve = std::vector<CurvePoint>;

// How many times what is expected a point took: 1 where it took what may be.
double times_expected(const Curve& curve, std::size_t i) {
  const CurvePoint& p = curve[i];
  double least = 0, most = 0;
  if (i == 0 || i + 1 == curve.size()) {
    const CurvePoint& beside = i == 0 ? curve[1] : curve[i - 1];
    const double scaled = beside.time * p.x / beside.x;
    least = std::min(beside.time, scaled), most = std::max(beside.time, scaled);
  } else {
    const CurvePoint &before = curve[i - 1], &after = curve[i + 1];
    const double part = std::log(p.x / before.x) / std::log(after.x / before.x);
    most = before.time * std::pow(after.time / before.time, part);
    // A latency and a bandwidth, a + b x, lie below that line, and far below it where sizes are far apart.
    least = std::min(most, std::max(before.time, after.time * p.x / after.x));
  }
  return p.time > most ? p.time / most : p.time < least ? p.time / least : 1;
}

// Above 1: beyond what is taken for noise.
double oddity(double times) { return times >= 1 ? times / kSlowFactor : 1 / times / kFastFactor; }

// Calls judged(row, times) for each point of a curve of three or more: how many times what is expected an outlier took,
// 1 for the others.
template <class F>
void judge_curve(Curve curve, F judged) {
  std::sort(curve.begin(), curve.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  if (curve.size() < 3) return;
  std::vector<double> odd;
  for (std::size_t i = 0; i < curve.size(); ++i) odd.push_back(oddity(times_expected(curve, i)));
  while (curve.size() > 2) {
    const auto worst = std::max_element(odd.begin(), odd.end()) - odd.begin();
    if (odd[std::size_t(worst)] <= 1) break;
    judged(curve[std::size_t(worst)].row, times_expected(curve, std::size_t(worst)));
    curve.erase(curve.begin() + worst);
    odd.erase(odd.begin() + worst);
    // Only the two beside it have another neighbour now, or none.
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(worst - 1, 0); i <= worst && i < std::ssize(curve); ++i)
      odd[std::size_t(i)] = oddity(times_expected(curve, std::size_t(i)));
  }
  for (const CurvePoint& p : curve) judged(p.row, 1.0);
}

// Curves of rows with the same key; where a size comes several times, the k-th of each size are one curve.
template <class Key>
class Curves {
 public:
  void add(Key key, const CurvePoint& p) {
    auto& [runs, times] = runs_[std::move(key)];
    const std::size_t run = times[p.x]++;
    if (run == runs.size()) runs.emplace_back();
    runs[run].push_back(p);
  }
  template <class F>
  void judge(F judged) const {
    for (const auto& [key, of_key] : runs_)
      for (const Curve& run : of_key.runs) judge_curve(run, judged);
  }

 private:
  struct Runs {
    std::vector<Curve> runs;
    std::map<double, std::size_t> times;  // how often each size has come
  };
  std::map<Key, Runs> runs_;
};

}  // namespace

std::string kind_of_note(const std::string& note) {
  std::string out;
  for (std::size_t i = 0; i < note.size(); ++i) {
    const auto digit = [&](std::size_t k) {
      return k < note.size() && std::isdigit(static_cast<unsigned char>(note[k]));
    };
    const bool inside_word = i > 0 && std::isalpha(static_cast<unsigned char>(note[i - 1])) && note[i - 1] != 'e';
    if (!digit(i) || inside_word) {
      out += note[i];
      continue;
    }
    while (i + 1 < note.size() &&
           (digit(i + 1) || std::string_view(".eE+-").find(note[i + 1]) != std::string_view::npos))
      ++i;
    out += '#';
  }
  return out;
}

std::vector<std::string> outliers_of(const std::vector<Measurement>& rows) {
  // Of all sizes and numbers of nodes.
  const auto family_of = [](const Measurement& m) {
    return std::tuple(m.at.file, m.system, m.cards, m.kind, m.algorithm, m.protocol, kind_of_note(m.note));
  };
  using Family = decltype(family_of(std::declval<Measurement>()));
  Curves<std::tuple<Family, Rank, std::string, std::size_t>> by_size;
  Curves<std::pair<Family, Count>> by_nodes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Measurement& m = rows[i];
    const Family family = family_of(m);
    if (m.bytes > 0) by_size.add({family, m.nodes, m.source, m.test}, {double(m.bytes), m.time_us, i});
    if (m.nodes > 1) by_nodes.add({family, m.bytes}, {double(m.nodes), m.time_us, i});
  }
  std::vector<std::string> why(rows.size());
  const auto say = [&](std::size_t row, double times, std::string_view beside) {
    if (times != 1 && why[row].empty())
      why[row] = fmt::format("{} times what the {} beside it suggest",
                             times < 99.5 ? fmt::format("{:.2g}", times) : fmt::format("{:.0f}", times), beside);
  };
  by_size.judge([&](std::size_t row, double times) { say(row, times, "sizes"); });
  // Where most sizes of a number of nodes are odd, that is how the system is with so many.
  struct Scale {
    std::vector<std::pair<std::size_t, double>> judged;
    std::size_t odd = 0;
  };
  std::map<std::pair<Family, Rank>, Scale> scales;
  by_nodes.judge([&](std::size_t row, double times) {
    Scale& scale = scales[{family_of(rows[row]), rows[row].nodes}];
    scale.judged.emplace_back(row, times);
    scale.odd += times != 1;
  });
  for (const auto& [key, scale] : scales)
    if (2 * scale.odd < scale.judged.size() + 1)  // of each one's others fewer than half are odd
      for (const auto& [row, times] : scale.judged) say(row, times, "numbers of nodes");
  return why;
}

}  // namespace gccl::sim
