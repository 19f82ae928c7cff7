#include "libgccl/cluster/read/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/read/read_corrections.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

using json::InputError;
using json::Node;

constexpr int kChannelsMax = 64;
constexpr std::string_view kBackends[] = {"shm", "shm,tcp", "tcp", "tcp,shm", "mpi", "shm,mpi"};

// A set that is being put together: what no file has given yet is open.
struct Draft {
  std::optional<Nanos> overhead_ns;
  Nanos receive_overhead_ns = 0;
  std::optional<double> combine_GBps, copy_GBps;
  std::optional<Count> eager_bytes;
  std::string backends;
  TransportModels transports;
  std::optional<double> in_switch_efficiency;
  NcclSettings nccl;
  std::optional<MpiMemory> mpi;
  std::map<std::string, LinkKind, std::less<>> links;
  std::map<std::string, Protocol, std::less<>> protocols;
  Corrections corrections;
  LibraryChoices choices;
};

Nanos read_nanos(const Node& v) {
  const Nanos ns = v.nanos(1);
  if (double(ns) > kCostNanosMax) v.fail(fmt::format("found {} ns, expected at most {:.0f} ns", ns, kCostNanosMax));
  return ns;
}

double read_bandwidth(const Node& v) { return v.number(kLinkGBpsMin, kLinkGBpsMax); }
double read_rate(const Node& v) { return v.number(0, kLinkGBpsMax); }

LinkKind read_link_object(const Node& v) {
  v.allow({"bandwidth_GBps", "latency_ns", "reverse_bandwidth_GBps", "reverse_latency_ns", "source"});
  if (const auto source = v.find("source")) source->string();
  LinkKind kind;
  kind.forward = {read_bandwidth(v.at("bandwidth_GBps")), read_nanos(v.at("latency_ns")), Tier::other};
  kind.reverse = kind.forward;
  if (const auto back = v.find("reverse_bandwidth_GBps")) kind.reverse.bandwidth_GBps = read_bandwidth(*back);
  if (const auto back = v.find("reverse_latency_ns")) kind.reverse.latency_ns = read_nanos(*back);
  return kind;
}

Protocol::Way read_way(const Node& v) {
  v.allow({"latency_ns", "efficiency", "source"});
  if (const auto source = v.find("source")) source->string();
  Protocol::Way way;
  if (const auto found = v.find("latency_ns")) way.latency_ns = double(read_nanos(*found));
  if (const auto found = v.find("efficiency")) way.efficiency = found->number(kEfficiencyMin, 1);
  return way;
}

Protocol read_protocol(const std::string& name, const Node& v) {
  v.allow({"operation_ns", "inside", "network", "channel_GBps", "combine_GBps", "channels_max", "bytes_max",
           "in_switch", "source"});
  if (const auto source = v.find("source")) source->string();
  if (name.empty() || name == "auto") v.fail(fmt::format("\"{}\" cannot be a protocol's name", name));
  Protocol p;
  p.name = name;
  if (const auto found = v.find("operation_ns")) p.operation_ns = double(read_nanos(*found));
  if (const auto found = v.find("inside")) p.inside = read_way(*found);
  if (const auto found = v.find("network")) {
    p.between_nodes = found->raw() != false;
    if (p.between_nodes && !found->is_object())
      found->fail(fmt::format("found {}, expected an object, or false", found->text()));
    if (p.between_nodes) p.network = read_way(*found);
  }
  if (const auto found = v.find("channel_GBps")) p.channel_GBps = read_bandwidth(*found);
  if (const auto found = v.find("combine_GBps")) p.combine_GBps = read_bandwidth(*found);
  if (const auto found = v.find("channels_max")) p.channels_max = Count(found->integer(1, kChannelsMax));
  if (const auto found = v.find("bytes_max")) p.bytes_max = found->bytes();
  if (const auto found = v.find("in_switch")) p.in_switch = found->boolean();
  return p;
}

void read_set(const Node& v, Draft& draft, std::vector<std::filesystem::path>& open);

// Reads the set in a file over the draft; `reference` is the value that names the file.
void read_file(const Node& reference, Draft& draft, std::vector<std::filesystem::path>& open) {
  const auto file = parameters_file(reference);
  std::error_code error;
  auto real = std::filesystem::weakly_canonical(file, error);
  if (error) real = file;
  if (std::find(open.begin(), open.end(), real) != open.end())
    reference.fail(fmt::format("parameter set {} refers back to itself", file.string()));
  open.push_back(real);
  const Node set = Node::load(file);
  set.schema("gccl/parameters/1");
  set.at("name").string();
  read_set(set, draft, open);
  open.pop_back();
}

void read_set(const Node& v, Draft& draft, std::vector<std::filesystem::path>& open) {
  v.allow({"$schema", "schema", "name", "description", "sources", "base", "card", "eager_bytes", "backends",
           "transports", "in_switch_efficiency", "nccl", "mpi", "links", "protocols", "corrections", "choices"});
  for (const std::string_view text : {"$schema", "schema", "name", "description"})
    if (const auto found = v.find(text)) found->string();
  check_sources(v);
  if (const auto base = v.find("base")) read_file(*base, draft, open);
  if (const auto card = v.find("card")) {
    CardCosts costs;
    read_card(*card, costs);
    if (card->has("overhead_ns")) draft.overhead_ns = costs.overhead_ns;
    if (card->has("receive_overhead_ns")) draft.receive_overhead_ns = costs.receive_overhead_ns;
    if (card->has("combine_GBps")) draft.combine_GBps = costs.combine_GBps;
    if (card->has("copy_GBps")) draft.copy_GBps = costs.copy_GBps;
  }
  if (const auto eager = v.find("eager_bytes")) draft.eager_bytes = eager->bytes();
  if (const auto backends = v.find("backends")) draft.backends = kBackends[backends->one_of(kBackends)];
  if (const auto transports = v.find("transports")) {
    if (draft.transports.empty()) draft.transports = transport_models();
    replace_costs(*transports, draft.transports);
  }
  if (const auto share = v.find("in_switch_efficiency")) draft.in_switch_efficiency = share->number(0.01, 1);
  if (const auto nccl = v.find("nccl")) read_nccl(*nccl, draft.nccl);
  if (const auto mpi = v.find("mpi")) read_mpi(*mpi, draft.mpi);
  if (const auto links = v.find("links"))
    for (const auto& [name, link] : links->members()) draft.links[name] = read_link_object(link);
  if (const auto protocols = v.find("protocols"))
    for (const auto& [name, protocol] : protocols->members()) draft.protocols[name] = read_protocol(name, protocol);
  std::vector<std::string_view> names;
  for (const auto& [name, protocol] : draft.protocols) names.push_back(name);
  if (const auto corrections = v.find("corrections")) draft.corrections = read_corrections(*corrections, names);
  if (const auto choices = v.find("choices")) draft.choices = read_choices(*choices, names);
}

Parameters complete(const Node& v, Draft draft) {
  const auto required = [&](const auto& value, std::string_view key) {
    if (!value) v.fail(fmt::format("\"{}\" is missing: neither the set nor its base gives it", key));
    return *value;
  };
  Parameters p;
  p.card.overhead_ns = required(draft.overhead_ns, "card/overhead_ns");
  p.card.receive_overhead_ns = draft.receive_overhead_ns;
  p.card.combine_GBps = required(draft.combine_GBps, "card/combine_GBps");
  p.card.copy_GBps = required(draft.copy_GBps, "card/copy_GBps");
  p.eager_bytes = required(draft.eager_bytes, "eager_bytes");
  p.backends = std::move(draft.backends);
  p.transports = std::move(draft.transports);
  p.in_switch_efficiency = draft.in_switch_efficiency.value_or(1);
  p.nccl = draft.nccl;
  p.mpi = draft.mpi;
  p.links = std::move(draft.links);
  p.corrections = std::move(draft.corrections);
  p.choices = std::move(draft.choices);
  for (auto& [name, protocol] : draft.protocols) p.protocols.push_back(std::move(protocol));
  if (p.protocols.empty()) p.protocols.emplace_back();
  if (std::none_of(p.protocols.begin(), p.protocols.end(), [](const Protocol& q) {
        return q.bytes_max == Protocol{}.bytes_max && q.in_switch && q.between_nodes;
      }))
    v.fail(
        "none of \"protocols\" serves every call: each has \"bytes_max\", \"in_switch\": false or \"network\": false");
  for (const Correction& c : p.corrections)
    for (const Protocol& q : p.protocols)
      if (q.name == c.of.protocol && c.of.nodes > 1 && !q.between_nodes)
        v.fail(fmt::format(
            "a correction is for \"{}\" on {} nodes, but its \"network\" is false: it is for calls inside one "
            "node",
            q.name, c.of.nodes));
  if (!p.backends.empty() && !p.protocols[0].name.empty())
    v.fail("there are \"backends\" and \"protocols\": GCCL's own transports know no protocols");
  return p;
}

}  // namespace

LinkKind LinkKind::at(Tier tier) const {
  LinkKind placed = *this;
  placed.forward.tier = placed.reverse.tier = tier;
  return placed;
}

Parameters read_parameters(const Node& value) {
  Draft draft;
  std::vector<std::filesystem::path> open;
  if (value.is_string()) {
    read_file(value, draft, open);
  } else {
    read_set(value, draft, open);
  }
  return complete(value, std::move(draft));
}

Parameters load_parameters(const std::filesystem::path& file) {
  const Node set = Node::load(file);
  set.schema("gccl/parameters/1");
  set.at("name").string();
  std::error_code error;
  auto real = std::filesystem::weakly_canonical(file, error);
  std::vector<std::filesystem::path> open{error ? file : real};
  Draft draft;
  read_set(set, draft, open);
  return complete(set, std::move(draft));
}

void read_card(const Node& v, CardCosts& card) {
  v.allow({"overhead_ns", "receive_overhead_ns", "combine_GBps", "copy_GBps", "source"});
  if (const auto source = v.find("source")) source->string();
  if (const auto found = v.find("overhead_ns")) card.overhead_ns = read_nanos(*found);
  if (const auto found = v.find("receive_overhead_ns")) card.receive_overhead_ns = read_nanos(*found);
  if (const auto found = v.find("combine_GBps")) card.combine_GBps = read_rate(*found);
  if (const auto found = v.find("copy_GBps")) card.copy_GBps = read_rate(*found);
}

LinkKind read_link(const Node& v, const Parameters& known) {
  if (v.is_object()) return read_link_object(v);
  if (!v.is_string()) v.fail(fmt::format("found {}, expected the name of a link, or an object", v.text()));
  const std::string name = v.string();
  if (const auto it = known.links.find(name); it != known.links.end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [other, link] : known.links) names.push_back(other);
  v.fail(fmt::format("the parameters have no link \"{}\"{}", name, suggestion(name, names)));
}

void check_sources(const Node& document) {
  const auto sources = document.find("sources");
  if (!sources) return;
  for (const auto& [pointer, text] : sources->members()) {
    text.string();
    if (!document.contains(pointer))
      text.fail(fmt::format("\"{}\" points to nothing in this file, expected a JSON pointer to a value", pointer));
  }
}

}  // namespace gccl
