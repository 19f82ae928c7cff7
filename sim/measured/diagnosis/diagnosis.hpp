// What a cluster should reach, what it reached, and which cause explains the difference best.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/measured/diagnosis/hypotheses.hpp"

namespace gccl::sim {

// Less than this part of the expected bandwidth is short; a shortfall is where this share of the observations is, or
// the two longest of a curve are.
constexpr double kShort = 0.75, kShortShare = 0.25;
// Implausible is where most sizes take less than one time in so many of what a healthy cluster needs.
constexpr double kTooFast = 2;

// A cause is named where it is at least so many times as likely as a healthy cluster and as something else, and leaves
// at most that share of a healthy cluster's error.
constexpr double kNamed = 3, kErrorLeft = 0.5;
// And by this many observations, as a fixed cost and a factor are adjusted to them.
constexpr std::size_t kObservationsMin = 3;

struct DiagnosedWith {
  std::string cluster, cluster_file, parameters;
};

// After each way in which a cause may show.
using DiagnosisProgress = std::function<void(std::size_t done, std::size_t of)>;

// "gccl/diagnosis/1" (docs/formats.md). Measurements of different systems, or with different notes, are diagnosed each
// for itself. `file`, `description`: of the cluster; `parameters`: which it has.
nlohmann::json diagnosis(Measured& measured, const std::filesystem::path& file, const json::Node& description,
                         const Parameters& parameters, const DiagnosedWith& with,
                         const DiagnosisProgress& progress = {});

std::string diagnosis_text(nlohmann::json document, std::size_t columns);

}  // namespace gccl::sim
