// An explanation ("gccl/explanation/1", of gccl explain) for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gccl::sim {

// Tables and sentences. `all`: why every protocol of every algorithm lost, not only the best of each.
std::string explanation_text(const nlohmann::json& explanation, bool all);

// What each candidate's time goes to, as bars, and the predicted choice by size.
std::string explanation_svg(const nlohmann::json& explanation);

}  // namespace gccl::sim
