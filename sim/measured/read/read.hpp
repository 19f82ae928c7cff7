// From benchmarks' files to rows.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/measured/measurement.hpp"

namespace gccl::sim {

// What the caller states: it fills in what a file does not say, and where the file says it, other rows are skipped.
struct StatedOfRows {
  std::optional<Collective> collective = {};
  std::optional<Rank> nodes = {}, cards = {};
  std::string system = {};  // a part of the file's name of it, in letters of any case
};

// Reads any of, recognised by what is in them:
// - CSV, of semicolons and tabs too, whose first line names columns: system, nodes, gpus_per_node, collective,
//   algorithm, protocol, bytes, time_us, algbw_GBps, busbw_GBps, source, note, of which collective, bytes and one of
//   the three measures are required;
// - what nccl-tests and rccl-tests print (the out-of-place columns);
// - what the OSU micro-benchmarks and Intel's (IMB-MPI1) print for collectives, oneCCL's benchmark, UCC's ucc_perftest
//   and Ascend's hccl_test;
// - what nccl-tests write with -J, rccl-tests with -Z csv and -Z json, and gccl bench with --json;
// - JSON of NCCL's Inspector plugin, a line, several lines or a list's item for each call of a rank: of each collective
//   and size the median over its calls of the slowest rank.
// Throws json::InputError: a file that cannot be read, is none of these, or is not what it seems to be.
Measured read_measurements(const std::vector<std::filesystem::path>& files, const StatedOfRows& stated);

// The same of texts that are at hand; `file` is how messages name them.
struct MeasuredText {
  std::string file, text;
};
Measured read_measurements(const std::vector<MeasuredText>& texts, const StatedOfRows& stated);

// "all_reduce", "AllReduce", "osu_allreduce", "all_reduce_perf"; nothing where GCCL has no such collective.
std::optional<Collective> measured_collective(std::string_view name);

}  // namespace gccl::sim
