// Compares two results, steps of LLMs, sweeps or tuning tables, before and after an upgrade: gccl compare.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

// "gccl/comparison/1" (docs/formats.md) of two "gccl/result/1", "gccl/step/1", "gccl/tuning/1" or "gccl/table/1"
// documents: what both have. An entry is slower if it takes more than `threshold_percent` longer in the second. Throws
// json::InputError: another kind of document, two kinds, nothing that both have.
nlohmann::json compare(const json::Node& before, const json::Node& after, double threshold_percent);

// Without the control characters that names from files may hold.
std::string comparison_text(nlohmann::json comparison);

}  // namespace gccl::sim
