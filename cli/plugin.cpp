#include "cli/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "cli/installation.hpp"
#include "cli/plugin_abi.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

std::string file_of(const std::string& name) { return "libgccl_" + name + ".so"; }

// What a function without arguments of the library says; empty where there is none.
std::string said_by(void* library, const char* function) {
  const auto f = reinterpret_cast<const char* (*)()>(dlsym(library, function));
  return f ? f() : "";
}

}  // namespace

bool has_plugin(const std::string& name) {
  std::error_code error;
  for (const std::filesystem::path& folder : plugin_folders())
    if (std::filesystem::exists(folder / file_of(name), error)) return true;
  return false;
}

void* plugin(const std::string& name, const char* entry, const std::string& advice) {
  const std::string file = file_of(name);
  std::string looked;
  for (const std::filesystem::path& folder : plugin_folders()) {
    const std::filesystem::path path = folder / file;
    looked += (looked.empty() ? "" : ", ") + folder.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    // Local: SimGrid defines MPI's functions too, and nobody may get them by chance.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* function = library ? dlsym(library, entry) : nullptr;
    if (!function) throw json::InputError(fmt::format("{} does not load: {}; {}", path.string(), dlerror(), advice));
    const std::string of = said_by(library, "gccl_plugin_version");
    if (of != GCCL_VERSION_TEXT)
      throw json::InputError(fmt::format("{} belongs to gccl {}, this is gccl {}: install the whole tree again",
                                         path.string(), of.empty() ? "of another version" : of, GCCL_VERSION_TEXT));
    if (said_by(library, "gccl_plugin_abi") != GCCL_PLUGIN_ABI)
      throw json::InputError(fmt::format(
          "{} belongs to another build of gccl {}: build or install the whole tree again", path.string(), of));
    return function;
  }
  throw json::InputError(fmt::format("there is no {} in {}; {}", file, looked, advice));
}

void* runtime_plugin(bool mpi, const char* entry, const std::string& what) {
  const std::string name = mpi ? "bench_mpi" : "bench_native";
  return plugin(name, entry,
                fmt::format("{} is part of a whole build: cmake --build FOLDER --target gccl_{}{}", what, name,
                            mpi ? " (needs an MPI: libopenmpi-dev)" : ""));
}

}  // namespace gccl
