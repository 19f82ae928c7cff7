// The calls in flight on one communicator: begun, moved on and ended, collectives one after the other, point to point
// concurrently. How callers wait for them, and what is done where nothing moves, is not known here (progress.cpp,
// supervisor.hpp).
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "libgccl/communicator/record/recorder.hpp"
#include "libgccl/communicator/scratch.hpp"
#include "libgccl/communicator/self_messages.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/transfers.hpp"

namespace gccl {

// How many operations of one communicator there are. Changed with its lock held, and looked at by any thread.
class InFlight {
 public:
  void one_more() noexcept {
    if (count_.fetch_add(1, std::memory_order_relaxed) == 0) busy_.fetch_add(1, std::memory_order_relaxed);
  }
  void one_less() noexcept {
    if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) busy_.fetch_sub(1, std::memory_order_relaxed);
  }
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  // Of all communicators of the process, those that have operations in flight.
  static std::uint32_t busy_communicators() noexcept { return busy_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<std::uint32_t> busy_{0};
  std::atomic<std::uint32_t> count_{0};
};

// With the communicator's lock held, busy() and failure().ask_abort() apart.
class Operations {
 public:
  // All outlive it; the lock is the communicator's.
  Operations(Team& team, Recorder& recorder, const SpinLock& lock) : team_(team), recorder_(recorder), lock_(lock) {}
  bool locked() const { return lock_.held(); }  // for assertions

  // It is the caller's to wait for, and null where it fails.
  Status start(std::unique_ptr<Operation> op, Operation** out);
  // The same of a collective some of whose messages have moved.
  Operation* resume(std::unique_ptr<Operation> op);
  std::shared_ptr<PreparedPlan> plan_of(const Work& work);
  Scratch& scratch() { return scratch_; }

  // What can be done without waiting.
  Progress make_progress() noexcept;
  // The same, of collectives alone and with exceptions.
  void advance_collectives();

  // Ends everything in flight. The first reason stays. Goes through when memory is short.
  void break_down(Status why, Rank culprit, bool report_to_others, std::vector<Rank> ranks = {}) noexcept;
  void break_down(const GCCL_Fault& fault);                                 // of a port
  void break_down(const Operation& op, Status why, Rank culprit) noexcept;  // of an operation
  // The same where the caller frees the communicator: no failure that leaves a dump.
  void close(Status why) noexcept;
  // The operation that an exception came from, as far as that is known.
  Status blamed(Status why) const noexcept;
  Failure& failure() { return failure_; }
  const Failure& failure() const { return failure_; }

  bool busy() const { return in_flight_.count() > 0; }
  // The front one is carried out.
  const std::deque<Operation*>& collectives() const { return queue_; }
  const Transfers& transfers() const { return transfers_; }
  const std::deque<Operation*>& to_myself() const { return to_myself_.waiting(); }
  // The team has other ports, so messages that were sent before do not arrive: this rank's to itself do not, either.
  void forget_messages() noexcept { to_myself_.forget_kept(); }
  // The first operation that waits for other ranks; null where none does.
  Operation* first() const;

 private:
  void enqueue(Operation* op);
  void check_first(const Operation& op);
  void report_first(Operation* op);
  void begin(Operation* op);
  void begin_transfer(Operation* op);
  void begin_to_myself(Operation* op);
  void end_transfer(Operation* op);
  std::uint32_t hint_of_one_way(const Operation& op) const;
  Progress advance();
  bool poll(Ports::Port& port);
  bool flows();
  bool compare_results(Operation* op);
  void go_on_as(Operation* op, Comparison&& comparison);
  Status concluded(Operation* op);
  void finish(Operation* op, Status status) noexcept;
  void drop_all() noexcept;
  void drop(Operation* op) noexcept;

  Team& team_;
  Recorder& recorder_;
  Failure failure_;
  Scratch scratch_;
  InFlight in_flight_;
  std::uint64_t moved_bytes_ = 0;  // of the ports, when flows() was last true
  std::deque<Operation*> queue_;
  Transfers transfers_;
  SelfMessages to_myself_;
  const SpinLock& lock_;
};

}  // namespace gccl
