// Signals that end long work early: SIGINT and SIGTERM.
#pragma once

#include "sim/scenario/run/pool.hpp"

namespace gccl {

// From now on they set the flag instead of ending the program.
const sim::StopFlag& catch_interrupts();
// An exit code that says which one came, 130 or 143; 0 when none has.
int interrupted_code();

// What has come. A plug-in has a copy of this file, and notes signals where the program does.
struct Interrupts {
  sim::StopFlag stop{false};
  std::atomic<int> signal{0};
};
Interrupts& interrupts();
void share_interrupts(Interrupts& with);

}  // namespace gccl
