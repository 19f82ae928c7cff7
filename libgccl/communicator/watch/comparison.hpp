// Calls that differ: what ranks gather of them, and what that shows.
//
// GCCL_CHECK=1 gathers the descriptions of each call before it, and of an all-to-all whose lengths differ these;
// GCCL_CHECK=2 also checksums of the results that must be the same on all ranks, after it. Before a communicator
// is freed the digests of all its calls are gathered, and where these differ the latest calls themselves. The gathering
// is a collective like any other, carried out by an operation that has one of these.
#pragma once

#include <string>
#include <vector>

#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/watch/history.hpp"
#include "libgccl/communicator/work.hpp"

namespace gccl {

struct World;

// A communicator that is broken on this rank, and how. Sent between ranks as it is.
struct FailedHere {
  std::uint64_t communicator = 0, code = 0;
};

// What a rank says of all communicators that were made from a world and are still there, or had failed.
struct Others {
  std::uint64_t sum = 0;  // 0 over all ranks where each of them has had the same calls on all of its ranks
  std::vector<FailedHere> failed = {};
};

class Comparison {
 public:
  // lengths_sum: of an alltoallv, Watch::lengths_sum().
  static Comparison of_descriptions(const Members& members, const Descriptor& call, std::uint64_t lengths_sum);
  static Comparison of_lengths(const Members& members, const Lengths& lengths);
  // The call's result must be the same on every rank. Of one that has ended:
  static bool has_one_result(const Work& work);
  static Comparison of_results(const Members& members, const Work& work);
  // `lengths`, `messages`: of all that was sent less what was due; with `others` GCCL_Finalize's.
  static Comparison of_digests(const Members& members, std::uint64_t digest, std::uint64_t lengths,
                               std::uint64_t messages, const Others* others, bool uneven);
  // After digests of which some rank has said that several communicators had failed: which all of them are.
  Comparison of_failures(const Members& members) const;
  // Compares the calls before the one with this number, which gathered digests that differ.
  static Comparison of_histories(const Members& members, const History& history, std::uint32_t sequence);

  // The collective that gathers. Its buffers are this object's: it stays where it is until that has ended.
  Work work(const Members& members);

  // The call that it follows returns what it finds.
  bool ends_call() const { return of_ == Of::results; }
  // It frees the communicator; else it only precedes a call, or follows one.
  bool frees() const { return of_ == Of::digests || of_ == Of::failures || of_ == Of::histories; }
  // It comes after another gathering, in the same call.
  bool follows() const { return of_ == Of::failures || of_ == Of::histories; }
  // The digests differ: the histories say in what.
  bool needs_histories() const;
  // They agree, and do not say all that has failed.
  bool needs_failures() const;
  // All call the same, but the sums of their lengths do not agree: the lengths say which.
  bool needs_lengths() const;

  struct Found {
    Status why;          // ok: nothing differs
    bool breaks = true;  // the communicator
    Rank culprit = 0;
  };
  // After the gathering. `work` is what work() gave, with its number; communicators that failed elsewhere go into the
  // world's list.
  Found found(const Members& members, const Work& work, World* world) const;

 private:
  enum class Of : std::uint8_t { descriptions, lengths, results, digests, failures, histories };
  Comparison(Of of, std::vector<std::uint64_t> mine, std::size_t words);
  static Comparison of_all(Of of, const Members& members, std::vector<std::uint64_t> mine);
  const std::uint64_t* of_rank(Rank r) const { return all_.data() + r * mine_.size(); }
  Found in_descriptions(const Members& members, const Work& work) const;
  Found in_lengths(const Members& members, const Work& work) const;
  Found in_results(const Members& members) const;
  Found in_digests(const Members& members, const Work& work, World* world) const;
  void in_failures(World* world) const;
  Found in_histories(const Members& members, const Work& work) const;
  // Of word `at` of all digests, the sum.
  std::uint64_t sum_of(std::size_t at) const;

  Of of_;
  std::vector<std::uint64_t> mine_, all_;  // words; all ranks', by rank
  std::string call_;                       // results: which
  std::vector<FailedHere> failed_;         // digests: those of this rank
};

// Another call's message is where one of `call` is due.
Status calls_differ(const Members& members, const Descriptor& call, const Difference& found);

}  // namespace gccl
