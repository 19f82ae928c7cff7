// What ranks do together when some of them have failed: agree, and make a smaller communicator. One rank's side, for
// all of its communicators.
//
// It carries out the fault protocol (fault/membership.hpp) over datagrams of its own, since the ports of a communicator
// end with the first peer. Failures are known from the system, where it sees the other's process: one that has ended is
// gone for certain, and so is one that has closed its port: it has called GCCL_Finalize; from a transport that has lost
// a peer elsewhere; from the other ranks; and, in jobs on several machines or networks, from the detector
// (fault/detector.hpp): a rank that is silent for GCCL_DETECTION_MS has failed.
//
// A thread answers the others, whatever this rank computes. It begins with the job where there is a detector, else with
// the first of these calls, and lives as long as this: a rank that has returned from a call answers those that have
// not. It ends when these have what they need, or have failed, or after a second at most (last_decision.cpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/communicator/recovery/contact.hpp"
#include "libgccl/communicator/recovery/datagram.hpp"
#include "libgccl/communicator/recovery/datagram_paths.hpp"
#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/watch/watch.hpp"
#include "libgccl/fault/detector.hpp"
#include "libgccl/fault/membership.hpp"
#include "libgccl/net/datagrams.hpp"

namespace gccl {

class Applicant;
class CommunicatorCore;
class Metrics;

struct World;

// Which processes may join, and what they learn. They get the places of ranks that have failed: the one that they
// were started as, else the lowest; and then those behind all others.
struct Growth {
  // With a policy nobody need be there: where none can be met, the others go on alone. rejoin: only those that were
  // started in the place of one that has failed.
  GCCL_Failure_policy policy = GCCL_FAIL;
  Rank most = 0;  // so many; or, with a policy, as many as `size` is more than those that are left
  Rank size = 0;
  std::int64_t wait_ms = 0;
  // rejoin: the ranks that the members were started as, below `size` and in ascending order, in which they stay.
  std::vector<Rank> started_as = {};
  // From the flags that all have agreed on, and what they have made. Not empty.
  std::function<std::vector<std::byte>(std::uint64_t flags, const World& made)> word = {};
};

class Recovery {
 public:
  // Also where this rank can receive no datagrams: that is no reason not to start.
  static std::unique_ptr<Recovery> open(const Bootstrap& bootstrap);
  ~Recovery();
  Contact contact() const;
  // By rank of the world. Before any of the functions below.
  void meet(Rank rank, std::vector<Contact> contacts, std::uint64_t job, const std::string& secret);

  // ---- Calls on a communicator, from any thread ----

  // Not ok, on all ranks alike, where one of the job's can receive no datagrams, or send none to another: then nothing
  // else may be called here.
  const Status& usable() const { return usable_; }
  // Ranks of `members` that are known to have failed, `lost` of them by their transport. Local.
  std::vector<Rank> failed(const Members& members, const std::vector<Rank>& lost);
  void acknowledge(const Members& members);
  // Changes when the detector has found something. Any thread, cheap.
  std::uint32_t news() const { return news_.load(std::memory_order_relaxed); }
  // Not ok where one of these ranks is silent, or this rank hears nobody: why, and who.
  Status silence(const Members& members, Rank* who);
  // Collective over those that have not failed, within the communicator's time limit. *flags becomes the AND of theirs;
  // not ok where a rank has failed that not all callers had acknowledged.
  Status agree(CommunicatorCore& c, std::uint64_t* flags);
  // Likewise: they make a communicator of all of them, in the order of their ranks. `flags`: the AND of theirs, from
  // bit 1 on; null: none, and the program's own call.
  Status shrink(CommunicatorCore& parent, std::unique_ptr<CommunicatorCore>* out, std::uint64_t* flags = nullptr);
  // Likewise, with processes that want to join.
  Status grow(CommunicatorCore& parent, const Growth& growth, std::unique_ptr<CommunicatorCore>* out,
              std::uint64_t* flags = nullptr);
  // In the world that such ranks have made: all members have the communicator. And for one that has joined, with those:
  // whether they do.
  void say_admitted(const Members& members, std::span<const std::byte> word);
  Status await_admission(const Members& members, std::span<const Rank> joined, Applicant& applicant,
                         std::vector<std::byte>* word);
  // What ranks call of these on the communicator ends with that, and none begins any more.
  void end_calls(const Members& members, const Status& why);
  // That, or one of them has given up.
  bool ended(const Members& members);
  // All members have freed the communicator: none of them makes or answers such calls on it any more.
  void forget(const Members& members);
  // The same of all communicators.
  void all_have_left();
  // How often the detector suspected a rank, and heard it again.
  void suspicions(Metrics* out);

 private:
  class Over;
  class Making;
  class Growing;
  // With the lock held: what an exception has left half done is not used again.
  class Whole {
   public:
    explicit Whole(Recovery& recovery) : recovery_(recovery) {}
    ~Whole() {
      if (std::uncaught_exceptions() == before_) return;
      recovery_.end_calls();
    }
    Whole(const Whole&) = delete;

   private:
    Recovery& recovery_;
    const int before_ = std::uncaught_exceptions();
  };
  // A communicator on which one of the calls was made.
  struct Group {
    Members members;
    std::unique_ptr<fault::Membership> membership;  // its ranks are the communicator's
    std::vector<fault::Decision> decisions;
    bool in_call = false;       // a thread is, also while it has let go of the lock
    Status broken;              // a call gave up, on this rank or another; the ranks no longer agree on where they are
    fault::RankSet uninformed;  // of that, as far as they have said
    std::int64_t report_at_ns = 0, report_pause_ns = 0;
    // Of exchanges: by number, and by rank.
    std::map<std::uint64_t, std::vector<std::byte>> said;
    std::map<std::uint64_t, std::map<Rank, std::vector<std::byte>>> heard;
    std::uint64_t exchanges = 0;
    std::uint64_t wanted = 0;  // 0: none
    std::int64_t want_at_ns = 0, want_pause_ns = 0;
    std::uint64_t abandoned = 0;  // epoch in whose exchanges this rank takes no more part
    std::uint64_t decided = 0;    // how many decisions this rank has; and others, as far as they have said
    std::map<Rank, std::uint64_t> decided_there;
  };
  // One of them, while it lasts; ends with the lock held.
  class CallScope {
   public:
    CallScope(Group& group, std::unique_lock<std::mutex>& lock) : group_(group), lock_(lock) { group_.in_call = true; }
    ~CallScope() {
      if (!lock_.owns_lock()) lock_.lock();
      group_.in_call = false;
    }
    CallScope(const CallScope&) = delete;

   private:
    Group& group_;
    std::unique_lock<std::mutex>& lock_;
  };
  static constexpr std::int64_t kRetryNs = 20'000'000;
  using Kind = DatagramHeader::Kind;
  struct Rules : fault::DetectorRules {
    const Recovery* recovery = nullptr;
    bool lives(Rank r) const override;
  };

  // With the lock held.
  Group& group_of(const Members& members);
  void serve() noexcept;
  void serve_once(std::unique_lock<std::mutex>& lock);
  void start_thread();
  // No call goes on any more: memory was short in one.
  void end_calls();
  void resign();
  // Of a call that is to decide without them.
  std::vector<Rank> lost_of(CommunicatorCore& c);
  void read_some();
  void dispatch(std::span<const std::byte> bytes, const SocketAddress& at);
  // Whether the system says here when that rank's process ends.
  bool seen(Rank world) const { return contacts_[world].process.seen_from(contacts_[rank_].process); }
  void check_processes();
  void note_gone(Rank world);
  void learn(Group& g, const std::vector<Rank>& lost);
  void flush(Group& g);
  void send(std::uint64_t id, Rank from, Rank to_world, Kind kind, std::span<const std::byte> bytes);
  void send(const Group& g, Rank to, Kind kind, std::span<const std::byte> bytes) {
    send(g.members.id, g.members.rank, g.members.world_rank[to], kind, bytes);
  }
  // Those that have not said what this exchange is about are asked from so long after now on, and less and less often:
  // each says it to all by itself, and what answers to many questions cost would keep the detector's packets waiting.
  static void want_from(Group& g, std::uint64_t number, std::int64_t pause_ns);
  void ask_again(Group& g);
  void start_detector();
  void warn_of_silent(Rank r);
  void drive_detector();
  void wake();
  // When a call that begins now has taken too long.
  static std::int64_t time_limit(std::int64_t timeout_ms);
  // Not ok: no call goes on.
  const Status& over(const Group& g) const { return ended_.ok() ? g.broken : ended_; }
  // Before a call, with what its transports have lost. Not ok: it cannot begin.
  Status prepare_call(Group& g, const std::vector<Rank>& lost);
  // Collective over those that have not failed: what `making` makes of them, all or none.
  Status remake(CommunicatorCore& parent, Making& making, std::int64_t until_ns, std::unique_ptr<CommunicatorCore>* out,
                std::uint64_t* flags);
  bool needs_second(Rank from, const DatagramPaths& paths, Rank to) const;
  Status check_paths() const;
  // In giving_up.cpp.
  void give_up(Group& g, const Status& why, Rank heard_from);
  bool reports(const Group& g) const;
  void report(Group& g);
  void say_broken(const Group& g, Rank to);
  void hear_broken(Group& g, Rank from, BytesIn& in);
  // In last_decision.cpp.
  static fault::RankSet may_ask(const Group& g);
  static fault::RankSet undecided(const Group& g);
  void say_decided(const Group& g, Rank to, bool answer);
  void hear_decided(Group& g, Rank from, BytesIn& in);
  void await_decided();
  // What waits for a decision: a call of the program's; or the communicator that goes on by itself, until GCCL_Abort.
  struct Waiter {
    CommunicatorCore& c;
    std::optional<Watch::In> call;  // the program's
    bool aborted;                   // before that
  };
  Status await_decision(std::unique_lock<std::mutex>& lock, Group& g, std::int64_t until_ns, fault::Decision* out,
                        const Waiter& waiter);
  static std::string missing(const Group& g, const Waiter& waiter);
  Status attend(std::unique_lock<std::mutex>& lock, const Group& g, const Waiter& waiter, std::int64_t since_ns);
  Status out_of(const Group& g) const;

  Rank rank_ = 0;
  std::vector<Contact> contacts_;
  std::unique_ptr<Datagrams> datagrams_;
  DatagramPaths paths_;
  Status usable_;
  Fd wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Group> groups_;  // by communicator
  std::vector<bool> gone_;                 // by world rank
  // Over all ranks of the world; null: none is needed, or wanted.
  Rules rules_;
  std::unique_ptr<fault::Detector> detector_;
  fault::Failures silent_;                               // what it has found
  std::vector<std::pair<Rank, std::int64_t>> ended_at_;  // as the system said
  bool isolated_ = false, warned_ = false, too_long_ = false;
  std::int64_t detection_ms_ = 0;
  std::uint64_t job_ = 0;
  std::atomic<std::uint32_t> news_{0};
  std::vector<std::pair<Rank, Fd>> watches_;
  bool all_watched_ = true;  // those that are seen, by descriptors
  std::int64_t looked_ns_ = 0;
  bool stop_ = false, all_have_left_ = false;
  Status ended_;  // no call goes on, for this reason
  std::thread thread_;
};

}  // namespace gccl
