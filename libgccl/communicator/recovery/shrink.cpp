// A smaller communicator of the ranks that are left, and what they exchange for its ports.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"

namespace gccl {

// Exchanges among the members of the epoch, for the ports of the new communicator.
class Recovery::Over : public Exchange {
 public:
  // Not beyond that time, nor beyond GCCL_Abort on `of`, where there is one.
  Over(Recovery& recovery, Group& group, std::int64_t until_ns, const CommunicatorCore* of)
      : recovery_(recovery), group_(group), epoch_(group.membership->epoch()), until_ns_(until_ns), of_(of) {}
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    std::unique_lock lock(recovery_.mutex_);
    Group& g = group_;
    assert(g.membership->epoch() == epoch_ && g.wanted == 0);
    const std::uint64_t number = ++g.exchanges | std::uint64_t(epoch_) << 32;
    g.said[number].assign(mine.begin(), mine.end());
    g.heard[number][g.members.rank].assign(mine.begin(), mine.end());
    g.wanted = number;
    const fault::RankSet& members = g.membership->members();
    BytesOut out;
    out.u64(number).raw(mine);
    for (const Rank r : members)
      if (r != g.members.rank) recovery_.send(g, r, Kind::said, out.bytes());
    recovery_.wake();
    const std::int64_t until_ns = std::min(time_limit(timeout_ms), until_ns_);
    Status s;
    for (;;) {
      if (g.heard[number].size() == members.size()) break;
      const fault::RankSet& failed = g.membership->failures().failed;
      if (const Status& over = recovery_.over(g); !over.ok()) {
        s = over.copy_or_code();
        break;
      }
      if (of_ && !(s = of_->asked_to_abort()).ok()) break;
      if (!failed.empty() || g.membership->out() != fault::Membership::Out::no || now_ns() >= until_ns) {
        s = failed.empty() ? Status::error("the ranks did not meet in time", GCCL_ERR_TIMEOUT)
                           : Status::error(fmt::format("lost {}", g.members.names(failed)), GCCL_ERR_PEER_LOST);
        break;
      }
      recovery_.changed_.wait_for(lock, std::chrono::milliseconds(50));
    }
    g.wanted = 0;
    if (!s.ok()) return s;
    all->clear();
    for (const auto& [r, bytes] : g.heard[number]) {
      if (bytes.empty() && !mine.empty())
        return Status::error(fmt::format("{} could not be connected", g.members.name(r)), GCCL_ERR_REMOTE);
      if (bytes.size() != mine.size()) return Status::error("ranks exchange different lengths", GCCL_ERR_MISMATCH);
      all->insert(all->end(), bytes.begin(), bytes.end());
    }
    g.heard.erase(number);
    return {};
  }

 private:
  Recovery& recovery_;
  Group& group_;
  const fault::Epoch epoch_;
  const std::int64_t until_ns_;
  const CommunicatorCore* const of_;
};

Status Recovery::shrink(CommunicatorCore& parent, std::unique_ptr<CommunicatorCore>* out, std::uint64_t* flags) {
  const std::int64_t until_ns = time_limit(parent.timeout_ms());
  const std::vector<Rank> lost = parent.lost();
  const CommunicatorCore* const of = flags ? &parent : nullptr;  // the program's own calls go on after an abort
  const Waiter waiter{parent, flags ? std::nullopt : std::optional(Watch::In::shrink),
                      parent.why().code() == GCCL_ERR_ABORTED};
  std::unique_lock lock(mutex_);
  Group& g = group_of(parent.members());
  const Whole whole(*this);
  if (Status s = prepare_call(g, lost); !s.ok()) return s;
  const CallScope call(g, lock);
  for (;;) {
    if (g.membership->out() != fault::Membership::Out::no) return out_of(g);
    g.membership->shrink(now_ns());
    fault::Decision d;
    if (Status s = await_decision(lock, g, until_ns, &d, waiter); !s.ok()) return s;
    if (d.mixed) return Status::error("some ranks shrink, others agree", GCCL_ERR_MISMATCH);
    g.exchanges = 0;
    const auto earlier = [&](const auto& x) { return x.first >> 32 < g.membership->epoch(); };
    std::erase_if(g.said, earlier);
    std::erase_if(g.heard, earlier);
    const auto& left = g.membership->members();
    Members m = g.members.part(std::vector<Rank>(left.begin(), left.end()));
    m.id = splitmix::hash(g.members.id ^ std::uint64_t(g.membership->epoch()) * splitmix::kGolden);
    lock.unlock();
    Over exchange(*this, g, until_ns, of);
    std::unique_ptr<CommunicatorCore> made;
    Status s;
    try {
      s = CommunicatorCore::create(parent.team().world, std::move(m), exchange, &made);
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
    g.membership->agree(now_ns(), (flags ? *flags & ~std::uint64_t(1) : 0) | s.ok());
    if (Status t = await_decision(lock, g, until_ns, &d, waiter); !t.ok()) {
      const bool out_now = g.membership->out() != fault::Membership::Out::no;
      lock.unlock();
      if (made && !out_now) made->fail(t.copy_or_code());  // others may have it already
      return t;
    }
    if ((d.flags & 1) && d.failed.empty()) {
      if (flags) *flags = d.flags;
      *out = std::move(made);
      return {};
    }
    lock.unlock();
    made.reset();
    lock.lock();
    if (d.failed.empty())
      return s.ok() ? Status::error("another rank could not be connected", GCCL_ERR_REMOTE) : std::move(s);
  }
}

}  // namespace gccl
