// Long messages of the model engine: they share links in turns, so that none is held up by the whole of another.
#pragma once

#include "sim/engine/channels.hpp"
#include "sim/engine/ways.hpp"
#include "sim/model/booked_link.hpp"
#include "sim/model/calendar.hpp"

namespace gccl::sim {

// A long message that is alone on its way is booked whole: one booking, as a short one. When another long message
// reaches one of its links it gives up what has not passed yet, and from then on each books a piece at a time: the next
// one for when the last one's end has passed, so pieces of all messages at a link take turns. One that finds itself
// alone again books all that is left.
//
//   A alone   AAAAAAAAAAAAAAAAAAA        B comes    AAAAAAbbaabbaabbaabbAAAA
//
// What its lane sends after it over the same narrowest link waits here for its end; but while other messages keep it
// waiting further on, the next one to another card goes concurrently.
class LongMessages {
 public:
  // Messages of more bytes are long.
  static constexpr Count kAbove = 128 << 10;
  // A message is cut into at most 16 pieces, but up to 8 GiB into none shorter or longer than these.
  static constexpr Count kPieceMin = 128 << 10, kPieceMax = 4 << 20;
  // A longer one is cut into at most so many, whatever it takes turns with: in pieces of 4 MiB an all-reduce of 1 PiB
  // on 16 ranks took minutes to simulate. Another long message there waits for 1/2048 of it at a time.
  static constexpr Count kPiecesMax = 2048;

  // A piece that waits for other links for more than so many times what it takes on the narrowest one is held up: it is
  // the third to arrive at a card. (SimGridNetwork: less than 0.4 of the rate.)
  static constexpr double kHeldUp = 1.5;

  LongMessages(BookedLinks& links, Ways& ways, Calendar& calendar) : links_(links), ways_(ways), calendar_(calendar) {}

  bool idle() const { return queues_.empty(); }
  // True when a lane's next message over the narrowest link in that place must be sent through here, however short it
  // is.
  bool queues(std::uint32_t lane, std::uint32_t narrowest) {
    return queues_.find(Channels::key(lane, narrowest)) != nullptr;
  }
  // Over that way, which is not empty; or over the message's LinkSet.
  void send(const Message& message, std::uint32_t way);
  void send(const Message& message);
  // What events[k + 1] and those after it will touch, in the order in which one thing leads to the next.
  [[gnu::always_inline]] void fetch_ahead(const std::vector<EventId>& events, std::size_t k) const {
    if (k + 12 < events.size()) prefetch(&trains_[events[k + 12]], sizeof(Train));
    if (k + 8 < events.size())
      if (const Train& t = trains_[events[k + 8]]; t.way != kNone) ways_.fetch(t.way);
    if (k + 4 < events.size())
      if (const Train& t = trains_[events[k + 4]]; t.way != kNone)
        for (const std::uint32_t place : ways_[t.way].links()) links_.fetch_with_long(place);
  }
  // Handles an event of its own. When that was the end of a message, calls arrives(message, when its last byte is
  // there).
  template <class F>
  void handle(EventId slot, F arrives) {
    if (!ended(slot)) return;
    const Message& m = trains_[slot].message;
    arrives(m, std::max(calendar_.now(), m.at + m.least_ns) + latency(trains_[slot]));
    leave(slot);
  }

 private:
  static constexpr std::uint32_t kNone = Channels::kNone;
  struct Train {
    Message message;
    std::uint32_t way;   // kNone: the message has a LinkSet
    std::uint32_t next;  // in its queue, or in the free list
    Nanos due;           // its event, when the booking's end has passed as seen from the first link; others are stale
    Count left;          // bytes that are not booked
    Count piece;         // bytes of the latest booking
    bool started, held_up;  // held up: its latest piece waits for other links
  };

  std::uint32_t acquire();
  std::uint32_t narrowest(const Train& t) {
    return t.message.set ? links_.place(t.message.set->narrowest) : ways_[t.way].narrowest;
  }
  Nanos latency(const Train& t) const { return t.message.set ? t.message.set->latency : ways_[t.way].latency; }
  std::uint64_t queue(const Train& t) { return Channels::key(t.message.lane, narrowest(t)); }
  // Calls f(place of a link, its bookings of long messages, leg) for each link on its way, in order; the leg names its
  // link only where the message has a LinkSet.
  template <class F>
  void each_link(const Train& t, F f) {
    if (t.message.set) {
      for (const LinkSet::Leg& leg : t.message.set->legs) {
        const std::uint32_t place = links_.place(leg.link);
        f(place, links_.with_long(place), leg);
      }
      return;
    }
    LinkSet::Leg leg{0, 0, 0};
    for (const std::uint32_t place : ways_[t.way].links()) {
      f(place, links_.with_long(place), leg);
      ++leg.stage;
      leg.before += links_.latency_ns(place);
    }
  }
  void enqueue(const Message& message, std::uint32_t way);
  void go_on(std::uint64_t queue);
  void start(std::uint32_t slot);
  void offer(std::uint32_t slot, Nanos at);
  void interrupt(BookedLink::Long& where, Nanos at);
  bool ended(std::uint32_t slot);
  void leave(std::uint32_t slot);
  void await(std::uint32_t slot, Nanos at) {
    trains_[slot].due = at;
    calendar_.push(at, slot, true);
  }

  BookedLinks& links_;
  Ways& ways_;
  Calendar& calendar_;
  std::vector<Train> trains_;
  std::uint32_t free_ = kNone;
  Channels queues_;  // by lane and narrowest link: the messages from the first long one on
};

}  // namespace gccl::sim
