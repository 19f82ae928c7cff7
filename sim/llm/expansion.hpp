// What a step computes and communicates: a program for each kind of layer, and what chunks of layers do at their ends.
// Bytes are counted as scenarios do (docs/formats.md).
#pragma once

#include "sim/llm/layout.hpp"

namespace gccl::sim::llm {

// One collective on all groups of a set.
struct TrafficCall {
  Collective collective{};
  Count bytes = 0;
  Dtype dtype{};
  GroupSet groups{};
  bool by_load = false;  // an all-to-all-v by the popularity of experts
  auto operator<=>(const TrafficCall&) const = default;
};

// One communication of a step; several calls are its parts, carried out concurrently.
struct Traffic {
  Kind kind{};
  std::string what;
  std::vector<TrafficCall> calls;
};

// Compute of so many microseconds, or a communication.
struct Item {
  bool compute = true;
  double us = 0;
  std::uint32_t traffic = 0;
  // Not awaited by the compute that follows it, only by the one after that: a gather for weight gradients.
  bool aside = false;
  std::string_view what;
};
using Program = std::vector<Item>;

// Forward and backward of one half of a micro-batch (of all of it where halves is 1).
struct LayerProgram {
  Program forward, backward;
};

// What data-parallel ranks exchange for one chunk of layers, in `number` equal buckets of one traffic each.
struct Buckets {
  Count number = 0;
  std::optional<std::uint32_t> reduce, gather;
};

struct ChunkPlan {
  Count first_layer = 0, layers = 0;
  LayerProgram embedding, head;  // of the first and the last chunk; else empty
  Buckets dense, experts;        // below ZeRO 3
  // ZeRO 3: of the embeddings, which stay gathered from a micro-batch's forward to its backward.
  std::optional<std::uint32_t> gather_embedding, reduce_embedding;
};

struct Expansion {
  const LlmWorkload* workload = nullptr;
  unsigned halves = 1;  // 2 where communication inside layers overlaps: each half is computed while the other's travels
  std::vector<Traffic> traffic;
  LayerProgram dense, moe;
  std::vector<ChunkPlan> chunks;
  std::optional<std::uint32_t> forward_send, backward_send, embedding;
  // ZeRO 3: of each layer, by kind of layer: dense weights, experts.
  struct Sharded {
    std::optional<std::uint32_t> gather, reduce, gather_experts, reduce_experts;
  } sharded_dense, sharded_moe;

  const LayerProgram& layer(Count l) const { return workload->model.moe(l) ? moe : dense; }
  const Sharded& sharded(Count l) const { return workload->model.moe(l) ? sharded_moe : sharded_dense; }
};

// The workload must outlive it. `ranks_in_node`: of an expert group.
Expansion expand(const LlmWorkload& w, Rank ranks_in_node);

// What one rank sends for a call on a group of so many ranks, by the optimal algorithms: 2 (n-1)/n of an all-reduce's
// bytes, (n-1)/n for the others, all of a send (Thakur et al. 2005).
double sent_bytes(const TrafficCall& call, Rank ranks);

}  // namespace gccl::sim::llm
