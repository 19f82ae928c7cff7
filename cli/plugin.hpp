// The parts of the program that need SimGrid, MPI or the runtime, and all commands but those that play scenarios:
// private shared libraries that are loaded when a command needs them, so that the others start at once (`gccl
// --version` in 7 ms instead of 170), run where these are not installed, and need not wait for the other half of the
// code to be built. They are loaded with RTLD_LOCAL: libsimgrid defines MPI_* for its simulated MPI, and each plug-in
// must find the MPI that it was linked with.
#pragma once

#include <string>

namespace gccl {

// The function `entry` of libgccl_NAME.so, from lib/gccl beside the program (build folder) or beside its bin folder
// (installed). It stays loaded. Throws json::InputError where it was built for another version of the program or from
// other headers, and with where it was looked for and `advice` where there is none, or with what the system said where
// it does not load.
void* plugin(const std::string& name, const char* entry, const std::string& advice);

// The same of the plug-in that has the runtime, over MPI or over GCCL's own transports; `what` cannot go without it.
void* runtime_plugin(bool mpi, const char* entry, const std::string& what);

// Its file is there; whether it loads is seen when it is used.
bool has_plugin(const std::string& name);

}  // namespace gccl
