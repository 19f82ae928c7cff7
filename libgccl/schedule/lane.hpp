// The one interpreter: a Lane takes steps from a schedule and starts them on a backend.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <memory>

#include "libgccl/base/prefetch.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

using Token = std::uint32_t;  // a place in a lane's window, free again once its step is complete
constexpr unsigned kWindowMax = 32;

template <class B>
class Lane;

// What moves bytes, or pretends to.
// - start: begin the step. Returns true when it is already complete; otherwise the backend calls lane.complete(token)
//   later, and for a recv_reduce lane.landed(token) once its message is here, staged apart from the step's regions.
// - combine: a landed recv_reduce may now touch its regions. Same return value; otherwise lane.complete(token) later.
// - sets_aside, which a backend need not have: whether it is better to take the message of a recv_reduce at once, set
//   aside, than when earlier receives have done with its regions. While a send still reads them it is taken at once in
//   any case: two ranks may each send what they then reduce into.
// Backends call back from their own progress loop, never from inside start or combine.
template <class B>
concept Backend = requires(B& b, Lane<B>& lane, Token token, const Step& step) {
  { b.start(lane, token, step) } -> std::same_as<bool>;
  { b.combine(lane, token, step) } -> std::same_as<bool>;
};

// Issues steps in program order until a conflict or a full window. A step waits for the earlier steps of the lane that
// it conflicts with; a recv_reduce may meet its message early, only the combining waits. Steps without any element are
// dropped. Not thread-safe; may be moved while no step is in flight.
template <class B>
class Lane {
 public:
  // Requires 1 <= window <= kWindowMax. `id` is the backend's own name for the lane.
  Lane(B& backend, std::uint32_t id, Schedule schedule, unsigned window)
      : Lane(backend, id, std::move(schedule), window, window) {}
  // With memory for so few places at first, for backends with lanes by the hundred thousand, few of which ever fill
  // their window: a step that start() was given moves as the lane gets more of them, by the next start().
  Lane(B& backend, std::uint32_t id, Schedule schedule, unsigned window, unsigned places)
      : backend_(&backend),
        schedule_(std::move(schedule)),
        entries_(std::make_unique_for_overwrite<Entry[]>(places)),
        full_(mask(places)),
        id_(id),
        window_(std::uint8_t(window)) {
    assert(places >= 1 && places <= window && window <= kWindowMax);
  }

  std::uint32_t id() const { return id_; }
  bool done() const { return ended_ && busy_ == 0; }
  // Places in flight, one bit each; and the step in a busy place.
  std::uint32_t busy() const { return busy_; }
  const Step& step(Token t) const { return entries_[t].step; }
  // True while the step in that busy place must not touch its regions yet, because earlier steps use them; only a
  // recv_reduce is ever started like that. When it is false at start, a backend may combine a recv_reduce's message
  // piece by piece as it arrives instead of staging it; it then calls complete, never landed.
  bool waits(Token t) const { return entries_[t].waits != 0; }
  // The step that waits to be issued, or null.
  const Step* blocked() const { return next_; }

  // False when the next step waits for another one, so that the end of this one alone does not start it.
  bool moves_on(Token t) const { return !next_ || next_early_ || (next_waits_ & ~(1u << t)) == 0; }
  // What the end of that step will touch.
  [[gnu::always_inline]] void fetch(Token t) const {
    prefetch(entries_.get(), 3 * sizeof(Entry));
    if (moves_on(t)) schedule_.fetch();
  }

  // Issues what can be issued. Call once to begin.
  void pump() {
    while (!ended_) {
      if (!next_) {
        next_ = schedule_.next();
        if (!next_) {
          ended_ = true;
          schedule_ = {};
          return;
        }
        if (next_->idle()) {
          next_ = nullptr;
          continue;
        }
        next_waits_ = waits_of(*next_);
        next_early_ = next_->op == Op::recv_reduce && early();
      }
      if (next_waits_ && !next_early_) return;
      if (busy_ == full_ && !grow()) return;
      const Token t = Token(std::countr_one(busy_));
      Entry& e = entries_[t];
      e.step = *next_;
      e.waits = next_waits_;
      awaited_ |= next_waits_;
      e.landed = false;
      busy_ |= 1u << t;
      next_ = nullptr;
      if (backend_->start(*this, t, e.step)) release(t);
    }
  }

  // The message of a recv_reduce has landed.
  void landed(Token t) {
    entries_[t].landed = true;
    if (entries_[t].waits == 0 && backend_->combine(*this, t, entries_[t].step)) complete(t);
  }

  void complete(Token t) {
    release(t);
    pump();
  }

 private:
  struct Entry {
    Step step;
    std::uint32_t waits;  // earlier places it conflicts with
    bool landed;
  };

  static std::uint32_t mask(unsigned places) { return places == 32 ? ~0u : (1u << places) - 1; }

  // Whether the next step, a recv_reduce, may start before what it waits for has ended.
  bool early() const {
    if constexpr (requires { backend_->sets_aside(*next_); }) {
      if (backend_->sets_aside(*next_)) return true;
      for (std::uint32_t rest = next_waits_; rest; rest &= rest - 1)
        if (!entries_[std::countr_zero(rest)].step.receives()) return true;
      return false;
    } else {
      return true;
    }
  }

  // False where the window is full.
  [[gnu::noinline]] bool grow() {
    const unsigned places = unsigned(std::popcount(full_));
    if (places == window_) return false;
    const unsigned more = std::min<unsigned>(2 * places, window_);
    auto entries = std::make_unique_for_overwrite<Entry[]>(more);
    std::copy_n(entries_.get(), places, entries.get());
    entries_ = std::move(entries);
    full_ = mask(more);
    return true;
  }

  [[gnu::always_inline]] std::uint32_t waits_of(const Step& s) const {
    std::uint32_t waits = 0;
    for (std::uint32_t rest = busy_; rest; rest &= rest - 1) {
      const unsigned i = unsigned(std::countr_zero(rest));
      if (conflicts(s, entries_[i].step)) waits |= 1u << i;
    }
    return waits;
  }

  // Frees the place, and combines what waited for it alone.
  void release(Token t) {
    if (!(awaited_ >> t & 1)) {  // the common case
      busy_ &= ~(1u << t);
      next_waits_ &= ~(1u << t);
      return;
    }
    std::uint32_t freed = 1u << t;
    while (freed) {
      const unsigned f = unsigned(std::countr_zero(freed));
      freed &= freed - 1;
      busy_ &= ~(1u << f);
      next_waits_ &= ~(1u << f);
      awaited_ &= ~(1u << f);
      for (std::uint32_t rest = busy_ & ~freed; rest; rest &= rest - 1) {
        const unsigned i = unsigned(std::countr_zero(rest));
        Entry& e = entries_[i];
        if (!(e.waits >> f & 1)) continue;
        e.waits &= ~(1u << f);
        if (e.waits == 0 && e.landed && backend_->combine(*this, i, e.step)) freed |= 1u << i;
      }
    }
  }

  B* backend_;
  Schedule schedule_;
  const Step* next_ = nullptr;  // pulled but not issued; lives in the schedule's frame
  std::unique_ptr<Entry[]> entries_;
  std::uint32_t next_waits_ = 0, busy_ = 0;
  std::uint32_t full_;         // all places that there is memory for
  std::uint32_t awaited_ = 0;  // places that some busy place waits for
  std::uint32_t id_;
  std::uint8_t window_;
  bool ended_ = false;
  bool next_early_ = false;  // next_ is a recv_reduce that may start before what it waits for has ended
};

}  // namespace gccl
