#include "sim/model/long_messages.hpp"

#include <algorithm>

namespace gccl::sim {

std::uint32_t LongMessages::acquire() {
  if (free_ == kNone) {
    trains_.emplace_back();
    return std::uint32_t(trains_.size() - 1);
  }
  const std::uint32_t slot = free_;
  free_ = trains_[slot].next;
  return slot;
}

void LongMessages::send(const Message& message, std::uint32_t way) {
  ways_.hold(way);
  enqueue(message, way);
}

void LongMessages::send(const Message& message) { enqueue(message, kNone); }

void LongMessages::enqueue(const Message& message, std::uint32_t way) {
  const std::uint32_t slot = acquire();
  Train& t = trains_[slot];
  t.message = message;
  t.way = way;
  t.next = kNone;
  t.due = -1;
  t.started = t.held_up = false;
  const std::uint64_t key = queue(t);
  if (Channels::Queue* q = queues_.find(key)) {
    trains_[q->tail].next = slot;
    q->tail = slot;
    go_on(key);
  } else {
    q = &queues_.insert(key);
    q->head = q->tail = slot;
    start(slot);
  }
}

// Starts the messages whose turn it is: the first, and behind those that are held up the next one to somebody else.
void LongMessages::go_on(std::uint64_t queue) {
  const std::uint32_t head = queues_.find(queue)->head;
  for (std::uint32_t i = head; i != kNone; i = trains_[i].next) {
    if (!trains_[i].started) {
      for (std::uint32_t k = head; k != i; k = trains_[k].next)
        if (trains_[k].message.to == trains_[i].message.to) return;
      start(i);
    }
    if (!trains_[i].held_up) return;
  }
}

void LongMessages::start(std::uint32_t slot) {
  Train& t = trains_[slot];
  t.started = true;
  t.left = t.message.bytes;
  offer(slot, std::max(t.message.at, calendar_.now()));
}

// Books a piece, or all that is left when no other long message is at any link by the time its head gets there.
void LongMessages::offer(std::uint32_t slot, Nanos at) {
  Train& t = trains_[slot];
  const Count part = t.message.bytes / kPiecesMax;
  const Count piece_min = part > kPieceMax ? part : 0;
  const Count own_turn = std::max(std::clamp(t.message.bytes / 16, kPieceMin, kPieceMax), piece_min);
  Count piece = t.left;
  bool alone = true;
  each_link(t, [&](std::uint32_t, BookedLink::Long& p, const LinkSet::Leg& leg) {
    const Nanos head = at + leg.before;
    if (p.owner != BookedLink::Long::kNobody && p.owner_end > head) interrupt(p, head);
    const bool free = p.line.end() <= head;
    p.turn = free ? own_turn : std::min(p.turn, own_turn);
    if (!free) piece = std::min(piece, std::max(p.turn, piece_min)), alone = false;
  });
  if (t.left < piece + kPieceMin) piece = t.left;  // no crumbs
  StagedPassage way(at);
  const std::uint32_t narrow = narrowest(t);
  const Nanos total = latency(t);
  Nanos own_way = 0, own_end = 0;
  each_link(t, [&](std::uint32_t place, BookedLink::Long& p, const LinkSet::Leg& leg) {
    way.enter(leg.stage);
    const BookedLink::Passage passage = links_.book_long(place, way.head(), piece, calendar_.now());
    p.owner = alone ? slot : BookedLink::Long::kNobody;
    p.latest = passage.tail == p.line.end() ? slot : BookedLink::Long::kNobody;
    p.owner_begin = passage.head;
    p.owner_end = passage.tail;
    if (place == narrow) own_way = passage.tail - passage.head, own_end = passage.tail + total - leg.before;
    way.pass(passage, links_.latency_ns(place));
  });
  const Nanos tail = way.end();
  if (tail > kTimeMax) throw TimeOverflow();
  t.piece = piece;
  t.left -= piece;
  t.held_up = double(tail - own_end) > double(own_way) * kHeldUp;
  await(slot, tail - total);
}

// The owner of a link's end gives up what has not passed it by then, and offers that anew.
void LongMessages::interrupt(BookedLink::Long& where, Nanos at) {
  const std::uint32_t slot = where.owner;
  Train& t = trains_[slot];
  const double way = double(std::max<Nanos>(where.owner_end - where.owner_begin, 1));
  const double passed_share = std::clamp(double(at - where.owner_begin) / way, 0.0, 1.0);
  const Count passed = std::max(Count(double(t.piece) * passed_share), std::min(t.piece, kPieceMin));
  if (t.piece - passed < kPieceMin) {
    where.owner = BookedLink::Long::kNobody;
    return;
  }
  const double kept = double(passed) / double(t.piece);
  Nanos due = calendar_.now();
  each_link(t, [&](std::uint32_t, BookedLink::Long& p, const LinkSet::Leg& leg) {
    if (p.owner != slot) return;
    p.owner = BookedLink::Long::kNobody;
    const Nanos end = p.owner_begin + Nanos(double(p.owner_end - p.owner_begin) * kept);
    p.owner_end = end;
    p.line.end_at(end);
    due = std::max(due, end - leg.before);
  });
  t.left += t.piece - passed;
  t.piece = passed;
  await(slot, due);
}

// True when all of the message has passed. Otherwise goes on with it.
bool LongMessages::ended(std::uint32_t slot) {
  Train& t = trains_[slot];
  if (t.due != calendar_.now()) return false;  // it was interrupted
  Nanos late = 0;                              // short messages have passed meanwhile
  each_link(t, [&](std::uint32_t place, BookedLink::Long& p, const LinkSet::Leg&) {
    if (p.latest == slot && p.owed > 0) late = std::max(late, links_.pay(place, p));
  });
  if (late > 0) {
    await(slot, t.due + late);
    return false;
  }
  t.due = -1;
  if (t.left > 0) {
    offer(slot, calendar_.now());
    if (t.held_up) go_on(queue(t));
  }
  return trains_[slot].left == 0 && trains_[slot].due < 0;
}

void LongMessages::leave(std::uint32_t slot) {
  Train& t = trains_[slot];
  each_link(t, [&](std::uint32_t place, BookedLink::Long& p, const LinkSet::Leg&) {
    links_.count(place, t.message.bytes);
    if (p.owner == slot) p.owner = BookedLink::Long::kNobody;
    if (p.latest == slot) p.latest = BookedLink::Long::kNobody;
  });
  const std::uint64_t key = queue(t);
  if (!t.message.set) ways_.release(t.way);
  Channels::Queue* q = queues_.find(key);
  std::uint32_t before = kNone;
  for (std::uint32_t i = q->head; i != slot; i = trains_[i].next) before = i;
  (before == kNone ? q->head : trains_[before].next) = t.next;
  if (q->tail == slot) q->tail = before;
  const bool more = q->head != kNone;
  if (!more) queues_.erase(q);
  t.next = free_;
  free_ = slot;
  if (more) go_on(key);
}

}  // namespace gccl::sim
