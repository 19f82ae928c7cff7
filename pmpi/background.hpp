// Keeps GCCL's calls moving while the program waits in a part of MPI that does not know of them (a file, a window, a
// blocking fallback), or computes.
#pragma once

namespace gccl::pmpi::background {

// A call is under way: from now on a thread looks every half millisecond whether the program still drives progress, and
// does so itself when not. It calls GCCL only, never MPI. It sleeps while nothing is under way.
void needed();
void main_was_here();
// Calls under way that run functions of the program's own, which only its own threads may run: the thread keeps off.
void user_functions(int more);
void stop();

// Processors that this process may run on.
int processors();

}  // namespace gccl::pmpi::background
