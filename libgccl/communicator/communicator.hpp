// A communicator: ranks, the wires between them, and the calls under way, carried out in the order of their start.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <set>

#include "libgccl/base/backoff.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/operation.hpp"
#include "libgccl/communicator/setting.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/watch.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl {

// What the communicators of one rank share.
struct World {
  Start start;
  std::unique_ptr<Wires> wires;
  std::unique_ptr<Watch> watch;
  Overrides overrides;
  bool check = false;           // GCCL_CHECK: compare all ranks' calls before each
  bool oversubscribed = false;  // more ranks than processors on this machine
  // Some communicator ended here without the others' word, so that they may still have it.
  std::atomic<bool> uneven{false};
  // Known from GCCL_Finalize on: communicators that failed on some rank, and how.
  struct Failed {
    std::uint64_t communicator;
    Rank rank;
    std::int32_t code;
  };
  std::vector<Failed> failed;
};

// Time limits are at most a year, so that no sum with them overflows.
inline constexpr std::int64_t kTimeoutMsMax = std::int64_t(1000) * 86400 * 365;

// What a rank says of all communicators that were made from a world and are still there.
struct Others {
  std::uint64_t sum = 0;     // 0 over all ranks where each of them has had the same calls on all of its ranks
  std::uint64_t failed = 0;  // one that is broken here
  std::uint64_t code = 0;    // of that
};

// All public functions may be called from any thread. None leaves a lock held when it throws, as it may when memory is
// short; other ranks then wait for its call until fail().
class Communicator {
 public:
  struct Members {
    Rank rank = 0;
    std::vector<Rank> world_rank;  // by rank
    std::vector<Rank> node;        // by rank, numbered from 0 in the order of their lowest ranks
    std::uint64_t id = 0;
    bool world = false;  // of all ranks of the job, made by create_world
  };
  // Collective over the members.
  static Status create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                       std::unique_ptr<Communicator>* out);
  // Operations under way are dropped.
  ~Communicator();

  Rank size() const { return Rank(members_.world_rank.size()); }
  Rank rank() const { return members_.rank; }
  const std::vector<Rank>& nodes() const { return members_.node; }
  const World& world() const { return *world_; }
  bool is_world() const { return members_.world; }

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
  // Begins it, with a plan that is made already or one of its own. The operation is the caller's to wait() for or
  // give_up(), and null where it fails.
  Status start(Work&& work, Operation** out, std::shared_ptr<PreparedPlan> plan = nullptr);
  Status start(std::unique_ptr<Operation> op, Operation** out);
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
  bool under_way();
  bool busy() { return active_.load(std::memory_order_relaxed) > 0; }

  // Collective. Null in *out where the color is negative.
  Status split(int color, int key, std::unique_ptr<Communicator>* out);
  Status create(std::span<const int> ranks, std::unique_ptr<Communicator>* out);

  // What run() would use; element_bytes of the call's type.
  const Algorithm* chosen(const Call& call, std::uint32_t element_bytes);
  const Layout& layout() const { return layout_; }
  // Another opinion on which ranks are near each other, for the algorithms. Requires layout.ranks() == size(), the same
  // on every rank, and no operation under way.
  void use_layout(Layout layout);

  void set_timeout(std::int64_t ms) { timeout_ms_.store(std::min(ms, kTimeoutMsMax), std::memory_order_relaxed); }
  void abort(int code);
  // Ends everything in flight, here and on the other ranks. The caller says why.
  void fail(Status why) noexcept;
  // Every rank has come this far, by the same calls; where the communicator is broken, why, unless a call has said so.
  // Before it is freed.
  Status leave();
  // Begins it; null where there is nothing to wait for.
  Status begin_to_leave(Operation** out, const Others* others = nullptr);
  // Adds this communicator to those that GCCL_Finalize compares along with the world.
  void add_to(Others* others);
  // GCCL_Finalize begins: there are no more calls here. Afterwards: what went wrong, as in leave().
  void leaving() { world_->watch->leaving(*record_); }
  Status left();
  void metrics(GCCL_Metrics* out);
  // For GCCL_LOG=2: who this rank is and how it reaches the others; on rank 0 also nodes, and the settings in force.
  void announce();

  const char* const magic = kMagic;
  static const char kMagic[];

 private:
  class OverParent;  // an Exchange over this communicator
  Communicator() = default;

  Status split(Purpose purpose, int color, int key, std::span<const int> listed, std::unique_ptr<Communicator>* out);
  // All of these with the lock held.
  std::shared_ptr<PreparedPlan> plan_of(const Work& work);
  Plan planned(const Call& call, std::uint32_t element_bytes);
  std::shared_ptr<PreparedPlan> plan_for(const Work& work);
  void announce(const Work& work, const PreparedPlan& plan);
  Operation* run_program(Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key);
  void grow_scratch(const PreparedPlan& plan, std::uint32_t element_bytes);
  void enqueue(Operation* op);
  void begin(Operation* op);
  Operation* carry_on_later(Work&& work, const Replay& replay, std::shared_ptr<PreparedPlan> plan,
                            std::int64_t from_ns);
  void begin_transfer(Operation* op);
  bool meet_myself(Operation* op);
  void count_message(bool sends, Rank peer) { sends ? record_->messages.send(peer) : record_->messages.receive(peer); }
  bool move() noexcept;
  bool advance();
  bool carry_on(Operation* op, std::int64_t until_ns);
  bool waits_for_network() const;
  void advance_front();
  void finish(Operation* op, Status status);
  void conclude(Work& work);
  void compare_checks(Operation* op);
  // The call's place in the order of all.
  void number(Work& work);
  // Comparisons (check.cpp).
  void check_first(Operation* op);
  void compare_lengths(Operation* op);
  void compare_over(Operation* op, Operation::Checks checks, std::vector<std::uint64_t> mine);
  bool differ_in_digests(const Operation& op) const;
  Status compare_others(const Operation& op);
  void gather_histories(Operation* op);
  Status compare_histories(const Operation& op);
  void break_down(Status why, Rank culprit, bool tell_others) noexcept;
  void tell(const GCCL_Fault& fault) noexcept;
  void drop(Operation* op) noexcept;
  Status blamed(Status why) const noexcept;
  void look_around() noexcept;
  void check_peers_and_time();
  void watch();
  bool timed_out(const Operation& op, std::int64_t now);
  Status reason(const GCCL_Fault& fault) const;
  Status named(const Work& work, const Status& why) const;
  // Another call's message is where one of `work` is due.
  Status differs(const Work& work, const Difference& found) const;
  Status failure(const Operation& op) const;
  std::string awaited(const Operation& op, Rank* peer) const;
  std::string who(Rank r) const { return rank_text(r, members_.world_rank); }
  std::string who_of(Rank r) const { return rank_text(r, members_.world_rank, true); }
  void count(const Descriptor& what, std::int64_t from_ns, bool failed);
  void count(const Traffic& traffic);

  std::shared_ptr<World> world_;
  Members members_;
  Layout layout_;
  Setting setting_;
  std::unique_ptr<Ports> ports_;
  FastPath* fast_ = nullptr;  // of ports_, or null

  struct Repeat {
    Key key;
    std::shared_ptr<PreparedPlan> plan;
    Work work;  // as it was, without its buffers
    std::uint64_t signature = 0;
    History::Call call{};
  };

  SpinLock lock_;
  PlanCache plans_;
  std::array<Repeat, 16> repeats_;     // by kind
  std::deque<Operation*> queue_;       // collectives; the front one is under way
  std::vector<Operation*> transfers_;  // point-to-point
  std::deque<Operation*> self_sends_, self_recvs_;
  std::atomic<std::uint32_t> active_{0};  // operations under way
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<std::size_t> scratch_bytes_;
  std::set<std::array<std::uint64_t, 4>> announced_;  // shapes of which the log has told
  std::uint32_t sequence_ = 0;
  std::shared_ptr<Watch::Record> record_;
  struct Stall {
    const Operation* operation = nullptr;
    std::uint64_t moved = 0;
    std::int64_t since_ns = 0, looked_ns = 0;
    bool watched = false;
  } stall_;
  std::uint32_t blocked_ = 0;  // threads that wait for a collective, without a limit, and do nothing else meanwhile
  std::uint32_t splits_ = 0;
  std::atomic<std::int64_t> timeout_ms_{GCCL_TIMEOUT_NONE};
  std::int64_t looked_around_ns_ = 0;  // when polls last did

  bool left_ = false;  // every rank has come to the end of it
  Status broken_;
  bool told_ = false;  // a call has returned it
  std::atomic<bool> abort_asked_{false};
  std::atomic<int> abort_code_{0};
  GCCL_Metrics metrics_{};
};

// Progress on every communicator of this process that is in use, and functions that are due. True when something moved.
bool progress_all_but(Communicator* mine);

}  // namespace gccl
