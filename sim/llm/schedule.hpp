// The tasks of a step and what each waits for: compute and communication of every pipeline stage, in the order of 1F1B
// (Narayanan et al. 2021, section 2.2; interleaved where stages have several chunks). One rank stands for its stage.
#pragma once

#include "sim/llm/expansion.hpp"

namespace gccl::sim::llm {

// What one rank carries out one after the other.
enum class Queue : std::uint8_t { compute, tensor, context, expert, data, forward, backward, embedding, host, none };
constexpr std::size_t kQueues = std::size_t(Queue::none);
std::string_view name(Queue);

constexpr std::uint32_t kComputes = ~std::uint32_t(0);

struct StepTask {
  double us = 0;                      // of compute
  std::uint32_t traffic = kComputes;  // of a communication: index in Expansion::traffic
  std::uint32_t stage = 0, micro_batch = 0, chunk = 0;
  Queue queue{};  // none: takes no time, and others wait for it
  bool backward = false;
  std::string_view what;

  bool computes() const { return traffic == kComputes; }
};

struct StepGraph {
  Rank stages = 1;
  std::vector<StepTask> tasks;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // the second waits for the first
};

// One pass of a micro-batch through one chunk of a stage.
struct Pass {
  bool backward = false;
  Count chunk = 0, micro_batch = 0;
};
// What a stage does, in order.
std::vector<Pass> passes_of(const LlmWorkload& w, Rank stage);

StepGraph schedule(const Expansion& e);

}  // namespace gccl::sim::llm
