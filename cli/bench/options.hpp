// What a user may ask of `gccl bench`.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/elements/reduction.hpp"

namespace gccl::bench {

struct Options {
  std::vector<Collective> collectives;
  std::vector<std::string> algorithms;  // names of algorithms; "auto", "all"
  std::uint64_t bytes_min = 8, bytes_max = 64 << 20, factor = 4;
  Dtype dtype = Dtype::f32;
  Reduction op = Reduction::sum;
  unsigned iterations = 20, warmup = 5;
  Rank root = 0;
  Count shares = 1, lanes = 1;
  unsigned window = 8;
  bool out_of_place = true, in_place = true;
  Rank ranks_per_node = 0;  // 0: as the machine is
  std::string json;         // a file, "-" for standard output, or empty
};

// For the help of others.
Command option_table();

// `args` without program and subcommand; `ranks` of the communicator.
Parsed<Options> parse_options(std::vector<std::string> args, Rank ranks);

}  // namespace gccl::bench
