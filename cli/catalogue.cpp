#include "cli/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/installation.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/json/schema_of.hpp"

namespace gccl {

namespace fs = std::filesystem;

namespace {

// A result, say, that was written into the folder. What says nothing stays: a user's file with a mistake in it.
bool is_of_another_kind(const fs::path& file, std::string_view kind) {
  const std::string_view wanted = kind == "topologies"     ? "gccl/cluster/1"
                                  : kind == "scenarios"    ? "gccl/scenario/1"
                                  : kind == "availability" ? "gccl/availability/1"
                                  : kind == "workloads"    ? "gccl/workload/1"
                                                           : "gccl/parameters/1";
  const auto schema = json::schema_of(file);
  return schema && schema != wanted && !(kind == "scenarios" && schema == "gccl/availability/1");
}

}  // namespace

std::vector<fs::path> catalogue_folders(std::string_view kind) {
  if (kind == "availability") {
    std::vector<fs::path> folders = catalogue_folders("scenarios");
    for (fs::path& folder : folders) folder /= kind;
    return folders;
  }
  std::vector<fs::path> folders{fs::path(kind)};
  for (const fs::path& folder : data_folders(kind)) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(folder, error);  // a build folder has links to the sources
    folders.push_back(error ? folder : real);
  }
  return folders;
}

std::vector<CatalogueEntry> catalogue(std::string_view kind) {
  std::error_code error;
  std::vector<CatalogueEntry> all;
  const auto add = [&](const fs::path& folder, const std::string& before) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".json" || is_of_another_kind(entry.path(), kind)) continue;
      const std::string name = before + entry.path().stem().string();
      const auto same = [&](const CatalogueEntry& e) { return e.name == name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back({name, entry.path()});
    }
  };
  for (const fs::path& folder : catalogue_folders(kind)) {
    add(folder, kind == "availability" ? "availability/" : "");
    if (kind == "scenarios") add(folder / "faults", "faults/"), add(folder / "availability", "availability/");
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

namespace {

std::string_view singular(std::string_view kind) {
  return kind == "topologies"     ? "topology"
         : kind == "scenarios"    ? "scenario"
         : kind == "availability" ? "availability study"
         : kind == "workloads"    ? "workload"
                                  : "parameter set";
}

fs::path find_among(std::span<const std::string_view> kinds, const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error) && !fs::is_directory(name, error)) return name;
  std::vector<std::string> known;
  std::string what, looked;
  for (const std::string_view kind : kinds) {
    for (const CatalogueEntry& e : catalogue(kind)) {
      if (e.name == name || e.name + ".json" == name || e.name == fmt::format("{}/{}", kind, name)) return e.file;
      if (e.name.find('/') == std::string::npos || name.starts_with("fault") || kind == "availability")
        known.push_back(e.name);
    }
    what += fmt::format("{}{}", what.empty() ? "" : " or ", singular(kind));
    for (const fs::path& folder : catalogue_folders(kind))
      if (fs::is_directory(folder, error)) looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  if (fs::is_directory(name, error)) throw json::InputError(fmt::format("{}: is a folder, expected a file", name));
  if (name.find('/') != std::string::npos) throw json::InputError(fmt::format("{}: no such file", name));
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw json::InputError(fmt::format("{}: no such file, and no shipped {} of this name{}{}", name, what,
                                     suggestion(name, names),
                                     looked.empty() ? "" : fmt::format(" (looked in {})", looked)));
}

}  // namespace

fs::path find_shipped(std::string_view kind, const std::string& name) { return find_among(std::span(&kind, 1), name); }

fs::path find_shipped_to_run(const std::string& name) {
  static constexpr std::string_view kKinds[] = {"scenarios", "workloads"};
  return find_among(kKinds, name);
}

void share_catalogue() { set_shipped_folders({catalogue_folders("topologies"), catalogue_folders("cost-models")}); }

}  // namespace gccl
