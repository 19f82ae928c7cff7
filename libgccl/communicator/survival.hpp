// What a communicator does about ranks that fail under it, and what it keeps for that.
//
// With the policy shrink a blocking collective ends alike on all ranks that are left. Each call is carried out in two
// parts: the call itself, and then a barrier, so that a rank returns only when all of them have their results.
//
//   rank A   --- call 7 --- barrier of 7 --- returns 7 --- call 8 --- ...
//   rank B   --- call 7 --------- barrier of 7 -X- a rank has failed
//
// Where A has returned from 7, everybody had completed 7. So those that are left are in call 7 or in call 8, and agree
// on which of the two all of them have completed: that one keeps the result of all ranks, and no one has returned from
// the other, whose input all of them still have. ULFM leaves this to the program (Bland et al. 2013,
// https://doi.org/10.1177/1094342013488238: operations do not complete uniformly, programs agree).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/communicator/work.hpp"

namespace gccl {

// The input of a call that its result overwrites, kept until the call has ended.
class KeptInput {
 public:
  void keep(const Work& work, Rank ranks, Rank rank);
  // To where it was.
  void restore() const;

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t room_ = 0;
  std::byte* from_ = nullptr;
  std::size_t bytes_ = 0;
};

// One thread at a time, as all calls on a communicator that shrinks.
struct Survival {
  bool shrinks = false;
  bool noticed = false;     // the failure under which the communicator is now
  bool renumbered = false;  // since the last call whose caller knew the ranks' numbers
  // Others were in this later call when ranks got other numbers: so they have here, too, from its beginning on.
  std::optional<std::uint32_t> renumbered_in = std::nullopt;
  bool telling = false;     // the function is running
  std::uint32_t calls = 0;  // blocking collectives, the same on all ranks
  KeptInput kept;
  std::string change;  // who was lost last, in words
  GCCL_Failure_function function = nullptr;
  void* context = nullptr;
};

// What ranks agree on while they shrink, as flags of which each rank gives some and all get the AND. Those that are
// left are in calls k to k + 2: who returned from k may have been handed k + 1 back, for which nobody waits. So calls
// are told apart by their numbers modulo 8. Bit 0 is Recovery::shrink's.
struct Agreed {
  // All have completed it.
  static std::uint64_t completed(std::uint32_t call) { return std::uint64_t(2) << call % 8; }
  // Nobody is in it.
  static std::uint64_t empty(std::uint32_t call) { return completed(call) << 8; }
  // Of a rank that is in `call`, and has completed it or not.
  static std::uint64_t flags(std::uint32_t call, bool done) {
    return ~(completed(call + 1) | completed(call + 2) | empty(call) | (done ? 0 : completed(call)));
  }
  // The last call that any of them is in, for one that is in `call`.
  static std::uint32_t furthest(std::uint64_t flags, std::uint32_t call) {
    return !(flags & empty(call + 2)) ? call + 2 : !(flags & empty(call + 1)) ? call + 1 : call;
  }
};

}  // namespace gccl
