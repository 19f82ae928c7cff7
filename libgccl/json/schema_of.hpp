// What a JSON file says that it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gccl::json {

// The "schema" of the file's object, such as "gccl/scenario/1": read as far as that, as the file may be any. Nothing
// where it says none, and where it cannot be read or is no JSON up to there.
std::optional<std::string> schema_of(const std::filesystem::path& file);

}  // namespace gccl::json
