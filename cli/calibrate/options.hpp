// What a user may ask of `gccl calibrate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::calibrate {

struct Options {
  std::string output, cluster_output, json, name;
  std::uint64_t bytes_min = 8, bytes_max = 16 << 20, factor = 2;
  double seconds = 15;
  Rank pairs = 4;  // of each class, the one that is measured in full among them
};

// The sizes that are measured, ascending; --factor may pass over bytes_max.
inline std::vector<double> sizes_of(const Options& o) {
  std::vector<double> all;
  for (std::uint64_t bytes = o.bytes_min;; bytes *= o.factor) {
    all.push_back(double(bytes));
    if (bytes > o.bytes_max / o.factor) return all;
  }
}

// For the help of others.
Command option_table();

// `args` without program and subcommand.
Parsed<Options> parse_options(std::vector<std::string> args);

}  // namespace gccl::calibrate
