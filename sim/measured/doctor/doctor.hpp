// Merges the dumps of a job's ranks, and names who held up the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gccl::sim {

// A collective of one rank's on one of its communicators (in PyTorch's words: process groups).
struct DumpedCall {
  std::uint64_t sequence = 0;
  std::string what;  // must be the same on all ranks: "allreduce of 1024 x f32, sum"
  bool completed = false;
  bool waits = true;       // where it has not: a thread does nothing else until it has, or that is not known
  bool needs_all = false;  // no rank completes it before all have entered it
  std::int64_t began_ns = 0, ended_ns = 0;  // since 1970, by the rank's clock; 0: not known
  std::optional<std::uint32_t> waits_for;   // a rank of the job
  std::string waits_what;
};
// A send or a receive.
struct DumpedMessage {
  bool sends = false;
  std::uint32_t peer = 0;   // a rank of the job
  std::string what;         // "10 x f32"
  std::uint64_t bytes = 0;  // the same on both; 0: not known
  bool completed = false;
  bool waits = true;         // as a call's
  std::uint64_t number = 0;  // it meets the other side's message of the same number; 0: not known
};
// Why a communicator goes no further.
struct DumpedFailure {
  std::string text;
  int code = 0;                           // a GCCL_Result; 0: it does
  std::uint32_t rank = 0;                 // of the job: whom it is about, or who has found it
  std::vector<std::uint32_t> ranks = {};  // likewise: all whom it is about, where that is known
  std::int64_t unpolled_ns = 0;           // for so long before it no thread of this rank had polled
};
struct DumpedGroup {
  std::string name;
  std::vector<std::uint32_t> ranks;       // of the job; empty: not known
  std::vector<DumpedCall> calls;          // in order
  std::vector<DumpedMessage> messages;    // in order
  std::optional<std::uint64_t> made = 0;  // the number of its latest call where `calls` has none as late; none: unknown
  bool ends_known = true;                 // else nothing says which calls have ended, and all count as completed
  bool all_messages = false;              // since the start; else those that are not completed, and perhaps some others
  bool oldest_in_flight = false;          // is among `calls`; else calls before these may be in flight, too
  struct Begun {
    std::uint64_t sent = 0, received = 0;
  };
  std::optional<std::map<std::uint32_t, Begun>> begun = {};  // messages so far, by rank of the job; none: not known
  DumpedFailure failure = {};
};
struct DumpOfRank {
  std::string file, reason;
  std::string world;  // what ranks are numbers in: another once processes have joined; empty: not known
  std::uint32_t rank = 0;
  std::int64_t written_ns = 0;  // since 1970; 0: not known
  bool skipped = false;         // some communicators, with which another thread was busy
  std::vector<DumpedGroup> groups;
};

// What GCCL_DUMP and GCCL_Dump write in either form, and what PyTorch's own flight recorder writes: a pickle, whose
// file's name ends in the rank. Throws json::InputError. Nothing of a pickle is run.
DumpOfRank read_dump(const std::filesystem::path& file);

// "gccl/doctor/1" (docs/formats.md). Findings stand in the order in which they explain each other: which ranks call
// something else, have failed, have not entered, left no dump, came late, are waited for by all, are slow. Throws
// json::InputError where two dumps are one rank's, or of different worlds, or contradict each other in who a group's
// ranks are.
nlohmann::json examined(const std::vector<DumpOfRank>& dumps);
std::string doctor_text(const nlohmann::json& document);

}  // namespace gccl::sim
