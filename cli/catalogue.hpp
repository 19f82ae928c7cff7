// The JSON files that are shipped: scenarios, topologies, cost models.
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

// Files of one kind ("scenarios", "topologies") by name, from ./KIND and from share/gccl/KIND beside the program's bin
// folder; of two with one name the first.
std::vector<CatalogueEntry> catalogue(std::string_view kind);

}  // namespace gccl
