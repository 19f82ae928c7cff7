// An explanation ("gccl/explanation/1", of gccl explain) for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gccl::sim {

// Names from files may hold control characters, which no text or picture gets.

// Tables and sentences. `all`: why every protocol of every algorithm lost, not only the best of each.
std::string explanation_text(nlohmann::json explanation, bool all);

// What each candidate's time goes to, as bars, and the predicted choice by size.
std::string explanation_svg(nlohmann::json explanation);

}  // namespace gccl::sim
