// A communicator: ranks that make the same calls in one order. Collectives of one communicator do not overlap, as in
// NCCL: that keeps one set of lanes for each communicator, and the order of messages obvious. A program that wants
// overlap makes another communicator.
//
// Its parts know those above them in this list, and none knows the communicator:
//   team.hpp         who the ranks are (members.hpp), what connects them, how calls are carried out (plans.hpp)
//   recorder.hpp     what is kept of calls: history.hpp, flight.hpp, metrics.hpp
//   operations.hpp   the calls in flight, from their start to their end, or to the communicator's (failure.hpp)
//   supervisor.hpp   whether something is wrong while nothing moves; watch.hpp asks the other ranks
//   short_calls.hpp  blocking calls that end at once, without becoming operations
//   survival.hpp     how it goes on without ranks that have failed
// The communicator itself takes the lock, waits (progress.cpp), and is freed (leaving.cpp). Of it know splitting.hpp
// (communicators from communicators), completions.hpp (functions of the caller's) and flight_dump.hpp.
#pragma once

#include <functional>
#include <mutex>

#include "libgccl/communicator/dump.hpp"
#include "libgccl/communicator/short_calls.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/supervisor.hpp"
#include "libgccl/communicator/survival.hpp"

namespace gccl {

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
  const Team& team() const { return team_; }
  const Members& members() const { return team_.members; }
  const World& world() const { return *team_.world; }
  const std::shared_ptr<World>& shared_world() const { return team_.world; }
  const Layout& layout() const { return team_.plans->layout(); }

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
  bool busy() const { return operations_.busy(); }

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
  void set_timeout(std::int64_t ms) { supervisor_.set_timeout(ms); }
  std::int64_t timeout_ms() const { return supervisor_.timeout_ms(); }
  void metrics(GCCL_Metrics* out);
  // Communicators that have been split from this one; each call adds one. For splitting.cpp.
  std::uint32_t count_split() { return ++splits_; }

  void abort(int code) noexcept;
  // Not ok where it was called on this rank. Any thread.
  Status asked_to_abort() const noexcept {
    const Failure& f = operations_.failure();
    return f.abort_asked() ? f.aborted(rank()) : Status();
  }
  // Ends everything in flight, here and on the other ranks. The caller says why.
  void fail(Status why) noexcept;
  // Writes what this rank was doing, on all communicators that are not busy in another thread.
  Status dump(const std::string& path, const std::string& reason);
  // Into another one's, where no other thread is busy with this communicator.
  void add_to(DumpedRank* all);
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

  ShortCalls::Of parts() { return {*this, team_, recorder_, operations_}; }
  bool progress_until(Operation* op, std::int64_t until_ns);
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

  // Guards all of the following, but for what these say that any thread may do. They take no lock: this one is held by
  // who calls them, and for no longer than a call of theirs takes. survival_ is of the thread that makes the calls.
  SpinLock lock_;
  Team team_;
  Recorder recorder_{team_};
  Operations operations_{team_, recorder_};
  Supervisor supervisor_{team_, operations_};
  ShortCalls short_calls_;
  Survival survival_;
  std::uint32_t splits_ = 0;
  bool left_ = false;  // every rank has come to the end of it
};

// Communicator::notice() where the communicator still is.
void notice_failure_of(const Communicator* maybe);

// Calls f with every communicator of this process, unless another thread looks at them, too.
void for_each_communicator(const std::function<void(Communicator&)>& f);

// Progress on every communicator of this process that is in use, and functions that are due. True when something moved.
bool progress_all_but(Communicator* mine);

}  // namespace gccl
