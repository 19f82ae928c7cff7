#include "libgccl/communicator/recovery/remaking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

// Of the flags of the agreement that ends a try. Those between them are the caller's.
constexpr std::uint64_t kMade = 1, kNotAgain = std::uint64_t(1) << 40;

const char* text_of(fault::Call call) {
  switch (call) {
    case fault::Call::agree: return "agree";
    case fault::Call::shrink: return "shrink";
    case fault::Call::grow: return "grow";
  }
  return "?";
}

}  // namespace

Status Recovery::Over::over() const {
  const fault::RankSet& failed = group_.membership->failures().failed;
  if (const Status& over = recovery_.over(group_); !over.ok()) return over.copy_or_code();
  if (of_)
    if (Status s = of_->asked_to_abort(); !s.ok()) return s;
  if (!failed.empty()) return Status::error(fmt::format("lost {}", group_.members.names(failed)), GCCL_ERR_PEER_LOST);
  if (group_.membership->out() != fault::Membership::Out::no || now_ns() >= until_ns_)
    return Status::error("the ranks did not meet in time", GCCL_ERR_TIMEOUT);
  return {};
}

Status Recovery::Over::goes_on() {
  std::lock_guard lock(recovery_.mutex_);
  return over();
}

Status Recovery::Over::gather(std::span<const std::byte> mine, std::map<Rank, std::vector<std::byte>>* all,
                              std::int64_t timeout_ms) {
  assert(!mine.empty());
  std::unique_lock lock(recovery_.mutex_);
  Group& g = group_;
  assert(g.membership->epoch() == epoch_ && g.wanted == 0);
  const std::uint64_t number = ++g.exchanges | std::uint64_t(epoch_) << 32;
  g.said[number].assign(mine.begin(), mine.end());
  g.heard[number][g.members.rank].assign(mine.begin(), mine.end());
  want_from(g, number, kRetryNs);
  const fault::RankSet& members = g.membership->members();
  BytesOut out;
  out.u64(number).raw(mine);
  for (const Rank r : members)
    if (r != g.members.rank) recovery_.send(g, r, Kind::said, out.bytes());
  recovery_.wake();
  const std::int64_t until_ns = time_limit(timeout_ms);
  Status s;
  for (;;) {
    if (g.heard[number].size() == members.size()) break;
    if (!(s = over()).ok()) break;
    if (now_ns() >= until_ns) {
      s = Status::error("the ranks did not meet in time", GCCL_ERR_TIMEOUT);
      break;
    }
    recovery_.changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
  g.wanted = 0;
  if (!s.ok()) return s;
  *all = std::move(g.heard[number]);
  g.heard.erase(number);
  for (const auto& [r, bytes] : *all)
    if (bytes.empty())
      return Status::error(fmt::format("{} could not be connected", g.members.name(r)), GCCL_ERR_REMOTE);
  return {};
}

Status Recovery::Over::all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all,
                                  std::int64_t timeout_ms) {
  std::map<Rank, std::vector<std::byte>> heard;
  if (Status s = gather(mine, &heard, timeout_ms); !s.ok()) return s;
  all->clear();
  for (const auto& [r, bytes] : heard) {
    if (bytes.size() != mine.size()) return Status::error("ranks exchange different lengths", GCCL_ERR_MISMATCH);
    all->insert(all->end(), bytes.begin(), bytes.end());
  }
  return {};
}

Status Recovery::remake(CommunicatorCore& parent, Making& making, std::int64_t until_ns,
                        std::unique_ptr<CommunicatorCore>* out, std::uint64_t* flags) {
  const std::vector<Rank> lost = lost_of(parent);
  const bool was_aborted = parent.why().code() == GCCL_ERR_ABORTED;
  // The program's own calls go on after an abort; one may end them where they wait for processes.
  const bool heeds = flags || (making.call() == fault::Call::grow && !was_aborted);
  const CommunicatorCore* const of = heeds ? &parent : nullptr;
  const Waiter waiter{parent, flags ? std::nullopt : std::optional(making.in()), was_aborted};
  // Destroyed without the lock: its end takes the registry's, which others hold while they ask this class for silence,
  // and waits for connections to close.
  std::unique_ptr<CommunicatorCore> made;
  std::unique_lock lock(mutex_);
  const Whole whole(*this);
  Group& g = group_of(parent.members());
  if (Status s = prepare_call(g, lost); !s.ok()) return s;
  const CallScope call(g, lock);
  for (;;) {
    if (g.membership->out() != fault::Membership::Out::no) return out_of(g);
    if (making.call() == fault::Call::grow)
      g.membership->grow(now_ns());
    else
      g.membership->shrink(now_ns());
    fault::Decision d;
    if (Status s = await_decision(lock, g, until_ns, &d, waiter); !s.ok()) return s;
    if (d.mixed)
      return Status::error(fmt::format("some ranks {}, others call something else", text_of(making.call())),
                           GCCL_ERR_MISMATCH);
    g.exchanges = 0;
    const auto earlier = [&](const auto& x) { return x.first >> 32 < g.membership->epoch(); };
    std::erase_if(g.said, earlier);
    std::erase_if(g.heard, earlier);
    const auto& left = g.membership->members();
    Members m = g.members.part(std::vector<Rank>(left.begin(), left.end()));
    m.id = splitmix::hash(g.members.id ^ std::uint64_t(g.membership->epoch()) * splitmix::kGolden);
    lock.unlock();
    Over exchange(*this, g, until_ns, of);
    Status s;
    try {
      s = making.make(g.members, std::move(m), exchange, &made);
    } catch (...) {
      s = caught();
    }
    lock.lock();
    if (!s.ok()) {  // others may wait for what it did not come to say
      g.abandoned = g.membership->epoch();
      g.wanted = 0;
    }
    if (const Status& s = over(g); !s.ok()) return s.copy_or_code();
    // All have it, or none.
    if (g.membership->out() != fault::Membership::Out::no) return out_of(g);
    g.membership->agree(now_ns(), (flags ? *flags & ~(kMade | kNotAgain) : 0) | (s.ok() ? kMade : 0) |
                                      (making.again() ? 0 : kNotAgain));
    if (Status t = await_decision(lock, g, until_ns, &d, waiter); !t.ok()) {
      const bool out_now = g.membership->out() != fault::Membership::Out::no;
      lock.unlock();
      if (made && !out_now) made->fail(t.copy_or_code());  // others may have it already
      return t;
    }
    lock.unlock();
    if ((d.flags & kMade) && d.failed.empty()) {
      if (flags) *flags = d.flags;
      making.all_have(*made, d.flags);
      *out = std::move(made);
      return {};
    }
    made.reset();
    making.none_has();
    lock.lock();
    if (d.failed.empty() && (d.flags & kNotAgain) && !making.makes_do(s))
      return s.ok() ? Status::error("another rank could not be connected", GCCL_ERR_REMOTE) : std::move(s);
  }
}

}  // namespace gccl
