// A result as one HTML page that needs nothing else: charts, tables, utilisation, findings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gccl::sim {

// `result`: a document of schema gccl/result/1; absent or empty parts are left out of the page. `topology_svgs`:
// cluster name, SVG text. The page loads nothing from anywhere (its content policy forbids it), and no string of the
// result can become markup or script. Bytes that are not UTF-8 are shown as U+FFFD.
std::string html_report(const nlohmann::json& result,
                        const std::vector<std::pair<std::string, std::string>>& topology_svgs);

}  // namespace gccl::sim
