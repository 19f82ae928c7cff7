#include "libgccl/cluster/read/transport_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "gccl/gccl.h"
#include "libgccl/cluster/embedded.hpp"
#include "libgccl/cluster/read/parameters.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/schedule/lane.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr double kCostMax = 1e12;

bool read_shared(const Node& hop) {
  const auto shared = hop.find("for_each_rank_of_a_node");
  return shared && shared->boolean();
}

Hop read_hop(const Node& v) {
  v.allow({"alpha_ns", "ns_per_byte", "for_each_rank_of_a_node", "source"});
  if (const auto source = v.find("source")) source->string();
  read_shared(v);
  return {.alpha_ns = v.at("alpha_ns").number(0, kCostMax),
          .beta_ns_per_byte = v.at("ns_per_byte").number(0, kCostMax)};
}

Collective read_collective(const Node& v) {
  const auto kind = collective_named(v.string());
  if (!kind)
    v.fail(fmt::format("found {}, expected a collective{}", v.text(), suggestion(v.string(), collective_names())));
  return *kind;
}

const Algorithm* read_algorithm(const Node& v, Collective kind) {
  const Algorithm* const a = find_algorithm(kind, v.string());
  if (!a)
    v.fail(fmt::format("found {}, expected an algorithm of {}{}", v.text(), name(kind),
                       suggestion(v.string(), algorithm_names(kind))));
  return a;
}

Rank read_ranks(const Node& v) { return Rank(v.integer(1, std::int64_t(~Rank(0)))); }

Tuning::Preference read_preference(const Node& v) {
  v.allow({"collective", "algorithm", "ranks_max", "bytes_min", "incast_bytes_max", "oversubscribed", "source"});
  Tuning::Preference p{.algorithm = read_algorithm(v.at("algorithm"), read_collective(v.at("collective")))};
  if (const auto n = v.find("ranks_max")) p.ranks_max = read_ranks(*n);
  if (const auto n = v.find("bytes_min")) p.bytes_min = double(n->bytes());
  if (const auto n = v.find("incast_bytes_max")) p.incast_bytes_max = double(n->bytes());
  if (const auto oversubscribed = v.find("oversubscribed")) p.oversubscribed = oversubscribed->boolean();
  return p;
}

Tuning::Incast read_incast(const Node& v) {
  v.allow({"collective", "algorithm", "fallback", "bytes_max", "source"});
  const Collective kind = read_collective(v.at("collective"));
  Tuning::Incast i{.algorithm = read_algorithm(v.at("algorithm"), kind), .fallback = nullptr, .bytes_max = -1};
  if (const auto f = v.find("fallback")) i.fallback = read_algorithm(*f, kind);
  if (const auto n = v.find("bytes_max")) i.bytes_max = double(n->bytes());
  return i;
}

Tuning::Chunks read_chunks(const Node& v) {
  v.allow({"collective", "algorithm", "ranks_min", "bytes", "source"});
  Tuning::Chunks c{.kind = read_collective(v.at("collective")), .bytes = double(v.at("bytes").bytes())};
  if (const auto a = v.find("algorithm")) c.algorithm = read_algorithm(*a, c.kind);
  if (const auto n = v.find("ranks_min")) c.ranks_min = read_ranks(*n);
  return c;
}

Tuning::Rate read_rate_of(const Node& v) {
  v.allow({"collective", "algorithm", "fraction", "source"});
  return {.algorithm = read_algorithm(v.at("algorithm"), read_collective(v.at("collective"))),
          .fraction = v.at("fraction").number(1e-3, 1)};
}

template <class T>
std::vector<T> read_list(const Node& v, std::string_view key, T (*read)(const Node&)) {
  std::vector<T> list;
  if (const auto items = v.find(key))
    for (const Node& item : items->items()) {
      list.push_back(read(item));
      if (const auto source = item.find("source")) source->string();
    }
  return list;
}

}  // namespace

CostModel TransportModel::costs_on(const View& view, unsigned element_bytes) const {
  CostModel m = costs;
  m.element_bytes = element_bytes;
  if (net_all_shared) m.net_all.beta_ns_per_byte *= view.rails;
  return m;
}

TransportModel read_transport(const Node& v) {
  v.schema("gccl/transport/1");
  v.allow({"$schema", "schema", "name", "description", "node", "net", "net_all", "overhead_ns", "combine_ns_per_byte",
           "copy_ns_per_byte", "algorithms", "incast", "chunks", "rates", "chunks_overlap", "channels_max", "window",
           "sources"});
  for (const std::string_view text : {"$schema", "name", "description"})
    if (const auto found = v.find(text)) found->string();
  check_sources(v);
  TransportModel t;
  t.costs.node = read_hop(v.at("node"));
  t.costs.net = read_hop(v.at("net"));
  t.costs.net_all = read_hop(v.at("net_all"));
  t.net_all_shared = read_shared(v.at("net_all"));
  t.costs.overhead_ns = v.at("overhead_ns").number(0, kCostMax);
  t.costs.combine_ns_per_byte = v.at("combine_ns_per_byte").number(0, kCostMax);
  t.costs.copy_ns_per_byte = v.at("copy_ns_per_byte").number(0, kCostMax);
  t.tuning.preferences = read_list(v, "algorithms", read_preference);
  t.tuning.incast = read_list(v, "incast", read_incast);
  t.tuning.chunks = read_list(v, "chunks", read_chunks);
  t.tuning.rates = read_list(v, "rates", read_rate_of);
  if (const auto overlap = v.find("chunks_overlap")) t.tuning.chunks_overlap = overlap->boolean();
  if (const auto n = v.find("channels_max")) t.tuning.channels_max = Count(n->integer(1, 1 << 20));
  t.tuning.channels_limit = kLanesMax;
  t.tuning.window = unsigned(v.at("window").integer(2, kWindowMax));
  return t;
}

void replace_costs(const Node& transports, TransportModels& models) {
  std::vector<std::string_view> names;
  for (const auto& [name, model] : models) names.push_back(name);
  for (const auto& [name, v] : transports.members()) {
    const auto known = models.find(name);
    if (known == models.end())
      v.fail(fmt::format("GCCL has no transport model \"{}\"{}", name, suggestion(name, names)));
    v.allow({"node", "net", "net_all", "overhead_ns", "combine_ns_per_byte", "copy_ns_per_byte", "source"});
    if (const auto source = v.find("source")) source->string();
    TransportModel& t = known->second;
    for (const auto& [key, hop] :
         {std::pair("node", &t.costs.node), std::pair("net", &t.costs.net), std::pair("net_all", &t.costs.net_all)})
      if (const auto found = v.find(key)) *hop = read_hop(*found);
    if (const auto all = v.find("net_all")) t.net_all_shared = read_shared(*all);
    for (const auto& [key, cost] : {std::pair("overhead_ns", &t.costs.overhead_ns),
                                    std::pair("combine_ns_per_byte", &t.costs.combine_ns_per_byte),
                                    std::pair("copy_ns_per_byte", &t.costs.copy_ns_per_byte)})
      if (const auto found = v.find(key)) *cost = found->number(0, kCostMax);
  }
}

Status load_transports(const std::string& file, std::shared_ptr<const TransportModels>* out, std::string* costs) try {
  Parameters set = load_parameters(file);
  if (set.transports.empty())
    return Status::error(
        fmt::format("{}: \"transports\" is missing: the set says nothing of GCCL's own transports; gccl "
                    "calibrate writes one that does",
                    file),
        GCCL_ERR_INVALID_ARGUMENT);
  costs->clear();
  for (const auto& [name, t] : set.transports) {
    *costs += name;
    for (const Hop& hop : {t.costs.node, t.costs.net, t.costs.net_all})
      *costs += fmt::format(" {:a} {:a}", hop.alpha_ns, hop.beta_ns_per_byte);
    *costs += fmt::format(" {} {:a} {:a} {:a};", t.net_all_shared, t.costs.overhead_ns, t.costs.combine_ns_per_byte,
                          t.costs.copy_ns_per_byte);
  }
  *out = std::make_shared<const TransportModels>(std::move(set.transports));
  return {};
} catch (const json::InputError& e) {
  return Status::error(e.what(), GCCL_ERR_INVALID_ARGUMENT);
}

const TransportModels& transport_models() {
  static const auto* const shipped = [] {
    auto* const all = new TransportModels;
    for (const auto& [known, text] :
         {std::pair("shared-memory", embedded::shared_memory_json), std::pair("tcp", embedded::tcp_json),
          std::pair("tcp-loopback", embedded::tcp_loopback_json), std::pair("mpi", embedded::mpi_json)})
      all->emplace(known, read_transport(Node::parse(text, known)));
    return all;
  }();
  return *shipped;
}

const TransportModel& transport_model(std::string_view name) {
  const auto found = transport_models().find(name);
  assert(found != transport_models().end());
  return found->second;
}

namespace {

// By which models a backend's messages are planned; empty: it does not go there.
struct ModelsOf {
  std::string_view backend, on_a_node, between_nodes;
};
constexpr ModelsOf kModelsOf[] = {{"shm", "shared-memory", ""}, {"tcp", "tcp-loopback", "tcp"}, {"mpi", "mpi", "mpi"}};

}  // namespace

const TransportModel& transport_model_of(const TransportModels& models, std::string_view backends, bool one_node) {
  const auto named = [&](std::string_view name) -> const TransportModel& {
    const auto found = models.find(name);
    assert(found != models.end());
    return found->second;
  };
  for (std::size_t at = 0; at < backends.size();) {
    const std::string_view backend = backends.substr(at, backends.find(',', at) - at);
    at += backend.size() + 1;
    const auto row = std::ranges::find(kModelsOf, backend, &ModelsOf::backend);
    if (row == std::end(kModelsOf)) continue;
    if (const std::string_view model = one_node ? row->on_a_node : row->between_nodes; !model.empty())
      return named(model);
  }
  return named(one_node ? "tcp-loopback" : "tcp");
}

}  // namespace gccl
