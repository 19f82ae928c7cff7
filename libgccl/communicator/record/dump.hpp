// What a rank was doing: the latest calls on its communicators, as a file for `gccl doctor`, people, and PyTorch's
// torchfrtrace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/environment.hpp"
#include "libgccl/base/status.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

struct DumpedCall {
  std::uint32_t sequence = 0;               // of a collective
  std::string name;                         // "allreduce", "send", ...
  std::string text;                         // "allreduce #17 of 1024 x f32, sum"
  bool own = true;                          // the program's; else a part of splitting, freeing and the like
  std::string dtype, op;                    // as GCCL names them
  std::string algorithm;                    // empty: not chosen yet, or none
  Count count = 0;                          // as the caller gave it, or the sum of the lengths that it gave
  std::uint64_t lengths = 0;                // of allgatherv and reduce_scatterv: a checksum of all lengths
  Rank root = 0;                            // or the peer of a send or recv
  const char* state = "";                   // scheduled, started, completed
  bool waits = false;                       // it has not ended, and a thread does nothing else until it has
  std::uint32_t number = 0;                 // transfers: of those to or from that rank, from 1 on
  std::int64_t began_ns = 0, ended_ns = 0;  // since 1970; 0: not known
  Rank waits_for = 0;      // where it is started: a rank of the communicator, its own where that is not known
  std::string waits_what;  // and for what, in words; empty: it waits for nothing
};

struct DumpedCommunicator {
  std::uint64_t id = 0;
  bool world = false;
  Rank rank = 0;
  std::vector<Rank> world_rank;
  std::string failure;                       // why it goes no further; empty: it does
  int failure_code = 0;                      // a GCCL_Result
  Rank failure_rank = 0;                     // whom that is about, or who has found it
  std::vector<Rank> failure_ranks;           // of the job: where it is about several, as far as this rank knows
  std::int64_t failure_unpolled_ns = 0;      // for so long before it no thread of this rank had polled
  std::vector<DumpedCall> calls, transfers;  // collectives in order; sends and receives in flight
  struct Messages {
    Rank peer = 0;
    std::uint32_t sent = 0, received = 0;
  };
  std::vector<Messages> messages;  // that were begun so far, with each rank with which some were
};

struct DumpedRank {
  std::uint64_t world = 0;  // what `rank` is a number in: the same on all ranks until processes join
  Rank rank = 0, size = 1;
  std::string host, reason;
  std::int64_t written_ns = 0;  // since 1970
  std::vector<DumpedCommunicator> communicators;
  std::optional<std::size_t> skipped;  // communicators that another thread was busy with; none: perhaps all others
};

// `path` ending in ".json" gets GCCL's own form (docs/formats.md: gccl/dump/1), any other the pickle that PyTorch's
// flight recorder writes, with GCCL's own form within it. The file appears whole; a device, a pipe
// or what a link leads to is written as it is.
Status write_dump(const DumpedRank& rank, const std::string& path);

// GCCL_DUMP and GCCL_DUMP_SIGNAL: empty prefix: no dumps but those that are asked for.
struct DumpSettings {
  std::string prefix;
  bool json = false;
};
Status read_dump_settings(const Environment& environment, DumpSettings* out);
std::string dump_file(const DumpSettings& settings, Rank rank);
// How often the signal of GCCL_DUMP_SIGNAL has come.
std::uint32_t dumps_asked();

}  // namespace gccl
