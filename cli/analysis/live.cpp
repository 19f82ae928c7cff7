#include "cli/analysis/live.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child_output.hpp"
#include "cli/installation.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

std::string measure_live(Rank ranks, const std::string& collectives) {
  const std::string program = this_program().string(), number = std::to_string(ranks);
  const ChildOutput job = captured_output([&] {
    ::execl(program.c_str(), program.c_str(), "launch", "-n", number.c_str(), "--", program.c_str(), "bench",
            "--backend", "native", "--collective", collectives.c_str(), "--max-bytes", "16MiB", "--out-of-place",
            "--json", "-", nullptr);
  });
  if (!WIFEXITED(job.status) || WEXITSTATUS(job.status) != 0)
    throw json::InputError(fmt::format("--live: gccl bench on {} ranks failed", ranks));
  return job.text;
}

}  // namespace gccl
