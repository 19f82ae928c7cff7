// What is done to simulated machines that run the fault protocol, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

constexpr Nanos kMillisecond = 1'000'000;

struct Injury {
  enum class Kind : std::uint8_t {
    crash,    // a
    restart,  // a crashed machine begins anew, as a process that wants to join
    pause,    // a
    resume,   // a
    cut,      // nothing from a reaches b
    mend,     // it does again
  };
  Nanos at = 0;
  Kind kind = Kind::crash;
  Rank a = 0, b = 0;
};

struct FaultTimeline {
  Rank ranks = 4;
  Rank spares = 0;               // join, with the ranks after `ranks`
  std::vector<Nanos> begins;     // when each machine begins, spares included; missing: at 0
  std::vector<Injury> injuries;  // by time
  // A machine dies, or pauses for so long, when it has sent so many packets; the last one still leaves. Another dies
  // soon after it, as of one power supply.
  struct AfterPackets {
    Rank rank;
    std::uint64_t packets;
    Nanos pause = 0;
    std::optional<Rank> along = {};
    Nanos along_after = 0;
  };
  std::vector<AfterPackets> after_packets;
  bool system_reports = false;  // of crashes, as the system of one machine does
  // Ranks that did not fail may well seem to: `injuries` separate groups of ranks, or pause some for long.
  bool partitions = false;

  // Which part of the packets is lost and comes twice, until `heal`. Delays are uniform, so packets overtake each
  // other, always.
  double loss = 0, duplication = 0;
  Nanos delay_min = 50'000, delay_max = 200'000;
  Nanos heal = 0;  // cuts are mended then, and the paused go on

  Nanos detection = 200'000'000;
  std::uint32_t helpers = 3;
  unsigned rounds = 5;  // of work in each epoch, in which all send to all
};

// Crashes, pauses, cuts in one or both directions, partitions, loss, duplication, reordering, late starts, restarts and
// spares, few or many, on so many machines, small numbers more often. The same on every platform.
FaultTimeline random_timeline(std::uint64_t seed, Rank ranks_min, Rank ranks_max);

// In a few words, for a report of a failure.
std::string text(const FaultTimeline& timeline);

}  // namespace gccl::sim
