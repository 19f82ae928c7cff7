#include "libgccl/cluster/shipped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "libgccl/json/nearest.hpp"
#include "libgccl/json/schema_of.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;

ShippedFolders& shipped() {
  static ShippedFolders folders;
  return folders;
}

// Those of the files that are of the kind.
void add_names(const fs::path& folder, std::string_view schema, std::vector<std::string>& names, bool with_extension) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" && json::schema_of(entry.path()) == schema)
      names.push_back((with_extension ? entry.path().filename() : entry.path().stem()).string());
}

bool is_bare(const std::string& name) { return name.find('/') == std::string::npos; }

// `file` is the one that `name` means where it is; the shipped one otherwise, if any.
fs::path existing(const fs::path& file, const std::string& name, const std::vector<fs::path>& folders) {
  std::error_code error;
  if (fs::is_regular_file(file, error)) return file;
  if (is_bare(name))
    for (const fs::path& folder : folders)
      for (const fs::path& candidate : {folder / name, folder / (name + ".json")})
        if (fs::is_regular_file(candidate, error)) return candidate;
  return {};
}

fs::path find(const json::Node& node, std::string_view schema, const std::vector<fs::path>& folders) {
  const fs::path file = node.path();
  const std::string name = node.string();
  if (const fs::path there = existing(file, name, folders); !there.empty()) return there;
  std::error_code error;
  if (fs::exists(file, error)) node.fail(fmt::format("{} is no regular file", file.string()));
  const bool bare = is_bare(name);
  std::vector<std::string> names;
  const fs::path here = file.has_parent_path() ? file.parent_path() : ".";
  std::string looked = here.string();
  add_names(here, schema, names, true);
  if (bare)
    for (const fs::path& folder : folders) {
      if (!fs::is_directory(folder, error)) continue;
      looked += ", " + folder.string();
      add_names(folder, schema, names, false);
    }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<std::string_view> views(names.begin(), names.end());
  node.fail(fmt::format("there is no file {}{}{}", file.string(),
                        suggestion(bare ? name : file.filename().string(), views),
                        bare ? fmt::format(" (looked in {})", looked) : ""));
}

}  // namespace

void set_shipped_folders(ShippedFolders folders) { shipped() = std::move(folders); }
fs::path cluster_file(const json::Node& name) { return find(name, "gccl/cluster/1", shipped().clusters); }
fs::path parameters_file(const json::Node& name) { return find(name, "gccl/parameters/1", shipped().parameters); }
fs::path parameters_file(const fs::path& folder, const std::string& name) {
  return existing(folder / name, name, shipped().parameters);
}

}  // namespace gccl
