// Where this program is, and what was built or installed with it.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace gccl {

// This program's own file, or an empty path.
std::filesystem::path this_program();
// Folders that may hold the program's plug-ins.
std::vector<std::filesystem::path> plugin_folders();
// Where the MPI drop-in may be: of a build folder, of an installation.
std::vector<std::filesystem::path> drop_in_files();
// Folders that may hold shipped files of a kind ("topologies"): share/gccl/KIND of a build folder or of an
// installation.
std::vector<std::filesystem::path> data_folders(std::string_view kind);

}  // namespace gccl
