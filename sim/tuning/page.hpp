// A sweep as a self-contained HTML page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/tuning/counterparts.hpp"

namespace gccl::sim {

// A file made from the sweep, shown ready to copy.
struct ShownFile {
  std::string title, use, text;  // what it is for, and the commands or variables that use it
};

std::string tuning_page(const nlohmann::json& document, const std::vector<ShownFile>& files, const Exporting& how);

}  // namespace gccl::sim
