#include "libgccl/verify/memory.hpp"

#include <fmt/core.h>

#include <array>
#include <cassert>
#include <cstring>

#include "libgccl/schedule/replay_order.hpp"

namespace gccl {
namespace {

constexpr std::uint32_t kMany = ~0u;                // readers of several lanes
constexpr OracleElement kGap = 0x6a09e667f3bcc908;  // an element of no block; no value of the oracle's but once in 2^64
constexpr std::uint64_t kStepsMax = 1ull << 26;  // of one lane; far beyond any schedule of a rank count that fits here

struct Endless {};

Schedule replayed(const Algorithm* algorithm, Call call, View view) {
  const auto whole = [&] { return sliced(algorithm, call, view, 1, 0, 1); };
  if (const auto steps = replay_order(whole())) {
    for (const Step& s : *steps) co_yield s;
  } else {
    co_yield whole();
  }
}

std::string text(const Region& r) {
  constexpr std::array<const char*, 4> kBuffers = {"none", "input", "output", "scratch"};
  if (r.buffer() == Buffer::none) return r.count ? fmt::format("none of {}", r.count) : "signal";
  return fmt::format("{}[{},{})", kBuffers[std::size_t(r.buffer())], r.offset(), r.offset() + r.count);
}

std::string text(const Step& s) {
  switch (s.op) {
    case Op::send: return fmt::format("send {} to {}", text(s.from), s.peer);
    case Op::recv: return fmt::format("recv {} from {}", text(s.to), s.peer);
    case Op::recv_reduce: return fmt::format("recv_reduce {} into {} from {}", text(s.from), text(s.to), s.peer);
    case Op::copy: return fmt::format("copy {} to {}", text(s.from), text(s.to));
    case Op::reduce: return fmt::format("reduce {} into {}", text(s.from), text(s.to));
    case Op::send_all:
    case Op::recv_reduce_all: break;
  }
  return "unknown step";
}

}  // namespace

std::string_view name(FaultKind kind) {
  constexpr std::array<std::string_view, 16> kNames = {"malformed step",
                                                       "self message",
                                                       "no such peer",
                                                       "outside its buffer",
                                                       "write to input",
                                                       "channel overlap",
                                                       "read before written",
                                                       "count mismatch",
                                                       "deadlock",
                                                       "unmatched message",
                                                       "output not written",
                                                       "wrong value",
                                                       "left a barrier early",
                                                       "fits differs between ranks",
                                                       "endless",
                                                       "exception"};
  return kNames[std::size_t(kind)];
}

Memory::Memory(const Case& c, Rank late)
    : case_(c),
      ranks_(c.ranks()),
      late_(late),
      lanes_(c.lanes),
      slots_(c.replayed ? kReplayMessagesMax : 1),
      oracle_(c.call, c.ranks(), c.seed),
      random_(c.seed) {
  assert(!c.replayed || (c.shares == 1 && c.lanes == 1 && c.window == 1 && c.delivery == Delivery::buffered));
  assert(c.algorithm && c.shares >= 1 && c.lanes >= 1 && Count(ranks_) * lanes_ < kMany);
  place_inputs();
  all_.reserve(std::size_t(ranks_ * lanes_));
  scratch_.resize(std::size_t(ranks_ * lanes_));
  landed_.resize(std::size_t(ranks_ * lanes_ * c.window));
  for (Rank r = 0; r < ranks_; ++r) {
    const View view = c.layout->view(r);
    for (Count l = 0; l < lanes_; ++l) {
      const std::uint32_t id = std::uint32_t(all_.size());
      const Count scratch = c.algorithm->scratch_count(c.call, view, c.shares, l, lanes_);
      scratch_[id].values.resize(scratch);
      scratch_[id].written.resize(scratch);
      all_.emplace_back(*this, id,
                        bounded(c.replayed ? replayed(c.algorithm, c.call, view)
                                           : sliced(c.algorithm, c.call, view, c.shares, l, lanes_)),
                        c.window);
      if (r != late_) events_.push_back({Event::enter, id});
    }
  }
}

// Ends a schedule that does not end by itself.
Schedule Memory::bounded(Schedule s) {
  std::uint64_t steps = 0;
  while (const Step* step = s.next()) {
    if (++steps > kStepsMax) throw Endless{};
    co_yield *step;
  }
}

std::uint64_t Memory::random() { return splitmix::mix(random_ += splitmix::kGolden); }

void Memory::place_inputs() {
  inputs_.resize(ranks_);
  outputs_.resize(ranks_);
  for (Rank r = 0; r < ranks_; ++r) {
    for (const bool is_input : {true, false}) {
      Store& s = is_input ? inputs_[r] : outputs_[r];
      const Count size = is_input ? input_count(case_.call, ranks_, r) : output_count(case_.call, ranks_, r);
      s.values.resize(size);
      s.written.resize(size);
      if (lanes_ == 1) continue;
      s.reader.resize(size);
      s.writer.resize(size);
    }
    const Region in = input_of(case_.call, ranks_, r);
    Store& s = in.buffer() == Buffer::input ? inputs_[r] : outputs_[r];
    const std::span<OracleElement> values = std::span(s.values).subspan(in.offset(), in.count);
    std::fill(values.begin(), values.end(), kGap);
    oracle_.input(r, values);
    for (Count i = 0; i < in.count; ++i) s.written[in.offset() + i] = values[i] != kGap;
  }
}

std::optional<Fault> Memory::run() {
  try {
    drain();
    if (late_ < ranks_ && !fault_) {
      check_barrier();
      for (Count l = 0; l < lanes_; ++l) events_.push_back({Event::enter, std::uint32_t(late_ * lanes_ + l)});
      drain();
    }
  } catch (const Endless&) {
    fail(FaultKind::endless, fmt::format("a channel has more than {} steps", kStepsMax));
  } catch (const std::exception& e) {
    fail(FaultKind::exception, e.what());
  }
  if (!fault_) check_ended();
  for (Rank r = 0; r < ranks_ && !fault_; ++r) check_output(r);
  return fault_;
}

void Memory::drain() {
  while (!events_.empty() && !fault_) {
    std::swap(events_[random() % events_.size()], events_.back());
    Event e = std::move(events_.back());
    events_.pop_back();
    happen(e);
  }
}

void Memory::happen(Event& e) {
  Lane<Memory>& lane = all_[e.lane];
  switch (e.kind) {
    case Event::enter: lane.pump(); break;
    case Event::channel: move(*e.on); break;
    case Event::received:
      if (lane.step(e.token).op == Op::recv_reduce) {
        landed_[e.lane * case_.window + e.token] = std::move(e.payload);
        lane.landed(e.token);
        break;
      }
      apply(e.lane, lane.step(e.token), &e.payload);
      lane.complete(e.token);
      break;
    case Event::local:
      apply(e.lane, lane.step(e.token), nullptr);
      lane.complete(e.token);
      break;
    case Event::combined:
      apply(e.lane, lane.step(e.token), &landed_[e.lane * case_.window + e.token]);
      lane.complete(e.token);
      break;
    case Event::sent: lane.complete(e.token); break;
  }
}

bool Memory::start(Lane<Memory>& lane, Token token, const Step& step) {
  const std::uint32_t id = lane.id();
  if (fault_ || !well_formed(id, step)) return false;
  if (step.op != Op::recv_reduce && !may_touch(id, step)) return false;
  if (step.local()) {
    if (coin()) {
      events_.push_back({Event::local, id, token});
      return false;
    }
    apply(id, step, nullptr);
    return true;
  }
  const Rank me = rank_of(id);
  if (step.receives()) {
    Channel& ch = channel(id, step.peer, me);
    ch.receives.push_back({id, token});
    schedule(ch);
    return false;
  }
  Channel& ch = channel(id, me, step.peer);
  if (buffers(step) && !full(ch) && ch.sends.empty() && coin()) {
    ch.slots.push_back(take({id, token}));
    schedule(ch);
    return true;
  }
  ch.sends.push_back({id, token});
  schedule(ch);
  return false;
}

bool Memory::combine(Lane<Memory>& lane, Token token, const Step& step) {
  const std::uint32_t id = lane.id();
  if (fault_ || !may_touch(id, step)) return false;
  if (coin()) {
    events_.push_back({Event::combined, id, token});
    return false;
  }
  apply(id, step, &landed_[id * case_.window + token]);
  return true;
}

Memory::Channel& Memory::channel(std::uint32_t lane, Rank from, Rank to) {
  return channels_[(lane_of(lane) * ranks_ + from) * ranks_ + to];
}

bool Memory::movable(const Channel& ch) const {
  if (!ch.slots.empty() && !ch.receives.empty()) return true;
  if (ch.sends.empty() || full(ch)) return false;
  return buffers(step_of(ch.sends.front())) || (ch.slots.empty() && !ch.receives.empty());
}

void Memory::schedule(Channel& ch) {
  if (ch.scheduled || !movable(ch)) return;
  ch.scheduled = true;
  events_.push_back({Event::channel, 0, 0, &ch});
}

// One message goes one stage further.
void Memory::move(Channel& ch) {
  ch.scheduled = false;
  std::optional<Payload> travels;
  if (!ch.slots.empty() && !ch.receives.empty()) {
    travels = std::move(ch.slots.front());
    ch.slots.pop_front();
  } else {
    const Posted from = ch.sends.front();
    ch.sends.erase(ch.sends.begin());
    Payload payload = take(from);
    if (buffers(step_of(from))) {
      ch.slots.push_back(std::move(payload));
    } else {
      travels = std::move(payload);
    }
    events_.push_back({Event::sent, from.lane, from.token});
  }
  if (travels) {
    const Posted to = ch.receives.front();
    ch.receives.erase(ch.receives.begin());
    const Step& step = all_[to.lane].step(to.token);
    if (travels->size() != step.count())
      fail(FaultKind::count_mismatch, fmt::format("{} meets a message of {}", where(to.lane, step), travels->size()));
    ++messages_;
    events_.push_back({Event::received, to.lane, to.token, nullptr, std::move(*travels)});
  }
  schedule(ch);
}

Memory::Payload Memory::take(const Posted& p) {
  const Step& step = step_of(p);
  if (step.from.count == 0) return {};
  const OracleElement* first = data(p.lane, step.from);
  return Payload(first, first + step.from.count);
}

void Memory::apply(std::uint32_t lane, const Step& step, const Payload* incoming) {
  if (step.to.count == 0) return;
  OracleElement* to = data(lane, step.to);
  const OracleElement* from = step.op == Op::recv ? incoming->data() : data(lane, step.from);
  const Count n = step.to.count;
  switch (step.op) {
    case Op::recv:
    case Op::copy: std::copy(from, from + n, to); break;
    case Op::recv_reduce:
      for (Count i = 0; i < n; ++i) to[i] = from[i] + (*incoming)[i];
      break;
    case Op::reduce:
      for (Count i = 0; i < n; ++i) to[i] += from[i];
      break;
    case Op::send:
    case Op::send_all:
    case Op::recv_reduce_all: break;
  }
  std::memset(store(lane, step.to.buffer()).written.data() + step.to.offset(), 1, step.to.count);
}

Memory::Store& Memory::store(std::uint32_t lane, Buffer b) {
  if (b == Buffer::scratch) return scratch_[lane];
  return b == Buffer::input ? inputs_[rank_of(lane)] : outputs_[rank_of(lane)];
}

std::string Memory::where(std::uint32_t lane, const Step& step) const {
  return fmt::format("rank {} channel {}: {}", rank_of(lane), lane_of(lane), text(step));
}

bool Memory::fail(FaultKind kind, std::string text) {
  if (!fault_) fault_ = Fault{kind, std::move(text)};
  return false;
}

bool Memory::well_formed(std::uint32_t lane, const Step& step) {
  if (step.to_group())
    return fail(FaultKind::malformed, fmt::format("{}: a step to a group must be plain", where(lane, step)));
  if (!step.local() && step.peer == rank_of(lane)) return fail(FaultKind::self_message, where(lane, step));
  if (!step.local() && step.peer >= ranks_)
    return fail(FaultKind::no_such_peer, fmt::format("{}, of {} ranks", where(lane, step), ranks_));
  const bool two = step.op != Op::send && step.op != Op::recv;
  if (two &&
      (step.from.count != step.to.count || step.from.buffer() == Buffer::none || step.to.buffer() == Buffer::none))
    return fail(FaultKind::malformed, fmt::format("{} needs two regions of one size", where(lane, step)));
  if (two && step.from != step.to && overlap(step.from, step.to))
    return fail(FaultKind::malformed, fmt::format("{} has regions that overlap in part", where(lane, step)));
  if (step.op == Op::reduce && step.from == step.to)
    return fail(FaultKind::malformed, fmt::format("{} reads what it writes", where(lane, step)));
  return inside(lane, step, step.reads()) && inside(lane, step, step.writes());
}

bool Memory::inside(std::uint32_t lane, const Step& step, const Region& r) {
  if (r.buffer() == Buffer::none)
    return r.count == 0 || fail(FaultKind::malformed, fmt::format("{} is a signal with elements", where(lane, step)));
  const Count size = store(lane, r.buffer()).values.size();
  if (r.offset() <= size && r.count <= size - r.offset()) return true;
  return fail(FaultKind::outside, fmt::format("{} but the buffer has {}", where(lane, step), size));
}

bool Memory::may_touch(std::uint32_t lane, const Step& step) {
  if (step.op == Op::reduce && !may_read(lane, step, step.to)) return false;
  return may_read(lane, step, step.reads()) && may_write(lane, step);
}

bool Memory::may_read(std::uint32_t lane, const Step& step, const Region& r) {
  if (r.count == 0) return true;
  Store& s = store(lane, r.buffer());
  if (const void* hole = std::memchr(s.written.data() + r.offset(), 0, r.count))
    return fail(FaultKind::unwritten_read, fmt::format("{} reads element {} before any write", where(lane, step),
                                                       static_cast<const std::uint8_t*>(hole) - s.written.data()));
  if (s.writer.empty()) return true;
  const std::uint32_t me = std::uint32_t(lane_of(lane)) + 1;
  for (Count i = r.offset(); i < r.offset() + r.count; ++i) {
    if (s.writer[i] && s.writer[i] != me)
      return fail(FaultKind::lane_overlap,
                  fmt::format("{} reads element {}, which channel {} writes", where(lane, step), i, s.writer[i] - 1));
    s.reader[i] = s.reader[i] == 0 || s.reader[i] == me ? me : kMany;
  }
  return true;
}

bool Memory::may_write(std::uint32_t lane, const Step& step) {
  const Region r = step.writes();
  if (r.count == 0) return true;
  if (r.buffer() == Buffer::input) {
    const Region due = output_of(case_.call, ranks_, rank_of(lane));
    const bool allowed =
        due.buffer() == Buffer::input && r.offset() >= due.offset() && r.offset() + r.count <= due.offset() + due.count;
    if (!allowed) return fail(FaultKind::input_written, where(lane, step));
  }
  Store& s = store(lane, r.buffer());
  if (s.writer.empty()) return true;
  const std::uint32_t me = std::uint32_t(lane_of(lane)) + 1;
  for (Count i = r.offset(); i < r.offset() + r.count; ++i) {
    const std::uint32_t other = s.writer[i] && s.writer[i] != me ? s.writer[i] : s.reader[i] != me ? s.reader[i] : 0;
    if (other)
      return fail(FaultKind::lane_overlap,
                  fmt::format("{} writes element {}, which {}", where(lane, step), i,
                              other == kMany ? "other channels touch" : fmt::format("channel {} touches", other - 1)));
    s.writer[i] = me;
  }
  return true;
}

// Everything stands still and the late rank has not entered: nobody may have left.
void Memory::check_barrier() {
  for (Rank r = 0; r < ranks_; ++r) {
    bool done = r != late_;
    for (Count l = 0; l < lanes_; ++l) done = done && all_[r * lanes_ + l].done();
    if (!done) continue;
    fail(FaultKind::left_early, fmt::format("rank {} left before rank {} entered", r, late_));
    return;
  }
}

// Nothing can move any more: every lane must have ended, and every message must have been received.
void Memory::check_ended() {
  std::string stuck;
  std::size_t listed = 0, waiting = 0;
  bool orphan = false;  // waits for a lane that has ended: no order of steps would help
  for (const Lane<Memory>& lane : all_) {
    if (lane.done()) continue;
    ++waiting;
    std::string posted;
    for (std::uint32_t rest = lane.busy(); rest; rest &= rest - 1) {
      const Step& s = lane.step(Token(std::countr_zero(rest)));
      const bool ended = !s.local() && all_[s.peer * lanes_ + lane_of(lane.id())].done();
      orphan |= ended;
      posted += fmt::format("; {}{}", where(lane.id(), s), ended ? " although that rank's channel has ended" : "");
    }
    if (lane.blocked()) posted += fmt::format(", then waits {}", text(*lane.blocked()));
    if (listed++ < 4) stuck += posted;
  }
  if (waiting) {
    fail(orphan ? FaultKind::unmatched : FaultKind::deadlock,
         fmt::format("{} of {} channels cannot go on{}", waiting, all_.size(), stuck));
    return;
  }
  for (const auto& [key, ch] : channels_) {
    if (ch.slots.empty()) continue;
    const Count to = key % ranks_, from = key / ranks_ % ranks_, lane = key / ranks_ / ranks_;
    fail(FaultKind::unmatched, fmt::format("channel {}: a message of {} from rank {} was never received by rank {}",
                                           lane, ch.slots.front().size(), from, to));
    return;
  }
}

void Memory::check_output(Rank r) {
  const Region out = output_of(case_.call, ranks_, r);
  if (out.count == 0) return;
  const Store& s = out.buffer() == Buffer::input ? inputs_[r] : outputs_[r];
  std::vector<OracleElement> due(out.count, kGap);
  oracle_.output(r, due);
  for (Count i = 0; i < out.count; ++i) {
    const OracleElement found = s.values[out.offset() + i];
    const bool written = s.written[out.offset() + i], gap = due[i] == kGap;
    if (gap ? !written : written && found == due[i]) continue;
    const std::string at = fmt::format("rank {} element {} of {} of its output", r, i, out.count);
    if (gap) {
      fail(FaultKind::outside, fmt::format("{} was written, which belongs to no block", at));
    } else if (written) {
      fail(FaultKind::wrong_value, at + blame(r, i, found, due[i]));
    } else {
      fail(FaultKind::not_written, at);
    }
    return;
  }
}

// What a wrong sum lacks or has too often, where one contribution explains it.
std::string Memory::blame(Rank r, Count i, OracleElement found, OracleElement due) const {
  if (!reduces(case_.call.kind)) return {};
  const Rank block = definition(case_.call.kind).output.extent == Extent::own ? r : 0;
  for (Rank p = 0; p < ranks_; ++p) {
    const OracleElement v = oracle_.value(p, block, i);
    if (found == v) return fmt::format(" is rank {}'s contribution alone", p);
    if (found + v == due) return fmt::format(" lacks rank {}'s contribution", p);
    if (found - v == due) return fmt::format(" has rank {}'s contribution twice", p);
  }
  return {};
}

}  // namespace gccl
