// The Memory backend: every rank's buffers and lanes of one communicator in one process, untimed, with completions in
// an order shuffled by a seed. It trusts no schedule: each step is checked before it may touch an element.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/lane.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/verify/oracle.hpp"

namespace gccl {

// How a message travels. What completes in both, in any order, completes on every real transport.
enum class Delivery : std::uint8_t {
  buffered,    // one slot per (lane, from, to): a send completes when it got the slot
  rendezvous,  // no slot but for signals, which have nothing to hold: a send completes once its receive is posted
  fetched,     // the same, and no message is set aside that can wait for its turn (Backend)
};

// One run of one algorithm: everything that determines it.
struct Case {
  const Algorithm* algorithm = nullptr;
  Call call{};
  std::shared_ptr<const Layout> layout;
  std::string layout_name = "flat";  // for the report
  Count shares = 1;
  Count lanes = 1;
  unsigned window = 1;  // steps in flight per lane
  Delivery delivery = Delivery::buffered;
  // As a fast path carries it out: steps in replay_order(), and slots for the messages that it buffers. Ranks whose
  // schedule has too many steps or messages for it keep the schedule's order. Requires one share, window 1, buffered.
  bool replayed = false;
  std::uint64_t seed = 1;             // elements' values and the order of completions
  std::shared_ptr<const void> table;  // keeps call.table alive; may be null

  Rank ranks() const { return layout->ranks(); }
};

// What can be wrong with a schedule.
enum class FaultKind : std::uint8_t {
  malformed,       // a step whose regions do not fit together
  self_message,    // a message to or from the rank itself
  no_such_peer,    // peer >= ranks
  outside,         // a region that leaves its buffer, or names one that the rank does not have
  input_written,   // a write to input that the in-place rules do not allow
  lane_overlap,    // two lanes touch the same element and one of them writes it
  unwritten_read,  // reads what nobody wrote
  count_mismatch,  // a send and its receive have different sizes
  deadlock,        // lanes wait for each other
  unmatched,       // a send without its receive or the other way round
  not_written,     // an output element that nobody wrote
  wrong_value,     // an output element that is not what the collective must leave
  left_early,      // a barrier let a rank go before all had entered
  fits_differs,    // ranks disagree about whether the algorithm can serve the call
  endless,         // more steps than any schedule may have
  exception,       // a schedule threw
};
std::string_view name(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string text;
};

// Runs one case once. Data moves as late as a real transport might move it: a send is read when its message travels, a
// receive is written when it completes, a landed recv_reduce is staged apart until combine.
class Memory {
 public:
  // `late`: a rank that enters only when nothing else can move any more; barrier's test. ranks() means none.
  explicit Memory(const Case& c) : Memory(c, c.ranks()) {}
  Memory(const Case& c, Rank late);

  // At most once. The first fault found, else null: then all lanes ended and all output is right.
  std::optional<Fault> run();
  // Messages that travelled.
  std::uint64_t messages() const { return messages_; }

  // Backend.
  bool start(Lane<Memory>& lane, Token token, const Step& step);
  bool combine(Lane<Memory>& lane, Token token, const Step& step);
  bool sets_aside(const Step&) const { return case_.delivery != Delivery::fetched; }

 private:
  using Payload = std::vector<OracleElement>;

  // A buffer with what is known about each element. readers and writers are kept only with several lanes.
  struct Store {
    std::vector<OracleElement> values;
    std::vector<std::uint8_t> written;
    std::vector<std::uint32_t> reader, writer;  // lane + 1; 0: nobody; kMany: several lanes read it
  };
  struct Posted {
    std::uint32_t lane;
    Token token;
  };
  // Messages of one (lane, from, to), in order.
  struct Channel {
    std::vector<Posted> sends, receives;  // at most a window of each
    std::deque<Payload> slots;
    bool scheduled = false;  // an event for it is pending
  };
  struct Event {
    enum Kind : std::uint8_t { enter, channel, sent, received, local, combined } kind;
    std::uint32_t lane = 0;
    Token token = 0;
    Channel* on = nullptr;
    Payload payload{};
  };

  Rank rank_of(std::uint32_t lane) const { return Rank(lane / lanes_); }
  Count lane_of(std::uint32_t lane) const { return lane % lanes_; }
  const Step& step_of(const Posted& p) const { return all_[p.lane].step(p.token); }
  // True when the message of that send may wait in a slot of its channel.
  bool buffers(const Step& s) const { return case_.delivery == Delivery::buffered || s.from.buffer() == Buffer::none; }
  bool coin() { return random() & 1; }
  std::uint64_t random();
  bool full(const Channel& ch) const { return ch.slots.size() >= slots_; }
  static Schedule bounded(Schedule s);

  void place_inputs();
  void drain();
  void happen(Event& e);
  void schedule(Channel& ch);
  bool movable(const Channel& ch) const;
  void move(Channel& ch);
  Payload take(const Posted& p);
  void apply(std::uint32_t lane, const Step& step, const Payload* incoming);
  Channel& channel(std::uint32_t lane, Rank from, Rank to);

  bool well_formed(std::uint32_t lane, const Step& step);
  bool may_read(std::uint32_t lane, const Step& step, const Region& r);
  bool may_write(std::uint32_t lane, const Step& step);
  bool may_touch(std::uint32_t lane, const Step& step);
  bool inside(std::uint32_t lane, const Step& step, const Region& r);
  void check_barrier();
  void check_ended();
  void check_output(Rank r);
  std::string blame(Rank r, Count i, OracleElement found, OracleElement due) const;

  Store& store(std::uint32_t lane, Buffer b);
  OracleElement* data(std::uint32_t lane, const Region& r) {
    return store(lane, r.buffer()).values.data() + r.offset();
  }
  std::string where(std::uint32_t lane, const Step& step) const;
  bool fail(FaultKind kind, std::string text);  // keeps the first; false

  const Case case_;
  Rank ranks_, late_;
  Count lanes_;
  std::size_t slots_;  // of each channel
  Oracle oracle_;
  std::uint64_t random_;
  std::uint64_t messages_ = 0;
  std::optional<Fault> fault_;
  std::vector<Store> inputs_, outputs_;  // by rank
  std::vector<Store> scratch_;           // by lane
  std::vector<Lane<Memory>> all_;        // rank r's lane l at r * lanes + l
  std::vector<Payload> landed_;          // by lane and token: messages that wait to be combined
  std::unordered_map<std::uint64_t, Channel> channels_;
  std::vector<Event> events_;
};

}  // namespace gccl
