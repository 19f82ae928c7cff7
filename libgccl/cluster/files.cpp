#include "libgccl/cluster/files.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/shipped.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void add_file(const fs::path& file, std::vector<fs::path>& all);

void add_named(const Json& value, const fs::path& folder, std::vector<fs::path>& all) {
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) {
    if (value.is_object() && (key == "parameters" || key == "mpi_parameters" || key == "base") && child.is_string())
      if (const fs::path named = parameters_file(folder, child.get<std::string>()); !named.empty())
        add_file(named, all);
    add_named(child, folder, all);
  }
}

void add_file(const fs::path& file, std::vector<fs::path>& all) {
  const fs::path plain = file.lexically_normal();
  if (std::find(all.begin(), all.end(), plain) != all.end()) return;
  all.push_back(plain);
  std::error_code error;
  if (!fs::is_regular_file(plain, error)) return;
  std::ifstream in(plain, std::ios::binary);
  add_named(Json::parse(in, nullptr, false), plain.parent_path(), all);
}

}  // namespace

std::vector<fs::path> files_of_cluster(const fs::path& cluster) {
  std::vector<fs::path> all;
  add_file(cluster, all);
  return all;
}

}  // namespace gccl
