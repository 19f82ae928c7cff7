// What the plug-in with the runtime does for `gccl calibrate`.
#pragma once

#include <string>
#include <vector>

#include "cli/calibrate/options.hpp"
#include "gccl/gccl.h"

namespace gccl::calibrate {

// parse_options, handed over so that the plug-in needs no option table.
using Parse = Parsed<Options> (*)(std::vector<std::string> args);

// The ranks meet as `config` says, measure, and rank 0 writes. `columns`: the terminal's width. 0 all right, 1 a
// failing backend or times that tell no bandwidth, 2 wrong input or an output that cannot be written, or with `error`
// where the ranks do not meet.
int run(const GCCL_Config& config, const std::vector<std::string>& args, Parse parse, std::size_t columns,
        std::string* error);

// What the plug-in exports as gccl_calibrate; `backends` as in GCCL_BACKENDS, empty for the default.
using Entry = int (*)(const std::string& backends, const std::vector<std::string>& args, Parse parse,
                      std::size_t columns, std::string* error);

}  // namespace gccl::calibrate
