// Tuning tables as files: "schema": "gccl/table/1" (docs/formats.md, table.schema.json).
#pragma once

#include <filesystem>
#include <string>

#include "libgccl/json/reader.hpp"
#include "libgccl/select/tuning_table.hpp"

namespace gccl {

// Throws json::InputError: unknown names, ranges that are inverted, that overlap or that the machine does not have.
TuningTable read_tuning_table(const json::Node& file);
TuningTable load_tuning_table(const std::filesystem::path& file);

// The text of a file that reads back as the same table.
std::string write_tuning_table(const TuningTable& table);

}  // namespace gccl
