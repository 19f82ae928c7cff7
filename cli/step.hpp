// gccl run on a workload of an LLM ("gccl/workload/1").
#pragma once

#include "cli/commands.hpp"
#include "sim/llm/step.hpp"

namespace gccl {

struct RunArguments;  // run.hpp

// Plays the step of a workload's file; the exit code.
int run_step(const RunArguments& a, const std::filesystem::path& file);

// What a pricer of this program's engines asks of them.
sim::llm::Pricer::Options pricer_options(sim::Engine engine, unsigned jobs, bool quiet);

}  // namespace gccl
