#include "cli/authorities.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "cli/output.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "libgccl/cluster/load_authorities.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

Authorities authorities_of_environment() {
  static bool warned = false;
  if (!std::exchange(warned, true))
    for (const std::string& text : unknown_variables(environ)) write_stderr(fmt::format("gccl warning: {}\n", text));
  Authorities authorities;
  const Status s = load_authorities([](const char* name) { return std::getenv(name); }, &authorities);
  if (!s.ok()) throw json::InputError(s.text());
  return authorities;
}

}  // namespace gccl
