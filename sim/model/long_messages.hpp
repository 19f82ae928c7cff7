// Long messages of the model engine: they share links in turns, so that none is held up by the whole of another.
#pragma once

#include <span>

#include "sim/engine/channels.hpp"
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
  // A message is cut into at most 16 pieces, but into none shorter or longer than these.
  static constexpr Count kPieceMin = 128 << 10, kPieceMax = 4 << 20;

  // A piece that waits for other links for more than so many times what it takes on the narrowest one is held up: it is
  // the third to arrive at a card. (SimGridNetwork: less than 0.4 of the rate.)
  static constexpr double kHeldUp = 1.5;

  LongMessages(std::vector<BookedLink>& links, Calendar& calendar) : links_(links), calendar_(calendar) {}

  bool idle() const { return queues_.empty(); }
  // True when a lane's next message over that narrowest link must be sent through here, however short it is.
  bool queues(std::uint32_t lane, LinkId narrowest) { return queues_.find(Channels::key(lane, narrowest)) != nullptr; }
  // Requires that the route is not empty.
  void send(const Message& message, std::span<const LinkId> route, LinkId narrowest);
  void send(const Message& message, const LinkSet& set);
  // Handles an event of its own. When that was the end of a message, calls arrives(message, when its last byte is
  // there).
  template <class F>
  void handle(EventId slot, F arrives) {
    if (!ended(slot)) return;
    const Message& m = trains_[slot].message;
    arrives(m, std::max(calendar_.now(), m.at + m.least_ns) + trains_[slot].latency);
    leave(slot);
  }

 private:
  static constexpr std::uint32_t kNone = Channels::kNone;
  struct Train {
    Message message{};
    std::uint64_t queue = 0;  // its lane and narrowest link
    LinkId narrowest = 0;
    bool started = false;
    bool held_up = false;  // its latest piece waits for other links
    std::vector<LinkSet::Leg> route;
    Nanos latency = 0;  // of the whole route
    Count left = 0;     // bytes that are not booked
    Count piece = 0;    // bytes of the latest booking
    Nanos due = -1;     // its event, when the booking's end has passed as seen from the first link; others are stale
    std::uint32_t next = kNone;  // in its queue, or in the free list
  };

  std::uint32_t acquire();
  Train& fresh(const Message& message, LinkId narrowest);
  void enqueue(std::uint32_t slot);
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

  std::vector<BookedLink>& links_;
  Calendar& calendar_;
  std::vector<Train> trains_;
  std::uint32_t free_ = kNone;
  Channels queues_;  // by lane and narrowest link: the messages from the first long one on
};

}  // namespace gccl::sim
