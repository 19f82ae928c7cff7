#include "cli/installation.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;

fs::path program_folder() { return this_program().parent_path(); }

}  // namespace

// Follows links: the program may be one in a folder of links.
fs::path this_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program;
}

// A build folder holds the program itself, an installation holds it in its bin folder. GCCL_PLUGINS_FROM_BIN and
// GCCL_DATA_FROM_BIN are relative, so that an installed tree can be moved.
std::vector<fs::path> plugin_folders() {
  const fs::path here = program_folder();
  if (here.empty()) return {};
  return {here / "lib/gccl", (here / GCCL_PLUGINS_FROM_BIN).lexically_normal()};
}

std::vector<fs::path> drop_in_files() {
  const fs::path here = program_folder();
  return {here / "pmpi/libgccl_pmpi.so", (here / GCCL_PLUGINS_FROM_BIN "/../libgccl_pmpi.so").lexically_normal()};
}

std::vector<fs::path> data_folders(std::string_view kind) {
  const fs::path here = program_folder();
  if (here.empty()) return {};
  return {here / "share/gccl" / kind, (here / GCCL_DATA_FROM_BIN / kind).lexically_normal()};
}

}  // namespace gccl
