// What a calibration found, for people and for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/calibration/calibration.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Ordered = nlohmann::ordered_json;
using Cells = std::vector<std::vector<std::string>>;

// What is worth a sentence.
constexpr double kFarOff = 0.25, kNoisy = 0.2, kOtherPair = 1.25, kManyOutliers = 0.05;

std::string time_text(double ns) { return format_time(ns / 1e3); }
std::string size_text(double bytes) { return json::format_bytes(std::uint64_t(bytes)); }
std::string percent(double share) { return fmt::format("{:+.1f}", 100 * share); }
double off(double fitted, const Estimate& median) { return fitted / median.value - 1; }

std::string table_of(const std::string& title, const CurveFit& f, std::size_t columns) {
  const bool pieces = f.pieces.last_below.has_value();
  Cells table{{"size", "median", "95 % from", "to", "> 2x %", "one line", "off %"}};
  if (pieces) table[0].insert(table[0].end(), {"two lines", "off %"});
  for (const CurveFit::Row& r : f.rows) {
    table.push_back({size_text(r.amount), time_text(r.median_ns.value), time_text(r.median_ns.least),
                     time_text(r.median_ns.most), fmt::format("{:.0f}", 100 * r.outliers), time_text(r.line_ns),
                     percent(off(r.line_ns, r.median_ns))});
    if (pieces)
      table.back().insert(table.back().end(), {time_text(r.pieces_ns), percent(off(r.pieces_ns, r.median_ns))});
  }
  return fmt::format("\n{}\n{}", title, aligned(table, columns));
}

// Peers, the time of a call of 8 bytes and the rate of long messages.
std::string fan_table(const PairClass& c, std::size_t columns) {
  const std::string size = size_text(c.long_bytes);
  Cells table{{"peers", "to them, 8 B", "from them, 8 B", size + " to them GB/s", size + " from them GB/s"}};
  for (std::size_t i = 0; i < c.fan_out.amounts.size(); ++i) {
    const double peers = c.fan_out.amounts[i];
    const auto rate = [&](const Curve& curve) {
      return curve.empty() ? "-" : fmt::format("{:.4g}", peers * c.long_bytes / median_of(curve.ns[i]).value);
    };
    table.push_back({fmt::format("{}", peers), time_text(median_of(c.fan_out.ns[i]).value),
                     time_text(median_of(c.fan_in.ns[i]).value), rate(c.fan_out_long), rate(c.fan_in_long)});
  }
  return "\none to many and many to one, from one call to the next\n" + aligned(table, columns);
}

struct Parameter {
  std::string name;
  Estimate found;
  std::optional<double> compiled;  // what the model that is compiled in has
  std::string note;
};

std::vector<Parameter> parameters_of(const Calibration& c, const CalibrationFit& fit) {
  std::vector<Parameter> all;
  for (const Replaced& r : replaced_models(c, fit)) {
    const CostModel& now = transport_model(r.model).costs;
    const auto hop = [&](const char* name, const CurveFit& f, const Hop& compiled) {
      all.push_back({fmt::format("{}/{}/alpha_ns", r.model, name), f.fixed_ns, compiled.alpha_ns, ""});
      all.push_back({fmt::format("{}/{}/ns_per_byte", r.model, name), f.ns_each, compiled.beta_ns_per_byte, ""});
    };
    if (r.node == r.net) {  // all ranks on one node: there is one kind of hop
      hop("node", r.net->ping_pong, now.node);
    } else {
      if (r.node) hop("node", r.node->ping_pong, now.node);
      hop("net", r.net->ping_pong, now.net);
      if (r.net->at_once) hop("net_all", *r.net->at_once, now.net_all);
    }
    all.push_back({r.model + "/overhead_ns", r.net->overhead_ns, now.overhead_ns,
                   r.net->overhead_known ? "" : "at most: one peer does not show more"});
    if (r.net->overhead_known) all.push_back({r.model + " receiver's overhead ns", r.net->receive_overhead_ns, {}, ""});
  }
  const CostModel& memory = transport_model("shared-memory").costs;
  all.push_back({"combine_ns_per_byte", fit.combine.ns_each, memory.combine_ns_per_byte,
                 fmt::format("{:.3g} GB/s", 1 / fit.combine.line.ns_each)});
  all.push_back({"copy_ns_per_byte", fit.copy.ns_each, memory.copy_ns_per_byte,
                 fmt::format("{:.3g} GB/s", 1 / fit.copy.line.ns_each)});
  return all;
}

std::string parameter_table(const Calibration& c, const CalibrationFit& fit, std::size_t columns) {
  Cells table{{"parameter", "found", "95 % from", "to", "compiled in", ""}};
  for (const Parameter& p : parameters_of(c, fit))
    table.push_back({p.name, fmt::format("{:.4g}", p.found.value), fmt::format("{:.4g}", p.found.least),
                     fmt::format("{:.4g}", p.found.most), p.compiled ? fmt::format("{:.4g}", *p.compiled) : "-",
                     p.note});
  return "\nparameters\n" + aligned(table, columns);
}

std::string line_words(const Line& l) {
  return fmt::format("{} and {:.3g} ns for each byte", time_text(l.fixed_ns), l.ns_each);
}

void add_remarks(const std::string& what, const CurveFit& f, std::vector<std::string>& all) {
  if (f.pieces.last_below)
    all.push_back(
        fmt::format("{}: up to {} {}, beyond it {}. Planner and links have one line for all sizes, which is "
                    "off by {:.0f} % in the mean instead of {:.0f} %.",
                    what, size_text(*f.pieces.last_below), line_words(f.pieces.below), line_words(f.pieces.above),
                    100 * f.line_error, 100 * f.pieces_error));
  std::string far;
  std::size_t noisy = 0;
  double outliers = 0;
  for (const CurveFit::Row& r : f.rows) {
    if (const double e = off(r.line_ns, r.median_ns); std::abs(e) > kFarOff)
      far += fmt::format("{}{} ({} %)", far.empty() ? "" : ", ", size_text(r.amount), percent(e));
    noisy += r.median_ns.most - r.median_ns.least > kNoisy * r.median_ns.value;
    outliers += r.outliers / double(f.rows.size());
  }
  if (!far.empty()) all.push_back(fmt::format("{}: the one line does not fit {}.", what, far));
  if (noisy > 0)
    all.push_back(
        fmt::format("{}: {} of {} medians are known to no better than {:.0f} %: measure longer (--seconds), or "
                    "on a machine with less other load.",
                    what, noisy, f.rows.size(), 100 * kNoisy));
  if (outliers > kManyOutliers)
    all.push_back(
        fmt::format("{}: {:.0f} % of the samples took more than twice as long as the median.", what, 100 * outliers));
}

// A difference of two times that is not positive counts as 1 ns.
bool tells_no_overhead(const Curve& curve) {
  return !curve.empty() && std::ranges::any_of(curve.ns, [](const auto& ns) { return median_of(ns).value <= 1; });
}

// On which card of the cluster each rank is: those of a node are consecutive.
std::vector<Rank> cards_of(const Calibration& c) {
  std::vector<Rank> by_node(c.ranks()), card(c.ranks());
  std::iota(by_node.begin(), by_node.end(), Rank(0));
  std::ranges::stable_sort(by_node, {}, [&](Rank r) { return c.node[r]; });
  for (Rank i = 0; i < c.ranks(); ++i) card[by_node[i]] = i;
  return card;
}

std::vector<std::string> remarks_of(const Calibration& c, const CalibrationFit& fit) {
  std::vector<std::string> all;
  const auto add_class = [&](const char* what, const PairClass& p, const ClassFit& f) {
    add_remarks(what, f.ping_pong, all);
    if (f.at_once) add_remarks(std::string(what) + ", all at once", *f.at_once, all);
    if (tells_no_overhead(p.fan_out) || tells_no_overhead(p.fan_in))
      all.push_back(
          fmt::format("{}: more calls one after the other took no longer than fewer, so the overheads are too small: "
                      "measure longer (--seconds), or on a machine with less other load.",
                      what));
    for (const PairClass::Other& o : p.others)
      for (std::size_t i = 0; i < o.ratio.size(); ++i)
        if (o.ratio[i] > kOtherPair || o.ratio[i] * kOtherPair < 1)
          all.push_back(
              fmt::format("{}: ranks {} and {} take {:.2f} times as long as ranks {} and {} at {}, whose times "
                          "stand for all.",
                          what, o.a, o.b, o.ratio[i], p.a, p.b, size_text(o.bytes[i])));
  };
  if (fit.inside) add_class("inside a node", *c.inside, *fit.inside);
  if (fit.between) add_class("between nodes", *c.between, *fit.between);
  if (!std::ranges::is_sorted(c.node))
    all.push_back(
        fmt::format("Ranks are not numbered node by node, as the cards of the cluster are: scenarios on it have their "
                    "order, and so their plans, with \"placement\": {{\"cards\": [{}]}}.",
                    fmt::join(cards_of(c), ", ")));
  if (c.oversubscribed)
    all.push_back(
        "There are more ranks than processors. Ranks that wait sleep meanwhile, but calls of all ranks will be "
        "slower than these parameters say.");
  return all;
}

Ordered estimate_json(const Estimate& e) { return {{"value", e.value}, {"least", e.least}, {"most", e.most}}; }

Ordered curve_json(const std::string& what, const CurveFit& f) {
  Ordered rows = Ordered::array();
  for (const CurveFit::Row& r : f.rows)
    rows.push_back({{"bytes", std::uint64_t(r.amount)},
                    {"median_ns", estimate_json(r.median_ns)},
                    {"outlier_share", r.outliers},
                    {"fitted_ns", r.pieces_ns},
                    {"line_ns", r.line_ns}});
  const auto line = [](const Line& l) { return Ordered{{"fixed_ns", l.fixed_ns}, {"ns_per_byte", l.ns_each}}; };
  return {{"what", what},
          {"rows", std::move(rows)},
          {"line", line(f.line)},
          {"line_error", f.line_error},
          {"below", line(f.pieces.below)},
          {"above", line(f.pieces.above)},
          {"break_bytes", f.pieces.last_below ? Ordered(std::uint64_t(*f.pieces.last_below)) : Ordered(nullptr)},
          {"pieces_error", f.pieces_error}};
}

Ordered fan_json(const Curve& curve) {
  Ordered rows = Ordered::array();
  for (std::size_t i = 0; i < curve.amounts.size(); ++i)
    rows.push_back({{"peers", curve.amounts[i]}, {"median_ns", estimate_json(median_of(curve.ns[i]))}});
  return rows;
}

}  // namespace

std::string calibration_text(const Calibration& c, const CalibrationFit& fit, std::size_t columns) {
  std::string text;
  const auto add_class = [&](const char* what, const PairClass& p, const ClassFit& f) {
    text += table_of(fmt::format("{}, ping-pong by {} between ranks {} and {}: half a round trip, {} rounds", what,
                                 names_of(p.by).shown, p.a, p.b, p.ping_pong.ns[0].size()),
                     f.ping_pong, columns);
    if (f.at_once)
      text +=
          table_of(fmt::format("{}, {} such pairs of two nodes at once", what, p.pairs_at_once), *f.at_once, columns);
    if (!p.fan_out.empty()) text += fan_table(p, columns);
  };
  if (fit.inside) add_class("inside a node", *c.inside, *fit.inside);
  if (fit.between) add_class("between nodes", *c.between, *fit.between);
  const std::string at_once = counted(c.computing, "rank") + " at once";
  text += table_of("combining, sums of f32, " + at_once, fit.combine, columns);
  text += table_of("copying, " + at_once, fit.copy, columns);
  text += parameter_table(c, fit, columns) + '\n';
  for (const std::string& remark : remarks_of(c, fit)) text += remark + '\n';
  return text;
}

Ordered calibration_json(const Calibration& c, const CalibrationFit& fit) {
  Ordered classes = Ordered::array(), parameters = Ordered::array();
  const auto add_class = [&](const char* what, const PairClass& p, const ClassFit& f) {
    Ordered one = {{"class", what}, {"transport", names_of(p.by).transport}, {"ranks", {p.a, p.b}}};
    one["ping_pong"] = curve_json("half a round trip", f.ping_pong);
    one["at_once"] = f.at_once ? curve_json("half a round trip", *f.at_once) : Ordered(nullptr);
    one["one_to_many"] = fan_json(p.fan_out);
    one["many_to_one"] = fan_json(p.fan_in);
    one["long_bytes"] = std::uint64_t(p.long_bytes);
    one["one_to_many_long"] = fan_json(p.fan_out_long);
    one["many_to_one_long"] = fan_json(p.fan_in_long);
    Ordered others = Ordered::array();
    for (const PairClass::Other& o : p.others)
      others.push_back({{"ranks", {o.a, o.b}}, {"bytes", o.bytes}, {"ratio", o.ratio}});
    one["other_pairs"] = std::move(others);
    classes.push_back(std::move(one));
  };
  if (fit.inside) add_class("inside", *c.inside, *fit.inside);
  if (fit.between) add_class("between", *c.between, *fit.between);
  for (const Parameter& p : parameters_of(c, fit))
    parameters.push_back({{"name", p.name},
                          {"found", estimate_json(p.found)},
                          {"compiled_in", p.compiled ? Ordered(*p.compiled) : Ordered(nullptr)}});
  return {{"schema", "gccl/calibration/1"},
          {"date", c.date},
          {"processor", c.processor},
          {"backends", c.backends},
          {"ranks", c.ranks()},
          {"nodes", c.nodes()},
          {"oversubscribed", c.oversubscribed},
          {"classes", std::move(classes)},
          {"combine", curve_json("sums of f32", fit.combine)},
          {"copy", curve_json("copies", fit.copy)},
          {"parameters", std::move(parameters)},
          {"remarks", remarks_of(c, fit)}};
}

}  // namespace gccl::sim
