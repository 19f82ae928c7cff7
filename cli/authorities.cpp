#include "cli/authorities.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "cli/output.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

Authorities authorities_of_environment() {
  static bool warned = false;
  if (!std::exchange(warned, true))
    for (const std::string& text : unknown_variables(environ)) write_stderr(fmt::format("gccl warning: {}\n", text));
  Authorities authorities;
  const Status s = load_authorities(process_environment(), &authorities);
  if (!s.ok()) throw json::InputError(s.text());
  return authorities;
}

std::optional<std::filesystem::path> tuning_file_of_environment() {
  const std::string file = read_text(process_environment(), "GCCL_TUNING_FILE");
  return file.empty() ? std::nullopt : std::optional<std::filesystem::path>(file);
}

}  // namespace gccl
