// The measuring loop of `gccl bench`, and what its plug-ins give to the program.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/carrier.hpp"
#include "cli/bench/options.hpp"

namespace gccl::bench {

// parse_options, handed over so that plug-ins need no option table.
using Parse = std::variant<Options, Help, Wrong> (*)(std::vector<std::string> args, Rank ranks);

// Measures over a backend whose ranks have met. 0 all right, 1 wrong elements or a failing backend, 2 bad input.
int run(Carrier& comm, const std::vector<std::string>& args, Parse parse);

// What each plug-in exports as gccl_bench: the ranks meet, run() measures. `backends` as in GCCL_BACKENDS, empty for
// the default. Returns run()'s exit code, or 2 with `error` where the ranks do not meet.
using Entry = int (*)(const std::string& backends, const std::vector<std::string>& args, Parse parse,
                      std::string* error);

}  // namespace gccl::bench
