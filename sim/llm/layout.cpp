#include "sim/llm/layout.hpp"

#include <fmt/format.h>

#include <map>

namespace gccl::sim::llm {
namespace {

// `size` ranks `stride` apart within blocks of size x stride, in ranks begin .. end - 1.
RankLists strided(Rank begin, Rank end, Rank size, Rank stride) {
  RankLists all;
  for (Rank block = begin; block < end; block += size * stride)
    for (Rank first = block; first < block + stride; ++first) {
      auto& members = all.emplace_back();
      for (Rank i = 0; i < size; ++i) members.push_back(first + i * stride);
    }
  return all;
}

RankLists by_nodes(const LlmWorkload& w, const RankLists& expert_groups, bool rails,
                   const std::function<Rank(Rank)>& node_of) {
  RankLists all;
  std::size_t each = 0;  // of every group on every node
  for (const auto& group : expert_groups) {
    std::map<Rank, std::vector<Rank>> nodes;
    for (const Rank r : group) nodes[node_of(r)].push_back(r);
    if (each == 0) each = nodes.begin()->second.size();
    for (const auto& [node, members] : nodes)
      if (members.size() != each)
        w.where.at("model")
            .at("experts")
            .at("nodes_max")
            .fail(fmt::format("expert groups have {} ranks on one node and {} on another; expected as many on each",
                              each, members.size()));
    if (!rails) {
      for (auto& [node, members] : nodes) all.push_back(std::move(members));
      continue;
    }
    for (std::size_t i = 0; i < each; ++i) {
      auto& rail = all.emplace_back();
      for (const auto& [node, members] : nodes) rail.push_back(members[i]);
    }
  }
  return all;
}

}  // namespace

RankLists groups_of(GroupSet set, const LlmWorkload& w, Rank first_stage, Rank last_stage,
                    const std::function<Rank(Rank)>& node_of) {
  const Parallel& p = w.parallel;
  const Rank stage = p.stage_ranks(), begin = first_stage * stage, end = last_stage * stage;
  const auto expert_groups = [&] { return strided(begin, end, p.expert, 1); };
  RankLists all;
  switch (set) {
    case GroupSet::tensor: all = strided(begin, end, p.tensor, 1); break;
    case GroupSet::context: all = strided(begin, end, p.context, p.tensor); break;
    case GroupSet::data: all = strided(begin, end, p.dense_data(), p.tensor); break;
    case GroupSet::expert: all = expert_groups(); break;
    case GroupSet::expert_in_node: all = by_nodes(w, expert_groups(), false, node_of); break;
    case GroupSet::expert_by_rail: all = by_nodes(w, expert_groups(), true, node_of); break;
    case GroupSet::expert_data: all = strided(begin, end, p.expert_data(), p.expert); break;
    case GroupSet::pipeline: all = strided(0, p.ranks(), p.pipeline, stage); break;
    case GroupSet::pipeline_back:
      all = strided(0, p.ranks(), p.pipeline, stage);
      for (auto& group : all) std::reverse(group.begin(), group.end());
      break;
    case GroupSet::embedding:
      for (Rank r = 0; r < stage; ++r) all.push_back({r, r + (p.pipeline - 1) * stage});
      break;
  }
  std::erase_if(all, [](const auto& group) { return group.size() < 2; });
  return all;
}

bool across_stages(GroupSet set) {
  return set == GroupSet::pipeline || set == GroupSet::pipeline_back || set == GroupSet::embedding;
}

Rank group_size(GroupSet set, const Parallel& p, Rank ranks_in_node) {
  switch (set) {
    case GroupSet::tensor: return p.tensor;
    case GroupSet::context: return p.context;
    case GroupSet::data: return p.dense_data();
    case GroupSet::expert: return p.expert;
    case GroupSet::expert_in_node: return ranks_in_node;
    case GroupSet::expert_by_rail: return std::max<Rank>(1, p.expert / ranks_in_node);
    case GroupSet::expert_data: return p.expert_data();
    case GroupSet::pipeline:
    case GroupSet::pipeline_back: return p.pipeline;
    default: return 2;
  }
}

}  // namespace gccl::sim::llm
