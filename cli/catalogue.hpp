// The JSON files that are shipped: scenarios, workloads, topologies, cost models.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

struct CatalogueEntry {
  std::string name;  // the file's name without .json
  std::filesystem::path file;
};

// Where files of a kind ("scenarios", "availability" in their folder, "workloads", "topologies", "cost-models") are
// looked for: ./KIND, then those that were built or installed with the program.
std::vector<std::filesystem::path> catalogue_folders(std::string_view kind);
// Files of one kind, or that do not say theirs, by name; of two with one name the first.
std::vector<CatalogueEntry> catalogue(std::string_view kind);
// The file that a user means: the one that there is, else the shipped one of this name. Throws json::InputError, with
// the nearest names and where it looked.
std::filesystem::path find_shipped(std::string_view kind, const std::string& name);
// The same for what gccl run plays: a scenario or a workload.
std::filesystem::path find_shipped_to_run(const std::string& name);
// Lets scenarios name shipped clusters, and clusters shipped parameter sets.
void share_catalogue();

}  // namespace gccl
