// What the coordinator of `gccl run --engine real` and its ranks share: the program that a rank carries out, what it
// reports, and the moments at which faults strike. No JSON and nothing of the simulation here.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "libgccl/base/clock.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl::real {

// How far a rank has come when a fault strikes.
struct Moment {
  enum class At : std::uint8_t {
    compute,    // in computing before operation `number`, `after` from its begin
    operation,  // in operation `number`, when `part` of its usual time has passed, or at its end
    done,       // `after` from the completion of operation `number`
    agreement,  // `after` from the begin of the agreement of this number, from 1 on
    epoch,      // `after` from entering this epoch; 1 is the start
  };
  At at = At::compute;
  std::uint64_t number = 0;
  Nanos after = 0;
  double part = 0;
};

struct Strike {
  std::size_t fault = 0;
  Rank rank = 0;  // whose moment it is
  Moment moment;
  // SIGKILL: this rank ends itself then. SIGSTOP: it waits until the coordinator has stopped it. 0: it only reports,
  // and the coordinator acts.
  int signal = 0;
  // A rank that is stopped then reports nothing: the coordinator acts so long after this stop of it has begun.
  std::optional<std::size_t> stop = {};
  Nanos delay = 0;
};

struct RankCall {
  Call call{};
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
};

// Pairs of ranks that calls are planned around, at most.
constexpr std::size_t kPairsMax = 16;

// One message of a rank to the coordinator; shorter than PIPE_BUF, so that all ranks write to one pipe.
struct Report {
  enum class Kind : std::uint32_t {
    ready,           // connected with all
    begins,          // a: operation; computing included
    done,            // a: operation, b: wrong elements, in epoch `epoch`
    interrupted,     // text: what the operation returned
    strikes,         // a: fault
    works,           // in epoch `epoch`
    knows,           // a: rank that has failed
    ended,           // a: How
    joined,          // it is a rank now, and was not from the start
    link_slow,       // a, b: from which rank to which, before operation `operation`
    link_recovered,  // likewise
    planned,         // from operation `operation` on, around the links between a `pairs` of ranks
  };
  enum class How : std::uint64_t { finished, failed, out, broken };  // broken: text says why; never expected
  Kind kind{};
  Rank rank = 0;
  std::uint64_t a = 0, b = 0;
  std::uint32_t epoch = 0;
  Nanos time = 0;  // now_ns(), the same for all processes
  std::uint64_t operation = 0;
  double rate = 0, expected = 0;  // of a slow link, in bytes a second
  std::uint8_t pairs[kPairsMax][2] = {};
  char text[200] = {};
};

// Ranks and spares, at most.
constexpr int kProcessesMax = 96;

// Memory that the coordinator and all ranks see.
struct Shared {
  std::atomic<int> go, end;
  std::atomic<double> slowdown[kProcessesMax];  // of a rank's own work, spares included
  std::atomic<Nanos> stood[kProcessesMax];      // a rank's process was stopped for so long in all
  std::atomic<int> heeded[kProcessesMax];       // so many of the strikes that it reported
};

struct RankProgram {
  Rank rank = 0, ranks = 0;  // who it is, in the scenario, which has so many besides spares
  bool joins = false;        // a job that runs
  std::vector<RankCall> calls;
  std::vector<Strike> strikes;  // of this rank
  Nanos compute = 0;            // before each operation
  bool goes_on = false;         // any policy but fail
  bool looks_at_links = false;  // and reports what its log says of them
  Nanos replacement = 0;  // so long after a failure others may still come in the place of failed ranks; 0: none do
  int reports = -1;       // where to write them
  Shared* shared = nullptr;
};

}  // namespace gccl::real
