// Which parallel sizes a workload's ranks may have, and what a step takes with them: gccl plan-parallel.
#pragma once

#include "sim/llm/step.hpp"

namespace gccl::sim::llm {

struct ParallelQuestion {
  nlohmann::json document;  // of the workload; its "parallel", "batch.micro" and "recompute" are what is varied
  std::filesystem::path file;
  Rank ranks = 0;
  double memory_GB = 0;        // of a card
  double memory_share = 0.92;  // of that what the step may take; the rest is for workspace and fragmentation
  Rank tensor_max = 8, context_max = 1;
  Count micro_max = 4;
  unsigned played = 8;  // so many of the best estimates are played
};

// Sweeps the numbers of tensor, context, expert and pipeline ranks that divide them (data ranks are what is left),
// interleaving by powers of two or evenly, and micro-batches by powers of two. Of ZeRO 1 and 3 and of no, selective and
// full recomputation it takes the first that fits the memory. Candidates are estimated by closed forms, and the best
// played like any step; those that cannot be are left out. "gccl/parallel-plan/1" (docs/parallelism.md). `estimated`
// gets how many of how many are; may be empty. Throws json::InputError where nothing fits, or nothing can be played.
nlohmann::json plan_parallel(const ParallelQuestion& question, Pricer& pricer,
                             const std::function<void(std::size_t, std::size_t)>& estimated = {});

// Microseconds of a step by closed forms: micro-batches times the slowest stage's time, and the pipeline's filling
// (Narayanan et al. 2021, section 2.2), gradients where they outlast what hides them.
double estimate_us(const LlmWorkload& w, Pricer& pricer);

std::string parallel_plan_text(nlohmann::json plan);

}  // namespace gccl::sim::llm
