// A result as text for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gccl::sim {

// Tables of "gccl/result/1": for each run, cluster and engine one line per size and one column per algorithm, or one
// line per algorithm where there is a single size; then how good the planner's choices were, and the findings
// (sim/report/findings.hpp). `columns`: the terminal's width; wider tables continue below. The fastest is marked *, the
// planner's choice @.
std::string result_tables(nlohmann::json result, std::size_t columns);

// The expectations with what was found; only the broken ones when `broken_only`.
std::string expectation_lines(const nlohmann::json& result, bool broken_only);

// Columns as wide as their widest cell; the first is flush left, the others right. Splits into blocks of columns that
// fit the width, each beginning with the first column.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t width);

// 12.34 us, 1.234 ms: four significant digits.
std::string format_time(double us);

// So many significant digits, and all of a whole number's: 3.1, 7130.
std::string format_number(double number, int digits = 3);

}  // namespace gccl::sim
