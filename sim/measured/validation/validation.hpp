// Predictions beside measurements, as a document, a table and a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/measured/predict/predict.hpp"

namespace gccl::sim {

// "gccl/validation/1" (docs/formats.md): rows, statistics with and without outliers, what was skipped. `engine`:
// "closed", "model" or "simgrid"; `parameters`: the file that replaced the cluster's own, or empty.
struct ValidatedWith {
  std::string cluster, cluster_file, parameters, engine;
};
nlohmann::json validation(const Measured& measured, const std::vector<Predicted>& predicted,
                          const MeasuredPoints& points, const ValidatedWith& with);

// {"reason", "rows", "first"} for each reason, that of most rows first; a document's "skipped".
nlohmann::json skipped_json(const std::vector<SkippedRow>& skipped);
// The same for a terminal.
std::string skipped_text(const nlohmann::json& skipped);
// The same, and the remarks, of a validation; or of what was read.
std::string left_out_text(nlohmann::json document);
std::string left_out_text(const Measured& measured);

// The system of a group of the statistics, and what stands for one without a name.
std::string system_name(const nlohmann::json& group);

// Statistics first, then outliers, the worst points and what was skipped. `columns`: the width of the terminal.
std::string validation_text(nlohmann::json document, std::size_t columns);
// The rows; columns as in the document.
std::string validation_csv(const nlohmann::json& document);
// A page that needs nothing else: predicted against measured, and the tables.
std::string validation_html(const nlohmann::json& document);

}  // namespace gccl::sim
