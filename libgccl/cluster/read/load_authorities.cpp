#include "libgccl/cluster/read/load_authorities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gccl/gccl.h"
#include "libgccl/cluster/read/tuning_file.hpp"

namespace gccl {

Status load_authorities(const Environment& environment, Authorities* out) try {
  const auto value = [&](const char* name) { return read_text(environment, name); };
  if (Status s = Overrides::parse(value("GCCL_ALGORITHM"), &out->named); !s.ok()) return s;
  if (Status s = AlgorithmLists::parse(value("GCCL_ALGO"), &out->lists); !s.ok()) return s;
  if (const std::string file = value("GCCL_TUNING_FILE"); !file.empty())
    out->table = std::make_shared<const TuningTable>(load_tuning_table(file));
  return {};
} catch (const json::InputError& e) {
  return Status::error(fmt::format("GCCL_TUNING_FILE: {}", e.what()), GCCL_ERR_INVALID_ARGUMENT);
}

Status check_table(const TuningTable& table, const Cluster& cluster, const std::vector<Card>& cards) {
  std::map<Rank, std::vector<Card>> nodes;
  for (const Card c : cards) nodes[cluster.node_of(c)].push_back(c);
  TunedMachine here{.cluster = cluster.name(), .nodes = Rank(nodes.size()), .backends = cluster.backends()};
  bool switches = false;
  for (const auto& [node, on] : nodes) {
    here.ranks_per_node = std::max(here.ranks_per_node, Rank(on.size()));
    switches = switches || (on.size() > 1 && cluster.in_switch(on) > 0);
  }
  for (const Protocol& p : cluster.protocols()) {
    if (!p.name.empty()) here.protocols.push_back(p.name);
    if (switches && !p.in_switch) here.unsummed.push_back(p.name);
    if (!p.between_nodes) here.inside.push_back(p.name);
  }
  return check_machine(table, here);
}

Status check_table(const Authorities& authorities, const Cluster& cluster, const std::vector<Card>& cards) {
  if (!authorities.table) return {};
  const Status s = check_table(*authorities.table, cluster, cards);
  return s.ok() ? s : Status::error(fmt::format("GCCL_TUNING_FILE: {}", s.text()), s.code());
}

}  // namespace gccl
