// The options of gccl run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gccl {

struct RunArguments {
  std::vector<std::string> scenarios;  // all that are to be run
  std::string scenario;                // that of them which is
  std::string engine, planner, json, csv, html, trace, resume, scenario_out, seeds, transport;
  std::vector<std::string> what_if;
  std::optional<std::int64_t> seed;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool quiet = false, namespaces = false;
};

}  // namespace gccl
