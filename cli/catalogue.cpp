#include "cli/catalogue.hpp"

#include <algorithm>

namespace gccl {

std::vector<CatalogueEntry> catalogue(std::string_view kind) {
  std::error_code error;
  std::vector<std::filesystem::path> folders{std::filesystem::path(kind)};
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "share/gccl" / kind);
  std::vector<CatalogueEntry> all;
  for (const auto& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".json") continue;
      const std::string name = entry.path().stem().string();
      const auto same = [&](const CatalogueEntry& e) { return e.name == name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back({name, entry.path()});
    }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace gccl
