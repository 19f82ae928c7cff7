// gccl run on a workload of an LLM ("gccl/workload/1").
#pragma once

#include <functional>
#include <span>

#include "cli/commands.hpp"
#include "sim/llm/step.hpp"

namespace gccl {

// Reads a workload's file and what the options change in it, and throws what is wrong with either; what is returned
// plays the step, writes its results and returns the exit code.
std::function<int()> prepare_step(const RunArguments& a, const std::filesystem::path& file);

// What these steps are read from; no output may replace one of them.
std::vector<std::filesystem::path> files_of_steps(std::span<const sim::llm::LlmWorkload> steps);

// What a pricer of this program's engines asks of them.
sim::llm::Pricer::Options pricer_options(sim::Engine engine, unsigned jobs, bool quiet);

}  // namespace gccl
