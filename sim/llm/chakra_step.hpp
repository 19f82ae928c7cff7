// A step that is recorded in Chakra traces rather than described: "chakra" in a workload (docs/parallelism.md).
#pragma once

#include "sim/llm/step.hpp"

namespace gccl::sim::llm {

// Plays the traces: a compute queue, a queue of the host and one queue for each rank's communication. Collectives of
// equal kind and bytes that different communicators carry out as their k-th are played on the engine at the same time,
// a send alone. Requires w.chakra. Throws json::InputError.
std::unique_ptr<PlayedStep> play_traces(const LlmWorkload& w, Pricer& pricer);

}  // namespace gccl::sim::llm
