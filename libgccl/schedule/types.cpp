#include "libgccl/schedule/types.hpp"

#include <array>

namespace gccl {
namespace {

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kDefinitions)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDefinitions[i].name;
  return names;
}();
static_assert(definition(Collective::barrier).name == "barrier");
static_assert(definition(Collective::reduce_scatterv).name == "reduce_scatterv" && kNames.size() == 13);

}  // namespace

std::span<const std::string_view> collective_names() { return kNames; }

std::string_view name(Collective kind) {
  return std::size_t(kind) < kNames.size() ? kNames[std::size_t(kind)] : "unknown collective";
}

std::optional<Collective> collective_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return Collective(i);
  return std::nullopt;
}

}  // namespace gccl
