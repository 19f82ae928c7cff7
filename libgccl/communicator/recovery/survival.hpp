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
//
// With the policies spare and rejoin processes take the places of those that have failed, and have no input for the
// call: so it is handed back, whatever it is, also on the ranks that come to it later. All then go on with the same
// call. The others say its number to those that join.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/communicator/recovery/policy.hpp"
#include "libgccl/communicator/short_calls.hpp"
#include "libgccl/communicator/watch/watch.hpp"

namespace gccl {

// The input of a call that its result overwrites, kept until the call has ended. Not what lies between blocks: that is
// none of the call's.
class KeptInput {
 public:
  void keep(const Work& work, Rank ranks, Rank rank);
  // To where it was.
  void restore() const;

 private:
  struct Piece {
    std::byte* from;
    std::size_t bytes;
  };
  std::unique_ptr<std::byte[]> data_;
  std::size_t room_ = 0;
  std::vector<Piece> pieces_;  // of data_, side by side
};

// It makes calls on its communicator, and has it made anew. Without the communicator's lock, and one thread at a time,
// as all calls on a communicator that shrinks; notice() from any thread.
class Survival {
 public:
  // Which outlives it.
  explicit Survival(CommunicatorCore& communicator) : c_(communicator) {}

  // A blocking collective of the program's: CommunicatorCore::run(), and what the policy does where ranks fail.
  Status call(Work&& work, const ShortCalls::Key* key);
  // A blocking send or receive.
  Status transfer(Work&& work);
  // Reports to the program the failure under which the communicator is, or which a call has `found` that leaves the
  // communicator as it was, where there is one and it has not been reported.
  void notice(const Status& found = {});

  bool recovers() const { return policy_ != GCCL_FAIL; }
  // Without asking the others: at most one communicator of a world does more than fail.
  void recover_by(GCCL_Failure_policy policy);
  // What those that are there say to those that join in a recovery, and how these take it.
  struct Joined {
    GCCL_Failure_policy policy = GCCL_FAIL;
    std::uint32_t calls = 0;
    Rank full = 0;
    std::vector<Rank> missing = {};  // rejoin: of `full`, in the numbers that ranks were started as
    std::vector<Rank> behind = {};   // who have joined earlier, and know as little
    std::vector<std::byte> encoded() const;
    // False: these bytes are none.
    static bool parse(std::span<const std::byte> bytes, Joined* out);
  };
  void go_on_as(const Joined& joined);
  // Collective over the members, which must say the same.
  Status set_policy(GCCL_Failure_policy policy);
  // `call` calls it.
  using Caller = void (*)(GCCL_Failure_function function, GCCL_Comm comm, const GCCL_Failure* failure, void* context);
  void set_function(GCCL_Failure_function function, void* context, Caller call) {
    function_ = function;
    context_ = context;
    call_ = call;
  }
  // The program knows who has failed; another failure is news.
  void acknowledge();

  // What begins now is not carried out, and why: ranks have other numbers since a call that did not say so, or the
  // program's function of GCCL_On_failure is running.
  bool refuses() const { return renumbered_ || renumbered_in_ || inside(); }
  // A blocking collective of which call() says so at once, whatever its arguments, which may go by the old numbers.
  bool hands_back(const Descriptor& what) const;
  Status refused() const;
  // Not ok inside that function; and not_notifying() while any thread is, as it has the communicator's handle.
  Status not_inside() const { return inside() ? refused() : Status(); }
  Status not_notifying() const { return notifying_.load(std::memory_order_acquire) ? in_function() : Status(); }
  // For a collective: the next one is carried out.
  Status refuse_once() {
    Status s = refused();
    if (std::exchange(renumbered_, renumbered_ && inside()) != renumbered_ && replaces(policy_)) ++calls_;
    return s;
  }

 private:
  Status survive(Work&& work, const ShortCalls::Key* key);
  Status complete(Work&& work, const ShortCalls::Key* key, bool* completed);
  Status hand_back(const Descriptor& what);
  bool inside() const {
    const void* const in = notifying_.load(std::memory_order_relaxed);
    return in && in == Watch::this_thread();
  }
  static Status in_function();
  std::vector<Rank> known_failed();
  Status mend(std::uint32_t call, bool* completed);
  Status end_in_vain(Status why);
  Status remake(std::uint32_t call, std::uint64_t* flags, std::unique_ptr<CommunicatorCore>* made);
  bool has_made_calls() const;
  void note_joined(const std::vector<Rank>& behind);
  std::vector<Rank> behind(const std::vector<Rank>& was, bool completed) const;
  std::vector<std::byte> word_to_joined(std::uint64_t flags, std::uint32_t call, const World& made) const;
  void notify_program(int stage, const std::vector<Rank>& failed, const Members& before, const std::string& text);

  CommunicatorCore& c_;
  GCCL_Failure_policy policy_ = GCCL_FAIL;
  Rank full_ = 0;                     // so many ranks there are when all that have failed are replaced
  std::vector<Rank> missing_;         // rejoin: which of these numbers, in ascending order; the others have their order
  std::atomic<bool> noticed_{false};  // the failure under which the communicator is now
  bool renumbered_ = false;           // since the last call whose caller knew the ranks' numbers
  // Others were in this later call when ranks got other numbers: so they have here, too, from its beginning on.
  std::optional<std::uint32_t> renumbered_in_;
  std::atomic<const void*> notifying_{nullptr};  // the thread that the function is running in
  std::uint32_t calls_ = 0;                      // blocking collectives, the same on all ranks
  int vain_ = 0;                                 // recoveries since the last call that ended well which lost nobody
  bool caught_up_ = false;                       // a call has ended well since ranks joined, with all of them
  KeptInput kept_;
  std::string change_;  // which ranks were lost last, in words
  GCCL_Failure_function function_ = nullptr;
  void* context_ = nullptr;
  Caller call_ = nullptr;
};

}  // namespace gccl
