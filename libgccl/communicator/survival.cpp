#include "libgccl/communicator/survival.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/communicator.hpp"

namespace gccl {
namespace {

// Its result does not depend on which numbers ranks have, nor on how many there are.
bool repeatable(const Descriptor& what) {
  return what.kind == std::uint8_t(Collective::allreduce) || what.kind == std::uint8_t(Collective::barrier);
}

// A barrier that all have entered is over, whoever has failed since; and all that are left enter the recovery.
bool needs_confirmation(const Descriptor& what) { return what.kind != std::uint8_t(Collective::barrier); }

// Of a call that is repeatable: it has no lengths.
Work copy_of(const Work& work) {
  Work w;
  w.what = work.what;
  w.elements = work.elements;
  w.call = work.call;
  w.memory = work.memory;
  w.algorithm = work.algorithm;
  w.slicing = work.slicing;
  w.to_first_block = work.to_first_block;
  return w;
}

constexpr Communicator::Key kConfirmation{.kind = kRecvKind, .count = 0};  // no collective has this kind

Work confirmation() {
  Work w;
  w.what = {.kind = std::uint8_t(Collective::barrier), .purpose = Purpose::confirm, .dtype = GCCL_UINT8};
  w.call.kind = Collective::barrier;
  return w;
}

std::string text_of(const std::vector<Rank>& ranks, const Members& members) {
  std::string text;
  for (const Rank r : ranks) text += (text.empty() ? "" : ", ") + members.name(r);
  return text;
}

}  // namespace

// ---- The kept input ----

void KeptInput::keep(const Work& work, Rank ranks, Rank rank) {
  bytes_ = 0;
  if (!work.call.in_place || work.call.kind == Collective::broadcast) return;  // the root's is not written to
  const Region input = input_of(work.call, ranks, rank);
  if (input.buffer != Buffer::output || input.count == 0) return;
  bytes_ = input.count * work.elements.bytes;
  from_ = work.memory.base[std::size_t(Buffer::output)] + input.offset * work.elements.bytes;
  if (room_ < bytes_) {
    const std::size_t bytes = std::exchange(bytes_, 0);
    data_.reset();
    room_ = 0;
    data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    room_ = bytes_ = bytes;
  }
  std::memcpy(data_.get(), from_, bytes_);
}

void KeptInput::restore() const {
  if (bytes_ > 0) std::memcpy(from_, data_.get(), bytes_);
}

// ---- Calls ----

Status Communicator::call(Work&& work, const Key* key) {
  if (survival_.shrinks) return survive(std::move(work), key);
  Status s = run(std::move(work), key);
  if (!s.ok()) notice();
  return s;
}

bool Communicator::hands_back(const Descriptor& what) const { return refuses() && !repeatable(what); }

Status Communicator::refused() const {
  if (survival_.telling)
    return Status::error("a function of GCCL_On_failure must not communicate on its communicator, nor free it",
                         GCCL_ERR_INVALID_USAGE);
  return Status::error(survival_.change, GCCL_ERR_RANKS_CHANGED);
}

// The call, then what confirms it. *completed: this rank has its result.
Status Communicator::complete(Work&& work, const Key* key, bool* completed) {
  const bool confirmed = needs_confirmation(work.what) && size() > 1;
  const auto carry_out = [this](Work&& w, const Key* k) {
    Status s;
    if (!k || !repeat(*k, w.memory.base[std::size_t(Buffer::input)], w.memory.base[std::size_t(Buffer::output)], &s))
      s = run(std::move(w), k);
    return s;
  };
  Status s = carry_out(std::move(work), key);
  *completed = s.ok();
  return s.ok() && confirmed ? carry_out(confirmation(), &kConfirmation) : std::move(s);
}

Status Communicator::survive(Work&& work, const Key* key) {
  Survival& v = survival_;
  if (v.telling) return refused();
  const std::uint32_t call = ++v.calls;
  if (v.renumbered_in == call) {
    v.renumbered_in.reset();
    v.renumbered = true;
  }
  Descriptor what = work.what;
  what.sequence = team_.record->history.last() + 1;
  if (hands_back(what)) return hand_back(what);
  v.kept.keep(work, size(), rank());
  const bool again = repeatable(what);
  const Work first = again ? copy_of(work) : Work();
  bool completed = false;
  Status s = complete(std::move(work), key, &completed);
  while (!s.ok() && mendable(s)) {
    std::exception_ptr thrown;
    try {
      notice();
    } catch (...) {  // the others wait for this rank: it goes as far as they do, and then breaks what they all have
      thrown = std::current_exception();
    }
    bool by_all = completed || !needs_confirmation(what);
    if (Status t = mend(call, &by_all); !t.ok()) {
      v.kept.restore();
      if (thrown) std::rethrow_exception(thrown);
      return in_context(team_.members, what, std::move(t));
    }
    if (thrown) std::rethrow_exception(thrown);
    if (by_all) return {};
    v.kept.restore();
    if (!again) return hand_back(what);
    {
      std::lock_guard lock(lock_);
      recorder_.metrics().repeated();
    }
    s = complete(copy_of(first), key, &completed);
  }
  if (!s.ok()) notice();
  return s;
}

Status Communicator::hand_back(const Descriptor& what) {
  survival_.renumbered = false;
  std::lock_guard lock(lock_);
  recorder_.metrics().handed_back();
  return in_context(team_.members, what, refused());
}

// ---- Recovery ----

std::vector<Rank> Communicator::known_failed() {
  Recovery& r = *team_.world->recovery;
  return r.usable().ok() ? r.failed(team_.members, lost()) : lost();
}

// What a lost peer looks like may come from another rank's point of view, or late.
bool Communicator::mendable(const Status& why) { return why.code() == GCCL_ERR_PEER_LOST; }

void Communicator::notice() {
  Survival& v = survival_;
  Status why;
  {
    std::lock_guard lock(lock_);
    if (operations_.failure().none() || v.noticed) return;
    why = operations_.failure().why().copy_or_code();
  }
  const bool lost_peer = why.code() == GCCL_ERR_PEER_LOST;
  if (!lost_peer && !v.function && !v.shrinks) return;
  std::vector<Rank> failed = v.function || !lost_peer ? known_failed() : std::vector<Rank>();
  if (!lost_peer && failed.empty()) return;
  for (const Rank r : lost())  // a process may end after its connections
    if (r != rank() && std::ranges::count(failed, r) == 0) failed.insert(std::ranges::upper_bound(failed, r), r);
  {
    std::lock_guard lock(lock_);
    if (std::exchange(v.noticed, true)) return;
    recorder_.metrics().noticed();
  }
  tell_program(GCCL_FAILURE_NOTICED, failed, team_.members, why.text());
}

// Without locks.
void Communicator::tell_program(int stage, const std::vector<Rank>& failed, const Members& before,
                                const std::string& text) {
  Survival& v = survival_;
  if (!v.function) return;
  std::vector<std::int32_t> ranks(failed.begin(), failed.end()), world;
  for (const Rank r : failed) world.push_back(std::int32_t(before.world_rank[r]));
  const GCCL_Failure event{.struct_bytes = sizeof event,
                           .stage = stage,
                           .count = std::int32_t(failed.size()),
                           .ranks = ranks.data(),
                           .world_ranks = world.data(),
                           .size = std::int32_t(size()),
                           .rank = std::int32_t(rank()),
                           .text = text.c_str()};
  v.telling = true;
  try {
    v.function(reinterpret_cast<GCCL_Comm>(this), &event, v.context);
  } catch (...) {
    v.telling = false;
    throw CallersException(fmt::format("a function of GCCL_On_failure threw an exception: {}", caught_text()));
  }
  v.telling = false;
}

// Those that are left make the communicator anew. *completed: this rank has completed the call; then: all of them have.
Status Communicator::mend(std::uint32_t call, bool* completed) {
  std::uint64_t flags = Agreed::flags(call, *completed);
  std::unique_ptr<Communicator> made;
  if (Status s = team_.world->recovery->shrink(*this, lost(), timeout_ms(), &made, &flags); !s.ok()) return s;
  *completed = (flags & Agreed::completed(call)) != 0;
  const Members before = team_.members;
  std::vector<Rank> gone;
  for (Rank r = 0; r < before.size(); ++r)
    if (std::ranges::count(made->team_.members.world_rank, before.world_rank[r]) == 0) gone.push_back(r);
  Survival& v = survival_;
  std::string change = fmt::format(
      "ranks have other numbers now: lost {}, and {} of {} go on, this one as rank {}; the call was not carried out, "
      "and "
      "its input is as it was: make it with the new numbers (GCCL_Comm_size, GCCL_Comm_rank)",
      gone.empty() ? "a connection" : text_of(gone, before), made->size(), before.size(), made->rank());
  adopt(*made, gone.size());
  made.reset();
  v.change = std::move(change);
  v.noticed = false;
  if (!gone.empty()) {
    const std::uint32_t furthest = Agreed::furthest(flags, call);
    v.renumbered = v.renumbered || furthest == call;
    if (furthest != call) v.renumbered_in = furthest;
  }
  tell_program(GCCL_FAILURE_RECOVERED, gone, before, v.change);
  return {};
}

// Becomes the other one, which gets what this one was.
void Communicator::adopt(Communicator& made, std::size_t ranks_lost) noexcept {
  std::scoped_lock lock(lock_, made.lock_);
  Failure &mine = operations_.failure(), &old = made.operations_.failure();
  old.set(mine.why().copy_or_code(), mine.culprit());
  old.acknowledge();
  mine.forget();
  made.team_.members.world = std::exchange(team_.members.world, false);
  team_.swap(made.team_);
  short_calls_.forget();
  splits_ = 0;
  recorder_.metrics().recovered(ranks_lost);
}

// ---- Settings ----

void Communicator::shrink_on_failure(bool does) {
  survival_.shrinks = does;
  const Communicator* self = this;
  if (does)
    team_.world->shrinker = this;
  else
    team_.world->shrinker.compare_exchange_strong(self, nullptr);
}

Status Communicator::set_on_failure(GCCL_Failure_policy policy) {
  if (Status s = not_telling(); !s.ok()) return s;
  if (const Status& s = team_.world->recovery->usable(); policy == GCCL_SHRINK && !s.ok()) return s.copy_or_code();
  std::vector<std::uint8_t> all(size());
  constexpr std::uint8_t kAnotherShrinks = 2;
  const Communicator* const shrinker = team_.world->shrinker;
  const bool taken = policy == GCCL_SHRINK && shrinker && shrinker != this;
  std::uint8_t mine = taken ? kAnotherShrinks : std::uint8_t(policy);
  Work w;
  w.what = {.kind = std::uint8_t(Collective::allgather),
            .purpose = Purpose::policy,
            .dtype = GCCL_UINT8,
            .count = 1,
            .bytes = all.size()};
  w.call = {.kind = Collective::allgather, .count = 1};
  w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(&mine);
  w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(all.data());
  if (Status s = run(std::move(w)); !s.ok()) return s;
  const auto other =
      std::ranges::find_if(all, [&](std::uint8_t p) { return (p == GCCL_FAIL) != (all[0] == GCCL_FAIL); });
  const auto text = [](int p) { return p == GCCL_FAIL ? "GCCL_FAIL" : "GCCL_SHRINK"; };
  if (other != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} sets {}, {} sets {}: expected the same on every rank",
                    team_.members.name(0), text(all[0]), team_.members.name(Rank(other - all.begin())), text(*other)),
        GCCL_ERR_MISMATCH);
  if (const auto at = std::ranges::find(all, kAnotherShrinks); at != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} has another communicator with GCCL_SHRINK: expected one at most, as ranks "
                    "that recover on one could wait for ever for those that do on the other",
                    team_.members.name(Rank(at - all.begin()))),
        GCCL_ERR_NOT_SUPPORTED);
  std::lock_guard lock(lock_);
  short_calls_.forget();  // which go the short way
  shrink_on_failure(policy == GCCL_SHRINK);
  return {};
}

}  // namespace gccl
