// The measuring loop of `gccl bench`, and what its plug-ins give to the program.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/options.hpp"
#include "gccl/gccl.h"

namespace gccl::bench {

// parse_options, handed over so that plug-ins need no option table.
using Parse = Parsed<Options> (*)(std::vector<std::string> args, Rank ranks);

// The ranks meet as `config` says, and rank 0 reports what was measured. 0 all right, 1 wrong elements or a failing
// backend, 2 bad input, or with `error` where the ranks do not meet.
int run(const GCCL_Config& config, const std::vector<std::string>& args, Parse parse, std::string* error);

// What each plug-in exports as gccl_bench: run() with a configuration of its own. `backends` as in GCCL_BACKENDS, empty
// for the default.
using Entry = int (*)(const std::string& backends, const std::vector<std::string>& args, Parse parse,
                      std::string* error);

}  // namespace gccl::bench
