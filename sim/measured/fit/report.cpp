// What a fit leaves: a parameter set, and a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/base/counted.hpp"
#include "sim/measured/fit/fit.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

Json link_json(const LinkKind& kind) {
  Json link = {{"bandwidth_GBps", rounded(kind.forward.bandwidth_GBps)}, {"latency_ns", kind.forward.latency_ns}};
  if (kind.reverse.bandwidth_GBps != kind.forward.bandwidth_GBps)
    link["reverse_bandwidth_GBps"] = rounded(kind.reverse.bandwidth_GBps);
  if (kind.reverse.latency_ns != kind.forward.latency_ns) link["reverse_latency_ns"] = kind.reverse.latency_ns;
  return link;
}

Json protocol_json(const Protocol& p) {
  const auto way = [](const Protocol::Way& w) {
    return Json{{"latency_ns", w.latency_ns}, {"efficiency", rounded(w.efficiency)}};
  };
  Json protocol = {{"operation_ns", p.operation_ns}, {"inside", way(p.inside)}, {"network", way(p.network)}};
  if (p.channel_GBps > 0) protocol["channel_GBps"] = rounded(p.channel_GBps);
  if (p.combine_GBps > 0) protocol["combine_GBps"] = rounded(p.combine_GBps);
  if (p.channels_max != Protocol{}.channels_max) protocol["channels_max"] = p.channels_max;
  if (p.bytes_max != Protocol{}.bytes_max) protocol["bytes_max"] = p.bytes_max;
  if (!p.in_switch) protocol["in_switch"] = false;
  if (!p.between_nodes) protocol["network"] = false;
  return protocol;
}

Json correction_json(const Correction& c, const std::string& source) {
  Json correction = {{"collective", name(c.of.kind)},
                     {"nodes", c.of.nodes},
                     {"cards_per_node", c.of.cards_per_node},
                     {"bytes", c.bytes},
                     {"source", source}};
  if (!c.of.algorithm.empty()) correction["algorithm"] = c.of.algorithm;
  if (!c.of.protocol.empty()) correction["protocol"] = c.of.protocol;
  if (c.more_nodes) correction["more_nodes"] = true;
  for (const double ns : c.extra_ns) correction["extra_us"].push_back(rounded(ns / 1e3) + 0.0);  // no -0.0
  return correction;
}

bool same(const LinkKind& a, const LinkKind& b) { return link_json(a) == link_json(b); }

void add_errors(std::vector<std::vector<std::string>>& lines, const FitReport::Errors& e) {
  const auto percent = [](double v) { return fmt::format("{:.1f} %", v); };
  lines.push_back({e.what, std::to_string(e.after.points), percent(e.before.mape), percent(e.after.mape),
                   percent(e.before.median), percent(e.after.median), percent(e.before.p90), percent(e.after.p90)});
}

// By a difference that the tables show.
bool errs_more(const FitReport::Errors& e) { return e.after.mape - e.before.mape >= 0.1; }

std::vector<std::string> error_head(std::string what) {
  return {std::move(what), "points", "MAPE was", "is", "median was", "is", "p90 was", "is"};
}

}  // namespace

Json parameter_set(const std::string& name, const std::string& description, const Json& base, const Parameters& before,
                   const Parameters& after, const std::string& source) {
  Json set = base;
  set["schema"] = "gccl/parameters/1";
  set["name"] = name;
  set["description"] = description;
  Json card = base.value("card", Json::object());
  bool other = false;
  const auto add = [&](const char* key, auto was, auto is) {
    if (was == is) return;
    card[key] = is;
    other = true;
  };
  add("overhead_ns", before.card.overhead_ns, after.card.overhead_ns);
  add("receive_overhead_ns", before.card.receive_overhead_ns, after.card.receive_overhead_ns);
  add("combine_GBps", rounded(before.card.combine_GBps), rounded(after.card.combine_GBps));
  add("copy_GBps", rounded(before.card.copy_GBps), rounded(after.card.copy_GBps));
  if (other) {
    card["source"] = source;
    set["card"] = std::move(card);
  }
  if (after.mpi && after.mpi->fresh_GBps != before.mpi->fresh_GBps) {
    set["mpi"]["fresh_GBps"] = rounded(after.mpi->fresh_GBps);
    set["mpi"]["source"] = source;
  }
  Json links = base.value("links", Json::object());
  for (const auto& [link, kind] : after.links) {
    const auto was = before.links.find(link);
    if (was != before.links.end() && same(was->second, kind)) continue;
    links[link] = link_json(kind);
    links[link]["source"] = source;
  }
  if (!links.empty()) set["links"] = std::move(links);
  Json protocols = base.value("protocols", Json::object());
  for (const Protocol& p : after.protocols) {
    if (p.name.empty()) continue;
    const auto was = std::find_if(before.protocols.begin(), before.protocols.end(),
                                  [&](const Protocol& q) { return q.name == p.name; });
    if (was != before.protocols.end() && protocol_json(*was) == protocol_json(p)) continue;
    protocols[p.name] = protocol_json(p);
    protocols[p.name]["source"] = source;
  }
  if (!protocols.empty()) set["protocols"] = std::move(protocols);
  if (!after.corrections.empty() || !before.corrections.empty()) {
    set["corrections"] = Json::array();
    for (const Correction& c : after.corrections) set["corrections"].push_back(correction_json(c, source));
  }
  return set;
}

std::string fit_text(const FitReport& r, std::size_t columns) {
  std::vector<std::vector<std::string>> lines{{"parameter", "was", "is", ""}};
  for (const FitReport::Value& v : r.fitted)
    lines.push_back({v.name, fmt::format("{:.5g}", v.before), fmt::format("{:.5g}", v.after),
                     v.at_limit ? "as far as it may" : ""});
  std::string text = aligned(lines, columns) + '\n';
  lines = {error_head("fitted")};
  for (const FitReport::Errors& e : r.used) add_errors(lines, e);
  if (r.used.size() > 1) add_errors(lines, {"all", r.all_used.before, r.all_used.after});
  text += aligned(lines, columns) + '\n';
  if (!r.held_out.empty()) {
    lines = {error_head("held out")};
    for (const FitReport::Errors& e : r.held_out) add_errors(lines, e);
    if (r.held_out.size() > 1) add_errors(lines, {"all", r.all_held_out.before, r.all_held_out.after});
    text += aligned(lines, columns) + '\n';
    if (errs_more(r.all_held_out))
      text += fmt::format(
          "On what was held out the fitted set errs more than the one it began with: by {:.1f} % in the mean, not "
          "{:.1f} %.\n\n",
          r.all_held_out.after.mape, r.all_held_out.before.mape);
  }
  if (!r.left_out.empty()) {
    lines = {error_head("by a fit to the others")};
    for (const FitReport::Errors& e : r.left_out) add_errors(lines, e);
    text += aligned(lines, columns) + '\n';
    if (const auto worse = std::ranges::count_if(r.left_out, errs_more); worse > 0)
      text += fmt::format("{} of {} by a fit to the others worse than by the set that it began with.\n\n", worse,
                          counted(r.left_out.size(), "scale") + (worse == 1 ? " is predicted" : " are predicted"));
  } else {
    text += "All points are of one scale: nothing says how far these parameters hold on others.\n";
  }
  if (const CorrectionReport& c = r.corrections; c.curves > 0)
    text += c.corrected == 0
                ? fmt::format(
                      "No corrections by size: on no curve each size by the others' corrections errs by less "
                      "than {} times as much as without them.\n",
                      kCorrectedMargin)
                : fmt::format(
                      "{} of {} corrected by size: each size by the others' corrections, over gaps twice as "
                      "wide as those that are left, errs by {:.1f} % in the mean, without them by {:.1f} %.\n",
                      c.corrected, counted(c.curves, "curve"), c.with_percent, c.without_percent);
  if (const CorrectionReport& c = r.corrections; c.at_floor > 0)
    text += fmt::format(
        "At {} of their {} the prediction stays too slow: a correction takes away no more than the fixed cost of a "
        "call.\n",
        c.at_floor, counted(c.sizes, "size"));
  if (const CorrectionReport& c = r.corrections; c.more_nodes > 0)
    text += fmt::format(
        "{} correction{} for more nodes, too: fewer nodes' corrections leave {:.1f} % of error on the next, without "
        "them it is {:.1f} %.\n",
        c.more_nodes, c.more_nodes == 1 ? " holds" : "s hold", c.next_with_percent, c.next_without_percent);
  if (!r.undetermined.empty())
    text += fmt::format("No point depends on {}: left as they were.\n", fmt::join(r.undetermined, ", "));
  if (r.by_transports)
    text +=
        "The set has \"backends\", so closed forms go by its \"transports\" and not by cards and links: gccl calibrate "
        "measures those, and they are not fitted.\n";
  if (r.outliers)
    text += fmt::format("{} {} not fitted.\n", counted(r.outliers, "outlier"), r.outliers == 1 ? "was" : "were");
  if (r.held_out_outliers)
    text += fmt::format("Of what is held out {} {} not compared.\n", counted(r.held_out_outliers, "outlier"),
                        r.held_out_outliers == 1 ? "was" : "were");
  if (r.outliers + r.held_out_outliers) text += "gccl validate names the outliers among all rows.\n";
  return text;
}

}  // namespace gccl::sim
