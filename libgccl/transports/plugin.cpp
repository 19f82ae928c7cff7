#include "libgccl/transports/plugin.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "libgccl/base/environment.hpp"
#include "libgccl/base/split_text.hpp"

namespace gccl {
namespace {

// Where plug-ins lie: in the user's folders, and in the library's own, which is lib/gccl of an installation and of a
// build folder, or the folder of the plug-in that this code is part of. A build folder may be called gccl, too, as
// add_subdirectory() makes it.
std::vector<std::string> plugin_folders() {
  const std::string path = read_text(process_environment(), "GCCL_BACKEND_PATH");
  std::vector<std::string> folders = split_text(path, ':');
  static const char here = 0;
  Dl_info info{};
  if (::dladdr(&here, &info) == 0 || !info.dli_fname) return folders;
  const std::filesystem::path folder = std::filesystem::path(info.dli_fname).parent_path();
  std::error_code missing;
  const std::size_t users = folders.size();
  for (const auto& own : {folder / "lib/gccl", folder / "gccl"})
    if (std::filesystem::is_directory(own, missing)) folders.push_back(own);
  if (folder.filename() == "gccl") folders.push_back(folder);
  if (folders.size() == users) folders.push_back(folder / "gccl");  // where they would be
  return folders;
}

// What the table lacks first; null: nothing.
const char* missing_in(const GCCL_Backend& b) {
  const std::pair<const char*, bool> entries[] = {{"name", b.name != nullptr},
                                                  {"open", b.open != nullptr},
                                                  {"close", b.close != nullptr},
                                                  {"open_port", b.open_port != nullptr},
                                                  {"connect_port", b.connect_port != nullptr},
                                                  {"port_connected", b.port_connected != nullptr},
                                                  {"close_port", b.close_port != nullptr},
                                                  {"send", b.send != nullptr},
                                                  {"receive", b.receive != nullptr},
                                                  {"poll", b.poll != nullptr},
                                                  {"fault", b.fault != nullptr},
                                                  {"cancel", b.cancel != nullptr},
                                                  {"abort", b.abort != nullptr}};
  for (const auto& [name, there] : entries)
    if (!there) return name;
  return nullptr;
}

}  // namespace

Status load_plugin(const std::string& name, const std::string& built_in, const GCCL_Backend** backend, void** library) {
  const std::string file = fmt::format("libgccl_backend_{}.so", name);
  std::string tried;
  for (const std::string& folder : plugin_folders()) {
    const std::string full = fmt::format("{}/{}", folder, file);
    if (::access(full.c_str(), F_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + folder;
      continue;
    }
    void* const handle = ::dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return Status::error(fmt::format("cannot load backend {}: {}", name, ::dlerror()), GCCL_ERR_SYSTEM);
    const auto entry = reinterpret_cast<GCCL_Backend_entry>(::dlsym(handle, GCCL_BACKEND_ENTRY));
    const GCCL_Backend* const found = entry ? entry() : nullptr;
    const bool known = found && found->abi == GCCL_BACKEND_ABI;
    const char* const missing = known ? missing_in(*found) : nullptr;
    if (!known || missing) {
      const std::string why =
          !entry    ? "does not export " GCCL_BACKEND_ENTRY
          : !found  ? "has no backend to offer"
          : missing ? fmt::format("has a table without {}", missing)
                    : fmt::format("was built for interface {}, this library has {}", found->abi, GCCL_BACKEND_ABI);
      ::dlclose(handle);  // what it said is gone now
      return Status::error(fmt::format("{} {}", full, why), GCCL_ERR_NOT_SUPPORTED);
    }
    *backend = found;
    *library = handle;
    return {};
  }
  return Status::error(fmt::format("backend \"{}\" is not built in ({}), and there is no {} in {}; "
                                   "GCCL_BACKEND_PATH may name other folders",
                                   name, built_in, file, tried),
                       GCCL_ERR_INVALID_ARGUMENT);
}

}  // namespace gccl
