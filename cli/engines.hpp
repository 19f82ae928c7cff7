// What the commands that simulate share: the engines, and what is shown while points are played.
#pragma once

#include <string>

#include "sim/scenario/run/play.hpp"

namespace gccl {

// Throws json::InputError with the nearest name.
sim::Engine engine_named(const std::string& name);

// The engines; SimGrid's is loaded where it is asked for, and null otherwise. Throws json::InputError where it is not
// there.
sim::Engines simulation_engines(bool with_simgrid);

// A bar on standard error.
void show_progress(std::size_t done, std::size_t of);
std::size_t terminal_columns();

}  // namespace gccl
