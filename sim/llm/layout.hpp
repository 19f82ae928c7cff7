// Which ranks form the communicators of a parallel step, as Megatron lays them out by default ("tp-cp-ep-dp-pp").
//
//   rank = tensor + T (context + C (data + D stage))
//
// Expert groups are consecutive ranks of a stage and cut it into stage_ranks / E groups; ranks at the same place of
// these have the same experts. Experts themselves are not cut by tensor parallelism (Megatron's expert tensor size 1).
#pragma once

#include <functional>

#include "sim/llm/workload.hpp"

namespace gccl::sim::llm {

enum class GroupSet : std::uint8_t {
  tensor,
  context,
  data,  // ranks with the same dense weights: data and context ranks
  expert,
  expert_in_node,  // of each expert group the ranks of one node
  expert_by_rail,  // of each expert group the ranks at the same place of their nodes
  expert_data,     // ranks with the same experts
  pipeline,        // the stages, in order
  pipeline_back,   // the stages, backwards
  embedding        // first and last stage
};

using RankLists = std::vector<std::vector<Rank>>;

// The groups of stages first_stage .. last_stage - 1; those across stages are whole whatever the range. `node_of` is
// for the two sets of expert groups by nodes. Groups of one rank are left out. Throws json::InputError where expert
// groups do not have as many ranks on each of their nodes.
RankLists groups_of(GroupSet set, const LlmWorkload& w, Rank first_stage, Rank last_stage,
                    const std::function<Rank(Rank)>& node_of);
// Whether its groups have ranks of several stages.
bool across_stages(GroupSet set);
Rank group_size(GroupSet set, const Parallel& p, Rank ranks_in_node);

}  // namespace gccl::sim::llm
