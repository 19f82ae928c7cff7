#include "sim/tuning/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/table.hpp"
#include "sim/tuning/regret.hpp"
#include "sim/tuning/segments.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr double kWorthSaying = 1;  // percent

std::string plan_text(const Json& tried) {
  std::string text = tried["algorithm"];
  if (tried["protocol"].is_string()) text += " " + tried["protocol"].get<std::string>();
  if (const auto chunks = tried["chunks"].get<std::uint64_t>(); chunks > 1)
    text += fmt::format(" {}/{}", chunks, tried["channels"].get<std::uint64_t>());
  return text;
}

// The winners of one collective: a line for each size, a column for each number of ranks.
std::string winners(const std::vector<const Json*>& cells) {
  std::map<std::uint64_t, std::map<std::uint64_t, std::string>> rows;
  std::map<std::uint64_t, std::size_t> width;
  for (const Json* c : cells) {
    if ((*c)["tried"].empty()) continue;
    const auto ranks = (*c)["ranks"].get<std::uint64_t>();
    std::string text = plan_text((*c)["tried"][0]);
    width[ranks] = std::max({width[ranks], text.size(), std::size_t(8)});
    rows[(*c)["bytes"].get<std::uint64_t>()][ranks] = std::move(text);
  }
  std::string text = fmt::format("  {:<12}", "bytes");
  for (const auto& [ranks, w] : width) text += fmt::format("  {:<{}}", counted(ranks, "rank"), w);
  text += '\n';
  for (auto& [bytes, row] : rows) {
    std::string line = fmt::format("  {:<12}", json::format_bytes(bytes));
    for (const auto& [ranks, w] : width) line += fmt::format("  {:<{}}", row[ranks], w);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string regret_line(std::string_view who, const Json& r) {
  if (r.is_null()) return fmt::format("  {:<18} nothing to compare\n", who);
  return fmt::format(
      "  {:<18} mean {} %, 95th percentile {} %, worst {} % ({}); the best at {} of {}{}\n", who,
      format_number(r["mean_percent"]), format_number(r["p95_percent"]), format_number(r["worst_percent"]),
      place_text(r["worst_at"]), r["best_chosen"].get<std::size_t>(), r["cells"].get<std::size_t>(),
      r["not_simulated"].get<std::size_t>() ? fmt::format("; {} not simulated", r["not_simulated"].get<std::size_t>())
                                            : "");
}

// How often the table that is checked decides.
std::string entries_line(const Json& document) {
  std::size_t of = 0, decides = 0;
  for (const Json& cell : document["cells"]) {
    if (cell["bisection"].get<bool>()) continue;
    ++of, decides += cell["table"]["entry"].get<bool>();
  }
  return decides == of
             ? ""
             : fmt::format("  {:<18} has entries for {} of {}; elsewhere the planner decides\n", "", decides, of);
}

// Of the plans of this one's algorithm and protocol that which the planner would take; of equal predictions the
// fastest.
const Json& as_planned(const Json& cell, const Json& plan) {
  const auto predicted_us = [](const Json& t) {
    return t["predicted_us"].is_number() ? t["predicted_us"].get<double>() : HUGE_VAL;
  };
  const Json* least = nullptr;
  for (const Json& t : cell["tried"])
    if (alike(t, plan, {"algorithm", "protocol"}) && (!least || predicted_us(t) < predicted_us(*least))) least = &t;
  return *least;
}

}  // namespace

Json improvements(const Json& document, const std::string& whose, const Exporting& how, std::size_t most) {
  const auto library = whose == "nccl"      ? std::optional(Library::nccl)
                       : whose == "openmpi" ? std::optional(Library::openmpi)
                                            : std::nullopt;
  std::vector<Json> all;
  for (const Json& cell : document["cells"]) {
    if (std::isnan(regret_percent(cell, whose))) continue;
    const Json& at = cell[whose].is_object() ? cell[whose]["tried"] : cell[whose];
    const Json* now = &cell["tried"][at.get<std::size_t>()];
    const Json* better = library ? exported(cell, *library, how) : fastest(cell, library);
    if (!better) continue;
    if (library == Library::nccl) now = &as_planned(cell, *now), better = &as_planned(cell, *better);
    const double now_us = (*now)["time_us"], better_us = (*better)["time_us"];
    const double percent = better_us > 0 ? (now_us / better_us - 1) * 100 : 0;
    if (percent < kWorthSaying) continue;
    all.push_back({{"at", place_text(cell)},
                   {"now", plan_text(*now)},
                   {"now_us", now_us},
                   {"best", plan_text(*better)},
                   {"best_us", better_us},
                   {"percent", percent}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Json& a, const Json& b) {
    return a["percent"].get<double>() > b["percent"].get<double>();
  });
  if (all.size() > most) all.resize(most);
  return all;
}

std::string cluster_text(const Json& d) {
  const Json& cluster = d["cluster"];
  std::string text = cluster["name"];
  if (cluster.contains("parameters"))
    text += ", with " + std::filesystem::path(cluster["parameters"].get<std::string>()).stem().string();
  return text;
}

std::string tuning_text(Json d) {
  json::replace_control(d);
  std::map<std::string, std::vector<const Json*>> by_collective;
  for (const Json& c : d["cells"]) by_collective[c["collective"]].push_back(&c);
  std::string text = fmt::format("{} ({} engine, {})\n", cluster_text(d), d["engine"].get<std::string>(),
                                 d["dtype"].get<std::string>());
  if (const std::size_t failed = d["failed"].size(); failed > 0)
    text += fmt::format("{} failed, and {} left out\n", counted(failed, "place"), failed == 1 ? "is" : "are");
  else if (!d["complete"].get<bool>())
    text += "interrupted: what follows was found until then\n";
  for (const auto& [kind, cells] : by_collective)
    text += fmt::format("\n{}: the fastest (chunks/channels)\n{}", kind, winners(cells));
  text += "\nlonger than the fastest, at the sizes asked for\n" + regret_line("GCCL's planner", d["regret"]) +
          regret_line("NCCL's rules", d["others"]["nccl"]) + regret_line("Open MPI's rules", d["others"]["openmpi"]);
  if (d["others"].contains("table")) text += regret_line("the table", d["others"]["table"]) + entries_line(d);
  const Json better = improvements(d, "planner", Operations::any, 8);
  if (!better.empty()) text += "\nwhat a table would change, at these sizes and where winners change\n";
  for (const Json& b : better)
    text += fmt::format("  {}: {} ({}) instead of {} ({}): {} % longer now\n", b["at"].get<std::string>(),
                        b["best"].get<std::string>(), format_time(b["best_us"]), b["now"].get<std::string>(),
                        format_time(b["now_us"]), format_number(b["percent"]));
  const Json& out = d["left_out"];
  text += fmt::format(
      "\n{} simulations; left out: {} whose bound is above the best, {} by prediction (--margin), {} too much work "
      "(--steps)\n",
      d["simulated"].get<std::size_t>(), out["bound"].get<std::size_t>(), out["prediction"].get<std::size_t>(),
      out["work"].get<std::size_t>());
  return text;
}

}  // namespace gccl::sim
