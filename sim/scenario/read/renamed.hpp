// Keys of scenarios that had another name in earlier releases. The old name stays accepted.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

// Under its name, or the one that it had once; both at once are an error.
inline std::optional<json::Node> find_either(const json::Node& node, std::string_view name, std::string_view old) {
  if (!node.has(name)) return node.find(old);
  if (node.has(old)) node.at(old).fail(fmt::format("is \"{}\" by its old name: expected one of them", name));
  return node.find(name);
}

}  // namespace gccl::sim
