// A communicator: ranks, the wires between them, and the calls in flight, carried out in the order of their start.
// Collectives of one communicator do not overlap, as in NCCL: that keeps one set of lanes for each communicator, and
// the order of messages obvious. A program that wants overlap makes another communicator.
//
// Beside it stand, each by itself: members.hpp (who the ranks are), plans.hpp (how calls are carried out), failure.hpp
// (why nothing is any more), survival.hpp (how it goes on all the same), metrics.hpp, comparison.hpp (do the ranks make
// the same calls?), watch.hpp (the same of ranks that wait), splitting.hpp (communicators from communicators),
// completions.hpp (functions of the caller's).
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "libgccl/communicator/dump.hpp"
#include "libgccl/communicator/failure.hpp"
#include "libgccl/communicator/flight.hpp"
#include "libgccl/communicator/metrics.hpp"
#include "libgccl/communicator/operation.hpp"
#include "libgccl/communicator/plans.hpp"
#include "libgccl/communicator/recovery.hpp"
#include "libgccl/communicator/scratch.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/survival.hpp"
#include "libgccl/communicator/team.hpp"

namespace gccl {

// Time limits are at most a year, so that no sum with them overflows.
inline constexpr std::int64_t kTimeoutMsMax = std::int64_t(1000) * 86400 * 365;

// All public functions may be called from any thread, and none leaves a lock held, whether it returns or throws, as it
// may when memory is short; other ranks then wait for its call until fail().
class Communicator {
 public:
  // Collective over the members.
  static Status create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                       std::unique_ptr<Communicator>* out);
  // Operations in flight are dropped.
  ~Communicator();

  Rank size() const { return team_.members.size(); }
  Rank rank() const { return team_.members.rank; }
  const Members& members() const { return team_.members; }
  const World& world() const { return *team_.world; }
  const std::shared_ptr<World>& shared_world() const { return team_.world; }
  const Layout& layout() const { return team_.plans->layout(); }

  // A blocking call in all that decides how it is carried out.
  struct Key {
    std::uint8_t kind = 255;
    bool in_place = false;
    GCCL_Dtype dtype = 0;
    GCCL_Op op = 0;
    Rank root = 0;
    Count count = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Repeats the last call of its kind, when it was this one and its messages were small: most calls of a program are
  // like that, and at a hundred nanoseconds a call every look at an argument counts. False, and nothing done, when it
  // was not; else it is complete, and *status, which was ok, is how it ended.
  bool repeat(const Key& key, const void* input, void* output, Status* status);
  // A short blocking send or receive while nothing else is in flight. False, and nothing done, where it is not that, or
  // not there within microseconds, or not what is expected.
  bool quick_transfer(const Descriptor& what, void* data);
  // Carries the work out; `key`, when given, is what repeat() may repeat.
  Status run(Work&& work, const Key* key = nullptr);
  // A blocking collective of the program's: run(), and what the policy does where ranks fail.
  Status call(Work&& work, const Key* key = nullptr);
  // A blocking send or receive.
  Status transfer(Work&& work) {
    Status s = run(std::move(work));
    if (!s.ok()) notice();
    return s;
  }
  bool shrinks() const { return survival_.shrinks; }
  // What begins now is not carried out, and why: ranks have other numbers since a call that did not say so, or the
  // program's function of GCCL_On_failure is running.
  bool refuses() const { return survival_.renumbered || survival_.renumbered_in || survival_.telling; }
  // A blocking collective of which call() says so at once, whatever its arguments, which may go by the old numbers.
  bool hands_back(const Descriptor& what) const;
  Status refused() const;
  // Not ok inside that function.
  Status not_telling() const { return survival_.telling ? refused() : Status(); }
  // For a collective: the next one is carried out.
  Status refuse_once() {
    Status s = refused();
    survival_.renumbered = survival_.renumbered && survival_.telling;
    return s;
  }
  void know_numbers() { survival_.renumbered = false; }
  Status set_on_failure(GCCL_Failure_policy policy);
  void on_failure(GCCL_Failure_function function, void* context) {
    survival_.function = function;
    survival_.context = context;
  }
  // Tells the program of the failure under which this communicator is, where there is one and it has not been told.
  void notice();
  // Begins it, with a plan that is made already or one of its own. The operation is the caller's to wait() for or
  // give_up(), and null where it fails.
  Status start(Work&& work, Operation** out, std::shared_ptr<PreparedPlan> plan = nullptr);
  // Of any communicator, freed ones too. Operations that have functions (completions.hpp) are complete once these have
  // returned, except for a thread that is inside one of them.
  // False when that takes longer than timeout_ms (negative: no limit); else *status is the operation's and it is gone.
  static bool wait(Operation* op, std::int64_t timeout_ms, Status* status);
  static bool test(Operation* op, Status* status);
  static void give_up(Operation* op);
  // False when the operation has ended.
  bool on_complete(Operation* op, GCCL_Completion_function function, void* context);
  // What can be done without waiting. True when something moved.
  bool progress();
  bool pending();
  bool busy() { return active_.load(std::memory_order_relaxed) > 0; }

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
  void set_timeout(std::int64_t ms) { timeout_ms_.store(std::min(ms, kTimeoutMsMax), std::memory_order_relaxed); }
  std::int64_t timeout_ms() const { return timeout_ms_.load(std::memory_order_relaxed); }
  void metrics(GCCL_Metrics* out);
  // For GCCL_LOG=2: who this rank is and how it reaches the others; on rank 0 also nodes, and the settings in force.
  void announce();
  // Communicators that have been split from this one; each call adds one. For splitting.cpp.
  std::uint32_t count_split() { return ++splits_; }

  void abort(int code) noexcept;
  // Not ok where it was called on this rank. Any thread.
  Status asked_to_abort() const noexcept { return failure_.abort_asked() ? failure_.aborted(rank()) : Status(); }
  // Ends everything in flight, here and on the other ranks. The caller says why.
  void fail(Status why) noexcept;
  // Writes what this rank was doing, on all communicators that are not busy in another thread.
  Status dump(const std::string& path, const std::string& reason);
  // Whom its transports have lost.
  std::vector<Rank> lost();
  // Every rank has come this far, by the same calls; where the communicator is broken, why, unless a call has said so.
  // Before it is freed.
  Status leave();
  // Begins it; null where there is nothing to wait for.
  Status begin_to_leave(Operation** out, const Others* others = nullptr);
  // Adds this communicator to those that GCCL_Finalize compares along with the world.
  void add_to(Others* others);
  // GCCL_Finalize begins: there are no more calls here. Afterwards: what went wrong, as in leave().
  void leaving() { team_.world->watch->leaving(*team_.record); }
  Status left();
  // Why it failed, where no call has said so: before it is released.
  Status unsaid();

  const char* volatile magic = kMagic;  // null at the end: a copy of a handle that was freed is told, mostly
  static const char kMagic[];

 private:
  Communicator() = default;

  // All of these but progress_until() with the lock held.
  // Operations (operations.cpp), the short way of blocking calls first (blocking.cpp).
  Status start(std::unique_ptr<Operation> op, Operation** out);  // without the lock
  Operation* run_program(Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key);
  Operation* continue_later(Work&& work, const Replay& replay, std::shared_ptr<PreparedPlan> plan,
                            std::int64_t from_ns);
  std::shared_ptr<PreparedPlan> plan_of(const Work& work);
  void announce(const Work& work, const PreparedPlan& plan);
  void number(Work& work);
  void enqueue(Operation* op);
  void check_first(const Operation& op);
  bool compare_results(Operation* op);
  void begin(Operation* op);
  void advance_front();
  void begin_transfer(Operation* op);
  void begin_to_myself(Operation* op);
  void finish(Operation* op, Status status) noexcept;
  Status concluded(Operation* op);
  // Going on without ranks that have failed (survival.cpp); without the lock.
  Status survive(Work&& work, const Key* key);
  Status complete(Work&& work, const Key* key, bool* completed);
  Status hand_back(const Descriptor& what);
  std::vector<Rank> known_failed();
  bool mendable(const Status& why);
  Status mend(std::uint32_t call, bool* completed);
  void shrink_on_failure(bool does);
  void adopt(Communicator& made, std::size_t ranks_lost) noexcept;
  void tell_program(int stage, const std::vector<Rank>& failed, const Members& before, const std::string& text);
  // Progress and waiting (progress.cpp).
  bool make_progress() noexcept;
  bool advance();
  bool progress_until(Operation* op, std::int64_t until_ns);
  Operation* first_pending() const;
  void check_progress() noexcept;
  void check_peers_and_time();
  void ask_after_peers();
  bool timed_out(const Operation& op, std::int64_t now);
  void watch_stall();
  // Failure (breaking.cpp).
  void break_down(Status why, Rank culprit, bool tell_others) noexcept;
  void break_down(const GCCL_Fault& fault) { break_down(reason(fault), fault.peer, true); }
  void break_down(const Operation& op, Status why, Rank culprit) noexcept {
    break_down(in_context(op.work.what, std::move(why)), culprit, true);
  }
  void drop(Operation* op) noexcept;
  void tell(const GCCL_Fault& fault) noexcept;
  Status reason(const GCCL_Fault& fault) const;
  Status in_context(const Descriptor& what, Status why) const noexcept;
  Status blamed(Status why) const noexcept;
  // Dumps (flight_dump.cpp).
  DumpedCommunicator dumped() const;
  DumpedCall dumped(const Operation& op) const;
  Status dump_locked(const std::string& path, const std::string& reason);
  void dump_failure() noexcept;
  void dump_if_asked() noexcept;

  Team team_;
  std::atomic<std::int64_t> timeout_ms_{GCCL_TIMEOUT_NONE};
  std::uint32_t splits_ = 0;

  SpinLock lock_;
  struct Repeat {
    Key key;
    std::shared_ptr<PreparedPlan> plan;
    Work work;  // as it was, without its buffers
    std::uint64_t signature = 0;
    History::Call call{};
  };
  std::array<Repeat, 16> repeats_;  // by kind
  Scratch scratch_;
  std::set<std::array<std::uint64_t, 4>> announced_;  // shapes of which the log has told
  std::atomic<std::uint32_t> active_{0};              // operations in flight
  std::deque<Operation*> queue_;                      // collectives; the front one is carried out
  std::vector<Operation*> transfers_;                 // point-to-point
  std::deque<Operation*> to_myself_;                  // sends, or receives, whose other side has not come
  std::uint32_t blocked_ = 0;    // threads that wait for a collective, without a limit, and do nothing else
  std::int64_t checked_ns_ = 0;  // when polls last did
  std::int64_t asked_after_peers_ns_ = 0;
  std::uint32_t news_ = 0;  // the detector's that were looked at
  Failure failure_;
  bool left_ = false;  // every rank has come to the end of it
  Metrics metrics_;
  Survival survival_;
};

// Communicator::notice() where the communicator still is.
void notice_failure_of(const Communicator* maybe);

// Calls f with every communicator of this process, unless another thread looks at them, too.
void for_each_communicator(const std::function<void(Communicator&)>& f);

// Progress on every communicator of this process that is in use, and functions that are due. True when something moved.
bool progress_all_but(Communicator* mine);

}  // namespace gccl
