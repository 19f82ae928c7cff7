// From a point and what came out of it to its row of "gccl/result/1": this and choices.hpp, which adds
// "fastest" once all rows are there, are the one place that writes rows. Judge and reports read rows alone.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/scenario/run/play.hpp"

namespace gccl::sim {

// The fields of a row that say what the point is; the others say what came out.
nlohmann::json row_head(const Campaign& campaign, const Point& point);
// The heads of all points' rows: what expectations are checked against before anything runs.
std::vector<nlohmann::json> row_heads(const Campaign& campaign);

// Throws BytesOverflow.
nlohmann::json result_row(const Campaign& campaign, const Point& point, const Played& played);

// Fills in where the row of points[index] is in the campaign: a journal may know the point from another place of the
// scenario.
void set_place(const Campaign& campaign, std::size_t index, nlohmann::json& row);

}  // namespace gccl::sim
