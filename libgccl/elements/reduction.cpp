#include "libgccl/elements/reduction.hpp"

#include <array>

namespace gccl {
namespace {

constexpr std::array<std::string_view, 5> kReductionNames = {"sum", "prod", "max", "min", "avg"};

}  // namespace

std::span<const std::string_view> reduction_names() { return kReductionNames; }
std::string_view name(Reduction op) { return kReductionNames[std::size_t(op)]; }

std::optional<Reduction> reduction_named(std::string_view name) {
  for (std::size_t i = 0; i < kReductionNames.size(); ++i)
    if (kReductionNames[i] == name) return Reduction(i);
  return std::nullopt;
}

}  // namespace gccl
