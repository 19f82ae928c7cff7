// The parts of the program that need SimGrid, MPI or the runtime: private shared libraries that are loaded when a
// command needs them, so that the others start at once and run where these are not installed.
#pragma once

#include <string>

namespace gccl {

// The function `entry` of libgccl_NAME.so, from lib/gccl beside the program (build folder) or beside its bin folder
// (installed). It stays loaded. Throws json::InputError where it was built for another version of the program or from
// other headers, and with where it was looked for and `advice` where there is none, or with what the system said where
// it does not load.
void* plugin(const std::string& name, const char* entry, const std::string& advice);

// Its file is there; whether it loads is seen when it is used.
bool has_plugin(const std::string& name);

}  // namespace gccl
