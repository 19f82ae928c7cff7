#include "libgccl/communicator/recovery/survival.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <mutex>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/breaking.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/recovery/agreed.hpp"

namespace gccl {
namespace {

// Its result does not depend on which numbers ranks have, nor on how many there are.
bool repeatable(const Descriptor& what) {
  return what.kind == std::uint8_t(Collective::allreduce) || what.kind == std::uint8_t(Collective::barrier);
}

// A barrier that all have entered is complete, also where a rank has failed since; all that are left then recover.
bool needs_confirmation(const Descriptor& what) { return what.kind != std::uint8_t(Collective::barrier); }

constexpr ShortCalls::Key kConfirmation{.kind = kRecvKind, .count = 0};  // no collective has this kind

Work confirmation() {
  Work w;
  w.what = {.kind = std::uint8_t(Collective::barrier), .purpose = Purpose::confirm, .dtype = GCCL_UINT8};
  w.call.kind = Collective::barrier;
  return w;
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

Status Survival::call(Work&& work, const ShortCalls::Key* key) {
  assert(!work.what.point_to_point());
  if (shrinks_) return survive(std::move(work), key);
  Status s = c_.run(std::move(work), key);
  if (!s.ok()) notice();
  return s;
}

bool Survival::hands_back(const Descriptor& what) const { return refuses() && !repeatable(what); }

Status Survival::transfer(Work&& work) {
  assert(work.what.point_to_point());
  Status s = c_.run(std::move(work));
  if (!s.ok()) notice();
  return s;
}

Status Survival::refused() const {
  if (notifying_)
    return Status::error("a function of GCCL_On_failure must not communicate on its communicator, nor free it",
                         GCCL_ERR_INVALID_USAGE);
  return Status::error(change_, GCCL_ERR_RANKS_CHANGED);
}

// The call, then what confirms it. *completed: this rank has its result.
Status Survival::complete(Work&& work, const ShortCalls::Key* key, bool* completed) {
  const bool confirmed = needs_confirmation(work.what) && c_.size() > 1;
  const auto carry_out = [this](Work&& w, const ShortCalls::Key* k) {
    Status s;
    if (!k || !c_.repeat(*k, w.memory.base[std::size_t(Buffer::input)], w.memory.base[std::size_t(Buffer::output)], &s))
      s = c_.run(std::move(w), k);
    return s;
  };
  Status s = carry_out(std::move(work), key);
  *completed = s.ok();
  return s.ok() && confirmed ? carry_out(confirmation(), &kConfirmation) : std::move(s);
}

Status Survival::survive(Work&& work, const ShortCalls::Key* key) {
  if (notifying_) return refused();
  const std::uint32_t call = ++calls_;
  if (renumbered_in_ == call) {
    renumbered_in_.reset();
    renumbered_ = true;
  }
  Descriptor what = work.what;
  what.sequence = c_.team().record->history.last() + 1;
  if (hands_back(what)) return hand_back(what);
  kept_.keep(work, c_.size(), c_.rank());
  const bool again = repeatable(what);
  const Work first = again ? work.without_lengths() : Work();
  bool completed = false;
  Status s = complete(std::move(work), key, &completed);
  while (s.code() == GCCL_ERR_PEER_LOST) {
    std::exception_ptr thrown;
    try {
      notice();
    } catch (...) {  // the others wait for this rank: it goes as far as they do, and then breaks what they all have
      thrown = std::current_exception();
    }
    bool by_all = completed || !needs_confirmation(what);
    if (Status t = mend(call, &by_all); !t.ok()) {
      kept_.restore();
      if (thrown) std::rethrow_exception(thrown);
      return in_context(c_.members(), what, std::move(t));
    }
    if (thrown) std::rethrow_exception(thrown);
    if (by_all) return {};
    kept_.restore();
    if (!again) return hand_back(what);
    c_.count(&Metrics::repeated);
    s = complete(first.without_lengths(), key, &completed);
  }
  if (!s.ok()) notice();
  return s;
}

Status Survival::hand_back(const Descriptor& what) {
  renumbered_ = false;
  c_.count(&Metrics::handed_back);
  return in_context(c_.members(), what, refused());
}

// ---- Recovery ----

std::vector<Rank> Survival::known_failed() {
  Recovery& r = *c_.world().recovery;
  return r.usable().ok() ? r.failed(c_.members(), c_.lost()) : c_.lost();
}

void Survival::notice() {
  const Status why = c_.why();
  if (why.ok() || noticed_) return;
  const bool lost_peer = why.code() == GCCL_ERR_PEER_LOST;
  if (!lost_peer && !function_ && !shrinks_) return;
  std::vector<Rank> failed = function_ || !lost_peer ? known_failed() : std::vector<Rank>();
  if (!lost_peer && failed.empty()) return;
  for (const Rank r : c_.lost())  // a process may end after its connections
    if (r != c_.rank() && std::ranges::count(failed, r) == 0) failed.insert(std::ranges::upper_bound(failed, r), r);
  if (noticed_.exchange(true)) return;
  c_.count(&Metrics::noticed);
  notify_program(GCCL_FAILURE_NOTICED, failed, c_.members(), why.text());
}

// Without locks.
void Survival::notify_program(int stage, const std::vector<Rank>& failed, const Members& before,
                              const std::string& text) {
  if (!function_) return;
  std::vector<std::int32_t> ranks(failed.begin(), failed.end()), world;
  for (const Rank r : failed) world.push_back(std::int32_t(before.world_rank[r]));
  const GCCL_Failure event{.struct_bytes = sizeof event,
                           .stage = stage,
                           .count = std::int32_t(failed.size()),
                           .ranks = ranks.data(),
                           .world_ranks = world.data(),
                           .size = std::int32_t(c_.size()),
                           .rank = std::int32_t(c_.rank()),
                           .text = text.c_str()};
  notifying_ = true;
  try {
    function_(reinterpret_cast<GCCL_Comm>(&c_), &event, context_);
  } catch (...) {
    notifying_ = false;
    throw CallersException(fmt::format("a function of GCCL_On_failure threw an exception: {}", caught_text()));
  }
  notifying_ = false;
}

// Those that are left make the communicator anew. *completed: this rank has completed the call; then: all of them have.
Status Survival::mend(std::uint32_t call, bool* completed) {
  std::uint64_t flags = Agreed::flags(call, *completed);
  std::unique_ptr<CommunicatorCore> made;
  if (Status s = c_.world().recovery->shrink(c_, &made, &flags); !s.ok()) return s;
  *completed = (flags & Agreed::completed(call)) != 0;
  const Members before = c_.members();
  std::vector<Rank> gone;
  for (Rank r = 0; r < before.size(); ++r)
    if (std::ranges::count(made->members().world_rank, before.world_rank[r]) == 0) gone.push_back(r);
  std::string change = fmt::format(
      "ranks have other numbers now: lost {}, and {} of {} go on, this one as rank {}; the call was not carried out, "
      "and its input is as it was: make it with the new numbers (GCCL_Comm_size, GCCL_Comm_rank)",
      gone.empty() ? "a connection" : before.names(gone), made->size(), before.size(), made->rank());
  assert(made->size() + gone.size() == before.size());  // nobody joins
  c_.adopt(*made, gone.size());
  made.reset();
  change_ = std::move(change);
  noticed_ = false;
  if (!gone.empty()) {
    const std::uint32_t furthest = Agreed::furthest(flags, call);
    renumbered_ = renumbered_ || furthest == call;
    if (furthest != call) renumbered_in_ = furthest;
  }
  notify_program(GCCL_FAILURE_RECOVERED, gone, before, change_);
  return {};
}

// ---- Settings ----

void Survival::shrink_on_failure(bool does) {
  shrinks_ = does;
  const CommunicatorCore* self = &c_;
  if (does)
    c_.team().world->shrinker = &c_;
  else
    c_.team().world->shrinker.compare_exchange_strong(self, nullptr);
}

Status Survival::set_policy(GCCL_Failure_policy policy) {
  if (Status s = not_notifying(); !s.ok()) return s;
  if (const Status& s = c_.world().recovery->usable(); policy == GCCL_SHRINK && !s.ok()) return s.copy_or_code();
  std::vector<std::uint8_t> all(c_.size());
  constexpr std::uint8_t kAnotherShrinks = 2;
  const CommunicatorCore* const shrinker = c_.team().world->shrinker;
  const bool taken = policy == GCCL_SHRINK && shrinker && shrinker != &c_;
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
  if (Status s = c_.run(std::move(w)); !s.ok()) return s;
  const auto other =
      std::ranges::find_if(all, [&](std::uint8_t p) { return (p == GCCL_FAIL) != (all[0] == GCCL_FAIL); });
  const auto text = [](int p) { return p == GCCL_FAIL ? "GCCL_FAIL" : "GCCL_SHRINK"; };
  if (other != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} sets {}, {} sets {}: expected the same on every rank",
                    c_.members().name(0), text(all[0]), c_.members().name(Rank(other - all.begin())), text(*other)),
        GCCL_ERR_MISMATCH);
  if (const auto at = std::ranges::find(all, kAnotherShrinks); at != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} has another communicator with GCCL_SHRINK: expected one at most, as ranks "
                    "that recover on one could wait for ever for those that do on the other",
                    c_.members().name(Rank(at - all.begin()))),
        GCCL_ERR_NOT_SUPPORTED);
  shrink_on_failure(policy == GCCL_SHRINK);
  return {};
}

}  // namespace gccl
