// The rows of a result as CSV (RFC 4180), for spreadsheets and scripts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gccl::sim {

// The row's fields that are single values, named as in "gccl/result/1", and whether a row with faults completed. Later
// versions may append some at the end.
const std::vector<std::string>& csv_columns();

// A line of names, then one line for each row of the result. Absent and null fields are empty.
std::string result_csv(const nlohmann::json& result);

// The same of any list of objects, with those columns.
std::string csv_of(const nlohmann::json& rows, const std::vector<std::string>& columns);

}  // namespace gccl::sim
