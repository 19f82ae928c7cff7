#include "libgccl/communicator/flow.hpp"

#include <fmt/core.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "libgccl/base/copy_past_caches.hpp"

namespace gccl {
namespace {

constexpr std::size_t kPastCaches = 8u << 20;  // copies from here on bypass the caches

// Pieces of a message hold whole elements: backends cut at powers of two.
bool pieces_fit(std::uint32_t element_bytes) { return element_bytes <= 4096 && std::has_single_bit(element_bytes); }

}  // namespace

static_assert(Backend<Flow>);

Flow::Flow(Ports& ports, Work work) : ports_(ports), work_(std::move(work)) {}

Flow::~Flow() { cancel(); }

void Flow::add(Schedule schedule, unsigned window) {
  const auto id = std::uint32_t(tracks_.size());
  tracks_.push_back(std::unique_ptr<Track>(
      new Track{.lane = Lane<Flow>(*this, id, std::move(schedule), window), .transfers = {}, .staging = {}}));
}

void Flow::begin() {
  for (auto& t : tracks_) t->lane.pump();
}

bool Flow::done() const {
  for (const auto& t : tracks_)
    if (!t->lane.done()) return false;
  return true;
}

std::byte* Flow::at(std::uint32_t lane, const Region& r) const {
  if (r.buffer() == Buffer::none) return nullptr;
  std::byte* const base =
      r.buffer() == Buffer::scratch ? work_.scratch[lane] : work_.memory.base[std::size_t(r.buffer())];
  return base + r.offset() * work_.elements->bytes;
}

void Flow::consume(GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes) {
  Flow& f = *static_cast<Flow*>(t->owner);
  if (f.thrown_) return;
  const auto lane = std::uint32_t(t->cookie >> 32);
  const Step& s = f.tracks_[lane]->lane.step(Token(t->cookie));
  try {
    f.work_.elements->combine(f.at(lane, s.to) + offset, f.at(lane, s.from) + offset, piece,
                              bytes / f.work_.elements->bytes);
  } catch (...) {
    f.thrown_ = std::current_exception();
  }
}

bool Flow::right(const GCCL_Transfer& t) {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (t.result == GCCL_SUCCESS) {
    const bool sent = tracks_[t.cookie >> 32]->lane.step(Token(t.cookie)).op == Op::send;
    (sent ? traffic_.messages_sent : traffic_.messages_received) += 1;
    (sent ? traffic_.bytes_sent : traffic_.bytes_received) += t.bytes;
    return true;
  }
  if (!status_.ok()) return false;
  if (t.result == GCCL_ERR_MISMATCH) {
    difference_ = {.peer = t.peer, .signature = t.signature_found, .bytes = t.bytes_found, .bytes_due = t.bytes};
    status_ = Status::error("the ranks' calls differ", GCCL_ERR_MISMATCH);
  } else {
    status_ = Status::error(fmt::format("the transfer with rank {} failed", t.peer), t.result);
  }
  return false;
}

bool Flow::start(Lane<Flow>& lane, Token token, const Step& step) {
  if (!status_.ok()) return false;
  Track& track = *tracks_[lane.id()];
  track.number[token] = ++track.steps;
  if (step.op == Op::copy) {
    const std::size_t bytes = step.count() * work_.elements->bytes;
    std::byte *const to = at(lane.id(), step.to), *const from = at(lane.id(), step.from);
    if (bytes >= kPastCaches && (to >= from + bytes || from >= to + bytes)) {
      copy_past_caches(to, from, bytes);
    } else {
      std::memmove(to, from, bytes);
    }
    return true;
  }
  if (step.op == Op::reduce) {
    std::byte* const to = at(lane.id(), step.to);
    work_.elements->combine(to, to, at(lane.id(), step.from), step.count());
    return true;
  }

  GCCL_Transfer& t = track.transfers[token];
  t.peer = step.peer;
  t.channel = lane.id();
  t.bytes = step.count() * work_.elements->bytes;
  t.signature = work_.signature;
  t.consume = nullptr;
  t.grain = work_.elements->bytes;
  t.hints = work_.hints;
  t.owner = this;
  t.cookie = std::uint64_t(lane.id()) << 32 | token;
  bool staged = false;
  if (step.op == Op::send) {
    t.data = at(lane.id(), step.from);
  } else if (step.op == Op::recv) {
    t.data = at(lane.id(), step.to);
  } else if (!lane.waits(token) && pieces_fit(work_.elements->bytes)) {
    t.data = nullptr;
    t.consume = consume;
  } else {
    staged = true;
    if (track.staging_bytes[token] < t.bytes) {
      track.staging[token] = std::make_unique_for_overwrite<std::byte[]>(t.bytes);
      track.staging_bytes[token] = t.bytes;
    }
    t.data = track.staging[token].get();
  }
  Ports::Port& port = ports_.to(step.peer);
  const int now = step.op == Op::send ? port.backend->send(port.state, &t) : port.backend->receive(port.state, &t);
  if (now == 1) {
    assert(t.result != GCCL_IN_PROGRESS);
    if (!right(t)) return false;
    if (!staged) return true;
    track.landed |= 1u << token;  // lanes are not called back from inside start
    ++unsettled_;
    return false;
  }
  assert(now == 0 && !(track.in_flight >> token & 1));
  ++port.in_flight;
  track.in_flight |= 1u << token;
  return false;
}

bool Flow::combine(Lane<Flow>& lane, Token token, const Step& step) {
  work_.elements->combine(at(lane.id(), step.to), at(lane.id(), step.from), tracks_[lane.id()]->staging[token].get(),
                          step.count());
  return true;
}

bool Flow::completed(GCCL_Transfer* t) {
  const auto lane = std::uint32_t(t->cookie >> 32);
  const Token token = Token(t->cookie);
  Track& track = *tracks_[lane];
  assert(t->result != GCCL_IN_PROGRESS && !(track.in_flight >> token & 1));
  if (!right(*t)) return false;
  if (track.lane.step(token).op == Op::recv_reduce && !t->consume) {
    track.lane.landed(token);
  } else {
    track.lane.complete(token);
  }
  return status_.ok();
}

bool Flow::settle() {
  while (unsettled_ > 0 && status_.ok())
    for (auto& track : tracks_)
      while (track->landed) {
        const auto token = Token(std::countr_zero(track->landed));
        track->landed &= track->landed - 1;
        --unsettled_;
        track->lane.landed(token);
      }
  return status_.ok();
}

void Flow::cancel() {
  for (auto& track : tracks_)
    for (; track->in_flight; track->in_flight &= track->in_flight - 1) {
      GCCL_Transfer& t = track->transfers[std::size_t(std::countr_zero(track->in_flight))];
      Ports::Port& port = ports_.to(t.peer);
      port.backend->cancel(port.state, &t);
      --port.in_flight;
    }
}

bool Flow::awaited(std::string_view algorithm, Rank* peer, std::string* what, bool* receiving) const {
  for (const auto& track : tracks_) {
    if (!track->in_flight) continue;
    // Receives first: a send waits for a reader who may well wait for something else.
    std::uint32_t receives = 0;
    for (std::uint32_t rest = track->in_flight; rest; rest &= rest - 1)
      if (track->lane.step(Token(std::countr_zero(rest))).receives()) receives |= rest & -rest;
    const auto token = Token(std::countr_zero(receives ? receives : track->in_flight));
    const GCCL_Transfer& t = track->transfers[token];
    *peer = t.peer;
    *receiving = receives != 0;
    *what = fmt::format("{}{} bytes ({}, {}step {})", receives ? "a message of " : "the taking of a message of ",
                        t.bytes, algorithm, tracks_.size() > 1 ? fmt::format("channel {}, ", track->lane.id()) : "",
                        track->number[token]);
    return true;
  }
  return false;
}

}  // namespace gccl
