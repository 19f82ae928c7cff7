// A communicator: ranks that make the same calls in one order. Collectives of one communicator do not overlap, as in
// NCCL: that keeps one set of lanes for each communicator, and the order of messages obvious. A program that wants
// overlap makes another communicator.
//
// Its parts know those above them in this list. The first five do not know the communicator; an operation only holds a
// pointer to it:
//   team.hpp         who the ranks are (members.hpp), what connects them, how calls are carried out (plans.hpp)
//   links/           which links between the ranks are slow
//   record/          what is kept of calls: recorder.hpp, flight.hpp, metrics.hpp
//   operations.hpp   the calls in flight, from their start to their end, or to the communicator's (failure.hpp)
//   supervisor.hpp   whether something is wrong while nothing moves; watch/ asks the other ranks
// The others know the communicator, too:
//   short_calls.hpp  blocking calls that end at once, without becoming operations
//   recovery/        survival.hpp: how it goes on without ranks that have failed, on which recovery.hpp agrees
//   leaving.hpp      what the ranks compare before it is freed
// The communicator itself takes the lock and waits (progress.cpp). Around it are splitting.hpp (communicators from
// communicators), completions.hpp (functions of the caller's) and record/flight_dump.hpp, which know it as well.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "libgccl/communicator/leaving.hpp"
#include "libgccl/communicator/record/dump.hpp"
#include "libgccl/communicator/recovery/survival.hpp"
#include "libgccl/communicator/short_calls.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/supervisor.hpp"

namespace gccl {

// What a GCCL_Comm points to; the public gccl::Communicator (gccl/communicator.hpp) holds such a handle.
// All public functions may be called from any thread, and none leaves a lock held, whether it returns or throws, as it
// may when memory is short; other ranks then wait for its call until fail().
class CommunicatorCore {
 public:
  // Collective over the members.
  static Status create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                       std::unique_ptr<CommunicatorCore>* out);
  // Operations in flight are dropped.
  ~CommunicatorCore();
  // Before several are destroyed whose functions may use the others: all take nothing more, and then their functions
  // have returned.
  static void close(std::span<const std::unique_ptr<CommunicatorCore>> all);

  Rank size() const { return team_.members.size(); }
  Rank rank() const { return team_.members.rank; }
  const Team& team() const { return team_; }
  const Members& members() const { return team_.members; }
  const World& world() const { return *team_.world; }
  // members().id, which all its ranks have. Any thread, also while the communicator is made anew.
  std::uint64_t id();

  using Key = ShortCalls::Key;
  // Repeats the last call of its kind, when it was this one and its messages were small: most calls of a program are
  // like that, and at a hundred nanoseconds a call every look at an argument counts. False, and nothing done, when it
  // was not; else it is complete, and *status, which was ok, is how it ended.
  bool repeat(const Key& key, const void* input, void* output, Status* status);
  // A short blocking send or receive while nothing else is in flight. False, and nothing done, where it is not that, or
  // not there within microseconds, or not what is expected.
  bool quick_transfer(const Descriptor& what, void* data);
  // Carries the work out; `key`, when given, is what repeat() may repeat.
  Status run(Work&& work, const Key* key = nullptr);
  // What the program's own calls are made by, and what it may set about failures.
  Survival& survival() { return survival_; }
  const Survival& survival() const { return survival_; }
  // Begins it, with a plan that is made already or one of its own. The operation is the caller's to wait() for or
  // give_up(), and null where it fails.
  Status start(Work&& work, Operation** out, std::shared_ptr<PreparedPlan> plan = nullptr);
  // Waits for an operation of any communicator, freed ones too. Operations that have functions (completions.hpp) are
  // complete once these have returned, except for a thread that is inside one of them. False when that takes longer
  // than timeout_ms (negative: no limit); else *status is the operation's and it is gone.
  static bool wait(Operation* op, std::int64_t timeout_ms, Status* status);
  // The same at once. *made: what its poll of everything found, where that is more than *made was.
  static bool test(Operation* op, Status* status, Progress* made = nullptr);
  static void give_up(Operation* op);
  // False when the operation has ended.
  bool on_complete(Operation* op, const Completion& function);
  // What can be done without waiting.
  Progress progress();
  bool pending();
  bool busy() const { return operations_.busy(); }
  // A thread waits for operations, here and elsewhere, without a limit, until all have ended, this among them.
  static void thread_blocks(Operation* op);
  // One does, and has for some milliseconds, and no GCCL_Abort of this process ends that.
  bool holds_thread();
  // Operations are in flight, and neither a failure nor a GCCL_Abort of this process ends them.
  bool goes_on();
  // A thread is inside a call on it (Inside).
  bool entered() const { return inside_.load(std::memory_order_acquire) > 0; }
  // Before it is freed: until no other thread is. Not ok where one waits for what has not ended, or does not leave for
  // so long.
  static constexpr std::int64_t kLeaveNs = 1'000'000'000;
  Status await_others();
  static Status thread_inside();
  // A thread agrees on who has failed: what is in flight goes on meanwhile, here and elsewhere. See Supervisor.
  Status agrees(Watch::In in) noexcept;

  // What run() would use; element_bytes of the call's type.
  Plan planned(const Call& call, std::uint32_t element_bytes);
  // How a call that is not made would be carried out; predicted_ns is filled in where there is a closed form.
  struct Estimate {
    Plan plan;
    std::string why;
  };
  Estimate estimate(Collective kind, Count count, std::uint32_t element_bytes);
  // Another opinion on which ranks are near each other, for the algorithms. Requires layout.ranks() == size(), the same
  // on every rank, and no operation in flight.
  void use_layout(Layout layout);
  // The next call of each kind is looked at before it is carried out.
  void forget_short_calls();
  void set_timeout(std::int64_t ms) { supervisor_.set_timeout(ms); }
  std::int64_t timeout_ms() const { return supervisor_.timeout_ms(); }
  void metrics(GCCL_Metrics* out);
  // An event that survival.cpp has seen.
  template <class F>
  auto count(F event) {
    std::lock_guard lock(lock_);
    return std::invoke(event, recorder_.metrics());
  }
  // Communicators that have been split from this one; each call adds one. For splitting.cpp.
  std::uint32_t count_split() { return ++splits_; }

  void abort(int code) noexcept;
  // Not ok where it was called on this rank. Any thread.
  Status asked_to_abort() const noexcept {
    const Failure& f = operations_.failure();
    return f.abort_asked() ? f.aborted(team_.members) : Status();
  }
  // Ends everything in flight, here and on the other ranks. The caller says why.
  void fail(Status why) noexcept;
  // Writes what this rank was doing, on all communicators that no other thread stays busy with.
  Status dump(const std::string& path, const std::string& reason);
  // Into another one's. False where another thread is busy with this communicator until then.
  bool add_to(DumpedRank* all, std::int64_t until_ns);
  // Why it carries nothing out; ok where it does.
  Status why();
  // Becomes the other one, which gets what this one was. For survival.cpp.
  void adopt(CommunicatorCore& made, std::size_t ranks_lost) noexcept;
  // How many of these ranks are reached otherwise than through memory.
  Status connections(std::span<const int> ranks, Rank* count);
  // Whom its transports have lost.
  std::vector<Rank> lost();
  // Before it is freed; and why it failed, where no call has said so, before it is released.
  Leaving& leaving() { return leaving_; }
  Status unsaid();
  // It will be destroyed, and others of this thread's after it, perhaps those of the other ranks.
  void take_leave() {
    std::lock_guard lock(lock_);
    if (team_.ports) team_.ports->take_leave();
  }
  // It will be destroyed while the other ranks keep theirs.
  void close_alone() { team_.ports->close_alone(); }

  const char* volatile magic = kMagic;  // null at the end: a copy of a handle that was freed is found, mostly
  static const char kMagic[];

 private:
  friend class Inside;
  CommunicatorCore() = default;

  ShortCalls::Of parts() { return {*this, team_, recorder_, operations_}; }
  // What is counted elsewhere, into the metrics.
  void count_links();
  void close();
  // Until no thread is inside a call on it, with nothing in flight any more.
  void await_all() noexcept;
  bool progress_until(Operation* op, std::int64_t until_ns);

  std::atomic<std::uint32_t> inside_{0};  // threads
  std::mutex abort_mutex_;                // the ports stay while abort() uses them
  // Guards all of the following, but for what these say that any thread may do. They take no lock: this one is held by
  // the thread that calls them, and for no longer than a call of theirs takes. survival_ and leaving_ are called
  // without it.
  SpinLock lock_;
  Team team_;
  Recorder recorder_{team_};
  Operations operations_{team_, recorder_, lock_};
  Supervisor supervisor_{team_, operations_};
  ShortCalls short_calls_;
  Survival survival_{*this};
  std::uint32_t splits_ = 0;
  Leaving leaving_{*this, lock_, team_, operations_, supervisor_};
  bool closed_ = false;
};

// A thread uses a communicator while this lives: one that is freed is not destroyed before. For what touches it after
// its operation may have ended, as another thread may abort the communicator and free it at once.
class Inside {
 public:
  // The caller knows that it is there.
  explicit Inside(CommunicatorCore& c) : c_(&c) { enter(); }
  // The operation's, as long as that has not ended; else null, as it may be gone.
  explicit Inside(const Operation& op);
  ~Inside() {
    if (c_) c_->inside_.fetch_sub(1, std::memory_order_release);
  }
  Inside(const Inside&) = delete;
  CommunicatorCore* operator->() const { return c_; }
  explicit operator bool() const { return c_; }

 private:
  void enter() { c_->inside_.fetch_add(1, std::memory_order_relaxed); }

  CommunicatorCore* c_ = nullptr;
};

// Survival::notice() where the communicator still is.
void notice_failure_of(const CommunicatorCore* maybe);

// Calls f with every communicator of this process. False, and f not called, where another thread goes through them,
// too, until then.
bool for_each_communicator(const std::function<void(CommunicatorCore&)>& f, std::int64_t until_ns);

// Progress on every communicator of this process that is in use, and functions that are due.
Progress progress_all_but(CommunicatorCore* mine);

}  // namespace gccl
