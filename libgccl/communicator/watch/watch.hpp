// What ranks that wait say to each other, so that calls that differ are found where no message between them shows it:
// a root that each rank takes to be another one makes each of them wait for a message that nobody sends.
//
//   rank 0 waits in reduce #1, root 0              rank 1 waits in reduce #1, root 1
//     notes: call #1, digest of all calls up to it ->   another digest at #1: the calls differ
//            question: what are you in?            ->
//        <- the digest here at #1, and what this rank waits for
//
// Compared are digests of all calls up to one, so a difference is certain, whatever is still in flight, and only a rank
// that looks for what it waits for takes part: one that computes says nothing, and is waited for.
//
// Notes travel on ports of their own, so that nothing here ever disturbs a call: any transport will do, and where one
// fails the notes end. Nothing is sent before a wait has stalled.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/watch/history.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

// A wait that has not moved for so long has stalled.
inline constexpr std::int64_t kStallNs = 100'000'000;

// One rank's side, for all of its communicators. All functions may be called from any thread.
class Watch {
 public:
  explicit Watch(Rank rank);
  // Its ports, in addition to those of the communicator of all ranks. Before any wait.
  static GCCL_Port_spec spec(const GCCL_Port_spec& of_world);
  void use(std::unique_ptr<Ports> ports) { ports_ = std::move(ports); }
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // What a rank is in, on one communicator.
  // agree, shrink, grow: and this rank knows of none that has failed.
  enum class In : std::uint8_t { nothing, collective, send, recv, elsewhere, finalize, agree, shrink, grow };
  static bool agrees(In in) { return in == In::agree || in == In::shrink || in == In::grow; }
  struct Waiting {
    In in = In::nothing;
    std::uint64_t signature = 0;
    bool follows = false;        // another collective of the same call, which ranks come to by themselves
    bool checks = false;         // not in that call yet, or any more: in GCCL_CHECK's comparison
    std::uint32_t sequence = 0;  // of a collective
    Rank peer = 0;               // waited for
    bool blocked = false;        // the thread that waits does nothing else meanwhile
    bool limited = false;        // ends by a time limit, after which the rank may make other calls
    std::uint32_t number = 0;    // blocked: of such waits there
    // A message is waited for, or what a compiled schedule waits for: the taking of one, too, for which the peer has to
    // be in the call. Not the taking of other messages, which pass while the peer does something else.
    bool receives = false;
    std::uint32_t message = 0;  // recv, send: of those from or to that rank the how manyth
    bool open() const { return in != In::nothing; }
    bool agrees() const { return Watch::agrees(in); }
    bool same_call(const Waiting& o) const { return in == o.in && sequence == o.sequence && message == o.message; }
  };

  // Between ranks' calls.
  struct Difference {
    Status what;              // ok: none
    Rank rank = 0;            // of the communicator: the first whom it is about
    std::vector<Rank> ranks;  // of the world: all of them
  };

  // Calls on two communicators that seem to be in crossed order, and since when.
  struct Crossed {
    std::uint32_t sequence = 0;
    Rank peer = 0, awaited = 0;
    std::uint64_t signature = 0, communicator = 0;
    std::int64_t since_ns = 0;
    bool same(const Crossed& o) const {
      return sequence == o.sequence && peer == o.peer && awaited == o.awaited && signature == o.signature &&
             communicator == o.communicator;
    }
  };
  // The lengths of the latest alltoallv, in elements: only its sender and its receiver can compare them.
  struct Exchanged {
    std::uint32_t sequence = 0;
    std::vector<std::size_t> sent, due;  // to and from each rank
  };
  // The point-to-point messages that were begun with each rank. One thread at a time adds, any thread reads.
  class Messages {
   public:
    explicit Messages(std::size_t ranks) : of_(ranks) {}
    // Returns how many there have been with this one.
    std::uint32_t count(bool sends, Rank peer) { return add(sends ? of_[peer].sent : of_[peer].received); }
    std::uint32_t sent(Rank to) const { return of_[to].sent.load(std::memory_order_relaxed); }
    std::uint32_t received(Rank from) const { return of_[from].received.load(std::memory_order_relaxed); }
    // One of them has ended at that time, and others are in flight. For the thread that adds.
    void ended(bool sends, Rank peer, std::int64_t at_ns) {
      (sends ? of_[peer].sent_ended_ns : of_[peer].received_ended_ns) = at_ns;
    }
    // 0: none has.
    std::int64_t ended_ns(bool sends, Rank peer) const {
      return sends ? of_[peer].sent_ended_ns : of_[peer].received_ended_ns;
    }
    // Over all ranks 0 where each has received what was sent to it.
    std::uint64_t sum(Rank rank) const;

   private:
    struct Counts {
      std::atomic<std::uint32_t> sent{0}, received{0};
      std::int64_t sent_ended_ns = 0, received_ended_ns = 0;
    };
    static std::uint32_t add(std::atomic<std::uint32_t>& n) {
      const std::uint32_t now = n.load(std::memory_order_relaxed) + 1;
      n.store(now, std::memory_order_relaxed);
      return now;
    }
    std::vector<Counts> of_;
  };
  // A communicator as the watch sees it.
  struct Note;
  struct Peer;
  struct Probe;
  struct Letter;
  class Record;
  // While it lives, the other ranks that this process is find the record.
  class Here {
   public:
    explicit Here(const Record& record);
    ~Here();
    Here(const Here&) = delete;

   private:
    const Record& record_;
  };
  class Record {
   public:
    Record(std::uint64_t id, Rank rank, std::vector<Rank> world_rank);
    ~Record();
    History history;                  // the communicator's own to add to
    Messages messages;                // likewise
    std::uint64_t lengths_sum = 0;    // of all alltoallv calls; 0 over all ranks where sent and due agree. Likewise
    std::atomic<bool> broken{false};  // it makes no more calls
    bool watched = false;             // a wait there is known to the watch. The communicator's own to write
    std::atomic<std::uint32_t> agreements{0};  // GCCL_Comm_agree, _shrink and _grow that were begun
    // Of its latest collective, repeated short ones apart: which thread began it, as this_thread() says.
    std::atomic<const void*> thread{nullptr};

   private:
    friend class Watch;
    const std::uint64_t id_;
    const Rank rank_;
    const std::vector<Rank> world_rank_;
    Waiting waiting_;
    bool leaving_ = false;
    Difference differs_;
    bool agreement_differs_ = false;  // that: a peer agrees on who has failed
    Crossed crossed_;
    Exchanged exchanged_;
    // When the ranks that this one waits for are asked whether they wait for it, and in which wait.
    std::uint64_t sought_in_ = 0;
    std::int64_t seek_ns_ = 0, seek_pause_ns_ = 0;
    std::list<Peer> peers_;  // whom notes are exchanged with
    // A wait for another rank of this process, and since when; 0: it has been spoken of.
    std::uint32_t alone_in_ = 0;
    std::int64_t alone_since_ns_ = 0;
    const Here here_{*this};
  };
  // The same in one thread, and another in each that runs at the same time.
  static const void* this_thread() {
    static thread_local const char mark = 0;
    return &mark;
  }
  // The record of a communicator, until it is left.
  std::shared_ptr<Record> join(std::uint64_t id, Rank rank, std::vector<Rank> world_rank);
  void leave(const Record& record);

  // A number for what a rank sends and is due in an alltoallv, in elements: 0 over all ranks where these agree.
  static std::uint64_t lengths_sum(Rank rank, Rank ranks, std::uint32_t sequence, const std::size_t* sent,
                                   const std::size_t* due);
  // Each alltoallv, before it begins.
  void exchanges(Record& record, std::uint32_t sequence, const std::size_t* sent, const std::size_t* due);

  // Call now and then while a wait there stalls. Not ok: the ranks' calls differ, and how.
  Status check(Record& record, const Waiting& waiting, std::int64_t now_ns);
  // Whether that was found of a peer that agrees on who has failed.
  bool agreement_differs(const Record& record);
  void over(Record& record);
  // This rank makes no more calls there: what it has found out so far.
  void leaving(Record& record);
  Difference found(Record& record);
  // What the other ranks were in when they last said so, in words.
  std::string report(Record& record, std::int64_t now_ns);

 private:
  struct Link;
  static std::string elsewhere_text(const Note& note);
  static std::string awaited_text(const Note& elsewhere, const char* before);
  static const char* agreement_text(In in);
  static Peer& peer_of(Record& record, Rank rank);
  Link& link_to(Rank world);
  void ask(Record& record, Peer& peer, std::int64_t now_ns);
  void answer(Record& record, Peer& peer, const Note& question);
  Note state_of(const Record& record, const Peer& reader) const;
  void note_call(const Record& record, const Peer& peer, std::uint32_t sequence, std::uint8_t also = 0);
  void note_lengths(const Record& record, const Peer& peer);
  void send(Rank world, const Letter& letter);
  void flush(Link& link);
  void expect_notes();
  void listen(Link& link);
  void poll();
  void heard(Link& link);
  void compare(Record& record, Peer& peer, const Note& note);
  void narrow(Record& record, Peer& peer);
  void go_on_narrowing(Record& record, Peer& peer, bool anew);
  void differs_before(Record& record, const Peer& peer);
  void compare_lengths(Record& record, const Peer& peer, const Note& note);
  void compare_left(Record& record, const Peer& peer);
  void compare_messages(Record& record, const Peer& peer);
  void compare_agreement(Record& record, Peer& peer);
  void compare_self(Record& record);
  static bool waits_for_call(const Record& record, const Record& other, bool may_find_room);
  void compare_same_process(Record& record, std::int64_t now_ns);
  static bool depends_on(const Record& record, Rank rank);
  static bool waits_in_vain(const Record& record, const Peer& peer);
  static std::uint64_t wait_of(const Record& record);
  void seek_circle(Record& record);
  bool pass_on(const Record& record, const Probe& probe);
  void heard(const Probe& probe);
  static std::string circle_text(const Record& record, const Probe& probe);
  static std::uint32_t begun(const Record& record);
  bool waits_for_agreement(const Record& record, const Peer& peer) const;
  bool finalizing() const;
  const Peer* crossed(const Record& record, std::int64_t* heard_ns) const;
  void compare_crossed(Record& record, std::int64_t now_ns);
  // Those ranks of the world, the first of which is in the communicator: who will not do what the others wait for, or
  // all that take part where it may be any of them.
  void differs(Record& record, std::vector<Rank> ranks, const std::string& text, int code = GCCL_ERR_MISMATCH);
  std::vector<Rank> both(const Record& record, const Peer& peer) const;
  // No call comes but from the thread that waits: there is no other, not even one that has made no call yet. It reads a
  // folder of /proc, so what costs less is asked first.
  bool alone() const;

  SpinLock lock_;
  const Rank rank_;
  std::unique_ptr<Ports> ports_;
  bool failed_ = false;  // a port did: no more notes
  std::vector<std::shared_ptr<Record>> records_;
  // Communicators that were left: the latest ones, in room that is there from the start, as leaving must not fail.
  struct Left {
    std::uint64_t id = 0;
    std::uint32_t calls = 0, agreements = 0;
  };
  std::vector<Left> left_;
  std::size_t leaves_ = 0;  // so far
  // Of whom a probe was passed on in this wait, and when.
  std::uint64_t passed_on_in_ = 0;
  std::map<Rank, std::int64_t> passed_on_;
  std::map<Rank, std::unique_ptr<Link>> links_;  // by world rank
  std::int64_t now_ns_ = 0;                      // of the latest check
};

}  // namespace gccl
