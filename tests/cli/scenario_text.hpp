// A small scenario as a user writes it, and the form that errors have.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/support/program.hpp"

namespace gccl::test {

inline bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

inline std::string scenario(
    const std::string& rest = R"("runs":[{"collective":"allreduce","bytes":64,"algorithms":"ring"}])") {
  return fmt::format(R"({{"schema":"gccl/scenario/1","name":"t","cluster":"{}",{}}})",
                     (kRoot / "topologies/pcie-box.json").string(), rest);
}

}  // namespace gccl::test
