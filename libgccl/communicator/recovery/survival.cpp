#include "libgccl/communicator/recovery/survival.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <mutex>

#include "libgccl/base/caught.hpp"
#include "libgccl/communicator/breaking.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/recovery/agreed.hpp"
#include "libgccl/schedule/definition.hpp"

namespace gccl {
namespace {

// So long the others wait for a process that is started again.
constexpr std::int64_t kRejoinWaitMs = 30000;
// After so many recoveries in a row that found all ranks alive, and behind which no call ended well, another one helps
// no more: a rank may have no descriptors left for its connections.
constexpr int kVainMost = 3;

// Its result does not depend on which numbers ranks have, nor on how many there are.
bool repeatable(const Descriptor& what) {
  return what.kind == std::uint8_t(Collective::allreduce) || what.kind == std::uint8_t(Collective::barrier);
}

// A barrier that all have entered is complete, also where a rank has failed since; all that are left then recover.
bool needs_confirmation(const Descriptor& what) { return what.kind != std::uint8_t(Collective::barrier); }

constexpr ShortCalls::Key kConfirmation{.kind = kRecvKind, .count = 0};  // no collective has this kind

// Below `size`.
std::vector<Rank> all_but(const std::vector<Rank>& these, Rank size) {
  std::vector<Rank> others;
  for (Rank r = 0; r < size; ++r)
    if (std::ranges::count(these, r) == 0) others.push_back(r);
  return others;
}

Work confirmation() {
  Work w;
  w.what = {.kind = std::uint8_t(Collective::barrier), .purpose = Purpose::confirm, .dtype = GCCL_UINT8};
  w.call.kind = Collective::barrier;
  return w;
}

}  // namespace

// ---- The kept input ----

void KeptInput::keep(const Work& work, Rank ranks, Rank rank) {
  pieces_.clear();
  const Call& call = work.call;
  if (!call.in_place || call.kind == Collective::broadcast) return;  // the root's is not written to
  const Region input = input_of(call, ranks, rank);
  if (input.buffer() != Buffer::output || input.count == 0) return;
  std::size_t bytes = 0;
  const auto add = [&](Count begin, Count count) {
    std::byte* const base = work.memory.base[std::size_t(Buffer::output)];
    pieces_.push_back({base + begin * work.elements.bytes, count * work.elements.bytes});
    bytes += pieces_.back().bytes;
  };
  if (call.kind == Collective::alltoallv)
    each_block(call, ranks, rank, true, [&](Count begin, Count count, Rank) { add(begin, count); });
  else
    add(input.offset(), input.count);
  if (room_ < bytes) {
    room_ = 0;
    data_.reset();
    data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    room_ = bytes;
  }
  std::byte* to = data_.get();
  for (const Piece& p : pieces_) to = std::copy_n(p.from, p.bytes, to);
}

void KeptInput::restore() const {
  const std::byte* kept = data_.get();
  for (const Piece& p : pieces_) {
    std::copy_n(kept, p.bytes, p.from);
    kept += p.bytes;
  }
}

// ---- Calls ----

Status Survival::call(Work&& work, const ShortCalls::Key* key) {
  assert(!work.what.point_to_point());
  if (recovers()) return survive(std::move(work), key);
  if (Status s = not_inside(); !s.ok()) return s;
  CommunicatorCore* const c = &c_;  // a call that GCCL_Abort has ended may return to a communicator that is gone
  Status s = c->run(std::move(work), key);
  if (!s.ok()) notice_failure_of(c);
  return s;
}

bool Survival::hands_back(const Descriptor& what) const {
  return refuses() && (replaces(policy_) || !repeatable(what));
}

Status Survival::transfer(Work&& work) {
  assert(work.what.point_to_point());
  CommunicatorCore* const c = &c_;  // as in call()
  Status s = c->run(std::move(work));
  if (!s.ok()) notice_failure_of(c);
  return s;
}

Status Survival::in_function() {
  return Status::error("a function of GCCL_On_failure must not communicate on its communicator, nor free it",
                       GCCL_ERR_INVALID_USAGE);
}

Status Survival::refused() const {
  if (inside()) return in_function();
  return Status::error(
      fmt::format("{}; the call was not carried out, and its input is as it was: make it with the new numbers "
                  "(GCCL_Comm_size, GCCL_Comm_rank)",
                  change_),
      GCCL_ERR_RANKS_CHANGED);
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
  const Inside in_call(c_);
  if (inside()) return refused();
  const std::uint32_t call = ++calls_;
  if (renumbered_in_ == call) {
    renumbered_in_.reset();
    renumbered_ = true;
  }
  Descriptor what = work.what;
  what.sequence = c_.team().record->history.last() + 1;
  if (hands_back(what)) return hand_back(what);
  kept_.keep(work, c_.size(), c_.rank());
  const bool again = repeatable(what) && !replaces(policy_);
  const Work first = again ? work.without_lengths() : Work();
  bool completed = false;
  const auto calls = [&what](const Metrics& m) { return m.calls(what); };
  std::uint64_t counted = c_.count(calls);
  Status s = complete(std::move(work), key, &completed);
  while (s.code() == GCCL_ERR_PEER_LOST) {
    FirstThrown thrown;  // the others wait for this rank: it goes as far as they do, and then breaks what they all have
    thrown.by([&] { notice(); });
    bool by_all = completed || !needs_confirmation(what);
    if (Status t = vain_ < kVainMost ? mend(call, &by_all) : end_in_vain(std::move(s)); !t.ok()) {
      kept_.restore();
      thrown.rethrow();
      return in_context(c_.members(), what, std::move(t));
    }
    thrown.rethrow();
    if (by_all) {
      vain_ = 0;
      if (!completed) c_.count([&](Metrics& m) { m.over_by_recovery(what, m.calls(what) > counted); });
      return {};
    }
    kept_.restore();
    if (!again) return hand_back(what);
    c_.count([&](Metrics& m) {
      m.repeated(what, m.calls(what) > counted, !completed);
      counted = m.calls(what);
    });
    s = complete(first.without_lengths(), key, &completed);
  }
  if (s.ok()) {
    vain_ = 0;
    caught_up_ = true;
  } else {
    notice();
  }
  return s;
}

// The others count the same, or hear it.
Status Survival::end_in_vain(Status why) {
  Status s =
      Status::error(fmt::format("{} recoveries in a row found all ranks alive, and each time connections between "
                                "them failed again; last: {}",
                                vain_, why.text()),
                    GCCL_ERR_SYSTEM);
  c_.world().recovery->end_calls(c_.members(), s);
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

void Survival::notice(const Status& found) {
  Status why = c_.why();
  if (why.ok() && found.code() == GCCL_ERR_PEER_LOST) why = found.copy_or_code();
  if (why.ok() || noticed_) return;
  const bool lost_peer = why.code() == GCCL_ERR_PEER_LOST;
  if (!lost_peer && !function_ && !recovers()) return;
  std::vector<Rank> failed = function_ || !lost_peer ? known_failed() : std::vector<Rank>();
  if (!lost_peer && failed.empty()) return;
  for (const Rank r : c_.lost())  // a process may end after its connections
    if (r != c_.rank() && std::ranges::count(failed, r) == 0) failed.insert(std::ranges::upper_bound(failed, r), r);
  if (noticed_.exchange(true)) return;
  c_.count(&Metrics::noticed);
  notify_program(GCCL_FAILURE_NOTICED, failed, c_.members(), why.text());
}

void Survival::acknowledge() {
  renumbered_ = renumbered_ && replaces(policy_);
  if (c_.why().ok()) noticed_ = false;
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
  c_.forget_short_calls();  // which are not looked at before they are repeated
  notifying_ = Watch::this_thread();
  try {
    call_(function_, reinterpret_cast<GCCL_Comm>(&c_), &event, context_);
  } catch (...) {
    notifying_ = nullptr;
    throw CallersException(fmt::format("a function of GCCL_On_failure threw an exception: {}", caught_text()));
  }
  notifying_ = nullptr;
}

std::vector<std::byte> Survival::Joined::encoded() const {
  BytesOut out;
  out.u8(std::uint8_t(policy)).u32(calls).u32(full).u32(Rank(missing.size()));
  for (const Rank r : missing) out.u32(r);
  for (const Rank r : behind) out.u32(r);
  return out.take();
}

bool Survival::Joined::parse(std::span<const std::byte> bytes, Joined* out) {
  BytesIn in(bytes);
  out->policy = GCCL_Failure_policy(in.u8());
  out->calls = in.u32();
  out->full = in.u32();
  for (Rank n = in.u32(); n > 0 && in.ok(); --n) out->missing.push_back(in.u32());
  while (in.ok() && !in.rest().empty()) out->behind.push_back(in.u32());
  return in.ok() && out->policy <= GCCL_REJOIN;
}

void Survival::go_on_as(const Joined& joined) {
  recover_by(joined.policy);
  calls_ = joined.calls;
  full_ = joined.full;
  missing_ = joined.missing;
  note_joined(joined.behind);
}

// Ranks that joined before, by their new numbers, given which rank each one was: where no call has ended well with
// them, they may have heard nothing yet. completed: all have completed the call in which ranks failed.
std::vector<Rank> Survival::behind(const std::vector<Rank>& was, bool completed) const {
  std::vector<Rank> all;
  if (!c_.members().world || caught_up_ || completed) return all;
  for (Rank r = 0; r < was.size(); ++r)
    if (std::ranges::count(c_.world().joined, was[r]) > 0) all.push_back(r);
  return all;
}

// In the world that is the communicator's own.
void Survival::note_joined(const std::vector<Rank>& behind) {
  std::vector<Rank>& joined = c_.team().world->joined;
  joined.insert(joined.end(), behind.begin(), behind.end());
  std::ranges::sort(joined);
}

// What those that join are to know: the next call that all carry out has the number behind `calls`. Where all have
// completed the last one that any of them is in, that ends well, and the one after it is handed back.
std::vector<std::byte> Survival::word_to_joined(std::uint64_t flags, std::uint32_t call, const World& made) const {
  const std::uint32_t last = Agreed::furthest(flags, call);
  const bool completed = (flags & Agreed::completed(last)) != 0;
  return Joined{.policy = policy_,
                .calls = completed ? last + 1 : last,
                .full = full_,
                .missing = policy_ == GCCL_REJOIN ? all_but(made.started_as, full_) : std::vector<Rank>(),
                .behind = behind(made.was, (flags & Agreed::completed(call)) != 0)}
      .encoded();
}

Status Survival::remake(std::uint32_t call, std::uint64_t* flags, std::unique_ptr<CommunicatorCore>* made) {
  Recovery& recovery = *c_.world().recovery;
  if (!replaces(policy_)) return recovery.shrink(c_, made, flags);
  const std::int64_t wait_ms = c_.world().bootstrap.replace_wait_ms;
  const Growth growth{
      .policy = policy_,
      .size = full_,
      .wait_ms = wait_ms >= 0             ? wait_ms
                 : policy_ == GCCL_REJOIN ? kRejoinWaitMs
                                          : 0,
      .started_as = policy_ == GCCL_REJOIN ? all_but(missing_, full_) : std::vector<Rank>(),
      .word = [&](std::uint64_t agreed, const World& world) { return word_to_joined(agreed, call, world); }};
  return recovery.grow(c_, growth, made, flags);
}

// Those that are left make the communicator anew. *completed: this rank has completed the call; then: all of them have.
Status Survival::mend(std::uint32_t call, bool* completed) {
  std::uint64_t flags = Agreed::flags(call, *completed);
  std::unique_ptr<CommunicatorCore> made;
  if (Status s = remake(call, &flags, &made); !s.ok()) return s;
  *completed = (flags & Agreed::completed(call)) != 0;
  const Members before = c_.members();
  const bool joined = &made->world() != &c_.world();
  std::vector<Rank> was = made->world().was, gone;
  if (!joined) {
    was.clear();
    for (const Rank world : made->members().world_rank)
      was.push_back(Rank(std::ranges::find(before.world_rank, world) - before.world_rank.begin()));
  }
  for (Rank r = 0; r < before.size(); ++r)
    if (std::ranges::count(was, r) == 0) gone.push_back(r);
  const std::vector<Rank> behind = this->behind(was, *completed);
  std::vector<Rank> missing;
  if (policy_ == GCCL_REJOIN) {
    std::vector<Rank> present = made->world().started_as;
    if (const std::vector<Rank> were = all_but(missing_, full_); !joined) {
      present.clear();
      for (const Rank r : was) present.push_back(were[r]);
    }
    missing = all_but(present, full_);
  }
  assert(joined || made->size() + gone.size() == before.size());
  const std::string lost = gone.empty() ? "a connection" : before.names(gone);
  std::string change = fmt::format("ranks have other numbers now: lost {}, and {} go on, this one as rank {}", lost,
                                   joined ? fmt::format("{} joined: {}", made->world().joined.size(), made->size())
                                          : fmt::format("{} of {}", made->size(), before.size()),
                                   made->rank());
  vain_ = gone.empty() && !joined ? vain_ + 1 : 0;
  c_.adopt(*made, gone.size());
  missing_ = std::move(missing);
  made.reset();
  if (joined) c_.team().world->shrinker = &c_;
  if (!joined && before.world) c_.team().world->joined.clear();
  note_joined(behind);
  caught_up_ = false;
  change_ = std::move(change);
  noticed_ = false;
  if (!gone.empty() || replaces(policy_)) {
    const std::uint32_t furthest = Agreed::furthest(flags, call);
    renumbered_ = renumbered_ || furthest == call;
    if (furthest != call) renumbered_in_ = furthest;
  }
  notify_program(GCCL_FAILURE_RECOVERED, gone, before, change_);
  return {};
}

// ---- Settings ----

void Survival::recover_by(GCCL_Failure_policy policy) {
  policy_ = policy;
  full_ = c_.size();
  missing_.clear();
  const CommunicatorCore* self = &c_;
  if (recovers())
    c_.team().world->shrinker = &c_;
  else
    c_.team().world->shrinker.compare_exchange_strong(self, nullptr);
}

// Of the program's own, and here: then all have what one of them said.
bool Survival::has_made_calls() const {
  const History& history = c_.team().record->history;
  bool own = history.last() >= History::kKept;
  history.each([&](std::uint32_t sequence, const History::Entry& e) {
    own |= Descriptor::of(e.signature, sequence, e.root, e.count, e.element_bytes).purpose == Purpose::itself;
  });
  return own;
}

Status Survival::set_policy(GCCL_Failure_policy policy) {
  if (Status s = not_inside(); !s.ok()) return s;
  if (const Status& s = c_.world().recovery->usable(); policy != GCCL_FAIL && !s.ok()) return s.copy_or_code();
  std::vector<std::uint8_t> all(c_.size());
  constexpr std::uint8_t kAnotherRecovers = 255, kNoStore = 254;
  const CommunicatorCore* const recovers_now = c_.team().world->shrinker;
  const bool taken = policy != GCCL_FAIL && recovers_now && recovers_now != &c_;
  const bool nowhere = replaces(policy) && c_.world().bootstrap.store.empty();
  std::uint8_t mine = taken ? kAnotherRecovers : nowhere ? kNoStore : std::uint8_t(policy);
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
  const auto who = [&](auto at) { return c_.members().name(Rank(at - all.begin())); };
  const auto is_policy = [](std::uint8_t p) { return p <= GCCL_REJOIN; };
  const auto first = std::ranges::find_if(all, is_policy);
  const auto other = std::ranges::find_if(all, [&](std::uint8_t p) { return is_policy(p) && p != *first; });
  const auto text = [](int p) {
    constexpr const char* kNames[] = {"GCCL_FAIL", "GCCL_SHRINK", "GCCL_SPARE", "GCCL_REJOIN"};
    return kNames[p];
  };
  if (other != all.end())
    return Status::error(fmt::format("Comm_set_on_failure: {} sets {}, {} sets {}: expected the same on every rank",
                                     who(first), text(*first), who(other), text(*other)),
                         GCCL_ERR_MISMATCH);
  if (const auto at = std::ranges::find(all, kAnotherRecovers); at != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} has another communicator with a policy other than GCCL_FAIL: expected one "
                    "at most, as ranks that recover on one could wait for ever for those that do on the other",
                    who(at)),
        GCCL_ERR_NOT_SUPPORTED);
  if (const auto at = std::ranges::find(all, kNoStore); at != all.end())
    return Status::error(
        fmt::format("Comm_set_on_failure: {} knows no store where processes could join: set GCCL_STORE", who(at)),
        GCCL_ERR_NOT_SUPPORTED);
  caught_up_ = caught_up_ || has_made_calls();  // which call() counts only under a policy
  recover_by(policy);
  return {};
}

}  // namespace gccl
