// `gccl topology`: what a cluster description amounts to, as a table, as JSON and as a drawing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/cluster/read/summary.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/channel_rings.hpp"
#include "sim/report/topology_svg.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;

struct TopologyArguments {
  std::string file, svg, json;
  std::optional<std::int64_t> channels;  // the rings on so many ranks
};

// "48.5" or "23.5 - 48.5".
template <class T>
std::string range(T least, T most) {
  return least == most ? fmt::format("{:.6g}", double(least))
                       : fmt::format("{:.6g} - {:.6g}", double(least), double(most));
}

std::string bandwidth(double GBps) {
  return GBps >= 1000 ? fmt::format("{:.4g} TB/s", GBps / 1000) : fmt::format("{:.4g} GB/s", GBps);
}

constexpr std::size_t kNodesPrinted = 4;  // of each channel's ring; the JSON has all
constexpr std::int64_t kChannelRanksMax = 4096;

Json hop_json(const Hop& h) { return {{"alpha_ns", h.alpha_ns}, {"beta_ns_per_byte", h.beta_ns_per_byte}}; }

Json to_json(const Summary& s) {
  Json tiers = Json::array();
  for (const TierSummary& t : s.tiers)
    tiers.push_back({{"tier", name(t.tier)},
                     {"links", t.links},
                     {"bandwidth_GBps_min", t.GBps_min},
                     {"bandwidth_GBps_max", t.GBps_max},
                     {"latency_ns_min", t.latency_ns_min},
                     {"latency_ns_max", t.latency_ns_max},
                     {"total_GBps", t.total_GBps},
                     {"oversubscription", t.oversubscription ? Json(*t.oversubscription) : Json(nullptr)}});
  return {{"schema", "gccl/topology/1"},
          {"name", s.name},
          {"description", s.description},
          {"cards", s.cards},
          {"nodes", s.nodes},
          {"cards_per_node_min", s.cards_per_node_min},
          {"cards_per_node_max", s.cards_per_node_max},
          {"nics", s.nics},
          {"fabric", s.fabric},
          {"in_switch", s.costs.node_switch ? hop_json(*s.costs.node_switch) : Json(nullptr)},
          {"tiers", std::move(tiers)},
          {"bisection_GBps", s.bisection_GBps ? Json(*s.bisection_GBps) : Json(nullptr)},
          {"paired_GBps", s.paired_GBps},
          {"diameter_links", s.diameter},
          {"diameter_sources", s.diameter_sources},
          {"node", hop_json(s.costs.node)},
          {"net", hop_json(s.costs.net)},
          {"net_all", hop_json(s.costs.net_all)},
          {"net_loaded", s.net_loaded ? hop_json(*s.net_loaded) : Json(nullptr)},
          {"overhead_ns", s.costs.overhead_ns},
          {"receive_overhead_ns", s.costs.receive_overhead_ns},
          {"combine_ns_per_byte", s.costs.combine_ns_per_byte},
          {"copy_ns_per_byte", s.costs.copy_ns_per_byte}};
}

void print_hop(std::string_view what, const Hop& h) {
  const std::string beta = h.beta_ns_per_byte > 0 ? bandwidth(1 / h.beta_ns_per_byte) : "no link";
  fmt::print("  {:<42} alpha {:>8.4g} us   beta {}\n", what, h.alpha_ns / 1000, beta);
}

void print(const Summary& s) {
  fmt::print("{}\n", printable_line(s.name));
  if (!s.description.empty()) fmt::print("{}\n", printable(s.description));
  fmt::print("\n  {:<22} {}\n", "cards", s.cards);
  fmt::print("  {:<22} {}\n", "nodes", s.nodes);
  fmt::print("  {:<22} {}\n", "cards per node", range(s.cards_per_node_min, s.cards_per_node_max));
  fmt::print("  {:<22} {}\n", "NICs", s.nics);
  fmt::print("  {:<22} {}\n\n", "fabric", s.fabric.empty() ? "none" : s.fabric);
  if (!s.tiers.empty())
    fmt::print("  {:<6} {:>9}   {:<17} {:<15} {}\n", "tier", "links", "GB/s each", "latency (ns)", "oversubscription");
  for (const TierSummary& t : s.tiers)
    fmt::print("  {:<6} {:>9}   {:<17} {:<15} {}\n", name(t.tier), t.links, range(t.GBps_min, t.GBps_max),
               range(t.latency_ns_min, t.latency_ns_max),
               t.oversubscription ? fmt::format("{:.3g}:1", *t.oversubscription) : "-");
  fmt::print("\n");
  if (!s.layered)
    fmt::print(
        "  no oversubscription: the fabric has cables inside a layer of switches, so it is no tree; compare the\n"
        "  NICs with \"card i with card i + n/2\" below\n\n");
  if (s.nodes > 1)
    fmt::print("  {:<42} {}\n", "bisection, one direction",
               s.bisection_GBps ? bandwidth(*s.bisection_GBps) : "no formula for this structure");
  fmt::print("  {:<42} {}\n", "card i with card i + n/2, as routed", bandwidth(s.paired_GBps));
  fmt::print("  {:<42} {} links{}\n", "longest route", s.diameter,
             s.diameter_sources < s.cards ? fmt::format(" (from {} of the cards)", s.diameter_sources) : "");
  if (s.cards > s.nodes) print_hop("inside a node", s.costs.node);
  if (s.costs.node_switch) print_hop("by its switch to all, from all (NVLS)", *s.costs.node_switch);
  if (s.nodes > 1) {
    print_hop("between far nodes, one card sends", s.costs.net);
    print_hop("between far nodes, all cards of one send", s.costs.net_all);
    if (s.net_loaded) print_hop("between far nodes, all cards of all send", *s.net_loaded);
  }
}

// What "planner": "nccl" goes by.
void print_nccl(const Cluster& cluster) {
  std::vector<Card> cards(cluster.cards());
  std::iota(cards.begin(), cards.end(), 0);
  const auto m = nccl_machine(cluster, cards);
  if (!m) return;
  std::string text = fmt::format("{} of {:.4g} GB/s", m->graph.channels, m->graph.inside_GBps);
  if (m->graph.between_GBps != m->graph.inside_GBps)
    text += fmt::format(", {:.4g} between nodes", m->graph.between_GBps);
  if (m->nvls.channels > 0)
    text += fmt::format("; of multicast {} of {:.4g} GB/s", m->nvls.channels, m->nvls.inside_GBps);
  fmt::print("  {:<42} {} ({})\n", "NCCL's channels, as its model has them", text,
             kNcclArchitectures[std::size_t(m->architecture)]);
}

int topology(const TopologyArguments& a) {
  if (a.svg == "-" && a.json == "-")
    throw json::InputError("only one of --svg and --json can be written to standard output");
  const std::filesystem::path file = find_shipped("topologies", a.file);
  check_outputs({a.svg, a.json}, files_of_cluster(file));
  const auto cluster = load_cluster(file);
  if (a.channels && *a.channels > cluster->cards())
    throw json::InputError(fmt::format("--channels: found {} ranks, expected at most {}, the cards of {}", *a.channels,
                                       cluster->cards(), a.file));
  const Summary s = summarize(*cluster);
  std::vector<sim::ChannelRing> rings;
  if (a.channels) rings = sim::rings_of_channels(*cluster, Rank(*a.channels));
  if (!a.svg.empty()) write_output(a.svg, sim::topology_svg(*cluster, rings));
  if (!a.json.empty()) {
    Json out = to_json(s);
    for (const auto& ring : rings) {
      Json stops = Json::array();
      for (const sim::RingStop& r : ring) {
        stops.push_back({{"rank", r.rank}, {"node", r.node}});
        if (!r.in.empty()) stops.back()["in"] = r.in;
        if (!r.out.empty()) stops.back()["out"] = r.out;
      }
      out["channels"].push_back(std::move(stops));
    }
    write_output(a.json, json::format_value(out, 1) + '\n');
  }
  if (a.svg != "-" && a.json != "-") {
    print(s);
    if (a.channels)
      fmt::print("\n  rings of {} ranks by channel\n{}", *a.channels, sim::ring_lines(rings, kNodesPrinted));
    print_nccl(*cluster);
    flush_stdout();
  }
  return 0;
}

}  // namespace

// Sets exit_code to 2 for wrong input or an output that cannot be written.
void add_topology(Command& app, int& exit_code) {
  auto a = std::make_shared<TopologyArguments>();
  Command* command = app.add_subcommand("topology", "What a cluster description amounts to: table, JSON, drawing");
  command->add_option("cluster", a->file, "Cluster description, or the name of a shipped one (gccl list topologies)")
      ->required();
  command->add_option("--svg", a->svg, "Write a drawing to this file, or to standard output when it is -")
      ->value("FILE");
  command->add_option("--json", a->json, "Write the numbers as JSON to this file, or to standard output when it is -")
      ->value("FILE");
  command
      ->add_option(
          "--channels", a->channels,
          "The ring of each channel on so many ranks, here, in JSON and drawing: their order, and the NICs by which it "
          "enters and leaves nodes")
      ->value("RANKS")
      ->check(Range{2, kChannelRanksMax});
  command->examples({"gccl topology dgx-h100-superpod-2048", "gccl topology polaris --channels 8",
                     "gccl topology my-cluster.json --channels 16 --svg cluster.svg"});
  command->callback([a, &exit_code] {
    try {
      exit_code = topology(*a);
    } catch (const json::InputError& e) {
      write_stderr(fmt::format("gccl topology: {}\n", printable_line(e.what())));
      exit_code = 2;
    }
  });
}

}  // namespace gccl
