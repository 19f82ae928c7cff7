// What a communicator counts, for GCCL_Get_performance_metrics.
#pragma once

#include <algorithm>

#include "libgccl/base/clock.hpp"
#include "libgccl/communicator/descriptor.hpp"
#include "libgccl/select/plan.hpp"
#include "libgccl/transports/link_counts.hpp"
#include "libgccl/transports/transport.hpp"

namespace gccl {

// Calls from here on are all timed; of smaller ones each sixteenth, as a look at the clock takes a tenth of the
// shortest.
inline constexpr std::size_t kTimedBytes = 64 * 1024;

// One thread at a time.
class Metrics {
 public:
  bool times(const Descriptor& call) const {
    return call.purpose == Purpose::itself && (counts_.calls[call.kind].calls % 16 == 0 || call.bytes >= kTimedBytes);
  }
  // A call has ended: only the caller's own count, not what splitting, freeing, checking and the like are made of.
  // from_ns: when it began, or 0 where it was not timed.
  void ended(const Descriptor& call, std::int64_t from_ns, bool failed) {
    if (call.purpose != Purpose::itself) return;
    GCCL_Call_metrics& m = counts_.calls[call.kind];
    ++m.calls;
    m.failed += failed;
    m.bytes += call.bytes;
    if (from_ns == 0) return;
    const std::uint64_t took = std::uint64_t(now_ns() - from_ns);
    m.time_ns += took;
    m.time_ns_min = m.timed == 0 ? took : std::min(m.time_ns_min, took);
    m.time_ns_max = std::max(m.time_ns_max, took);
    ++m.timed;
  }
  void moved(const Traffic& t) {
    counts_.messages_sent += t.messages_sent;
    counts_.messages_received += t.messages_received;
    counts_.bytes_sent += t.bytes_sent;
    counts_.bytes_received += t.bytes_received;
  }
  // One point-to-point message.
  void moved(const Descriptor& call) {
    const bool sends = call.kind == kSendKind;
    moved(Traffic{.messages_sent = sends,
                  .messages_received = !sends,
                  .bytes_sent = sends ? call.bytes : 0,
                  .bytes_received = sends ? 0 : call.bytes});
  }
  void planned(bool again) { ++(again ? counts_.plans_reused : counts_.plans_built); }
  // Likewise. Of the program's calls the algorithm counts, where the plan is new or the first of its kind.
  void planned(const Descriptor& call, const Plan& plan, bool made) {
    planned(!made);
    if (call.purpose != Purpose::itself || (!made && counts_.algorithm[call.kind])) return;
    counts_.algorithm[call.kind] = plan.algorithm->name.data();
    counts_.decided_by[call.kind] = name(plan.by).data();
  }
  // Ranks that failed: survival.hpp.
  void noticed() { ++counts_.failures_noticed; }
  void recovered(std::uint64_t ranks_lost) {
    ++counts_.recoveries;
    counts_.ranks_lost += ranks_lost;
  }
  std::uint64_t calls(const Descriptor& call) const { return counts_.calls[call.kind].calls; }
  // The call is carried out once more: an attempt that was counted does not count.
  void repeated(const Descriptor& call, bool counted, bool failed) {
    ++counts_.calls_repeated;
    if (!counted) return;
    GCCL_Call_metrics& m = counts_.calls[call.kind];
    --m.calls;
    m.failed -= failed;
    m.bytes -= call.bytes;
  }
  // The recovery was all that the call was to do: an attempt that was counted has not failed.
  void over_by_recovery(const Descriptor& call, bool counted) { counts_.calls[call.kind].failed -= counted; }
  void handed_back() { ++counts_.calls_handed_back; }
  void suspected(std::uint64_t times, std::uint64_t withdrawn) {
    counts_.suspicions = suspicions_before_ + times;
    counts_.suspicions_withdrawn = withdrawn_before_ + withdrawn;
  }
  void reconnected(const LinkCounts& links) {
    counts_.reconnects = links_before_.reconnects + links.reconnects;
    counts_.bytes_repeated = links_before_.bytes_repeated + links.bytes_repeated;
    counts_.frames_damaged = links_before_.frames_damaged + links.frames_damaged;
  }
  // After suspected() and reconnected(): other connections begin to count from 0, in a new world another detector, too.
  // No link of them is slow yet.
  void other_links(bool new_world) {
    links_before_ = {counts_.reconnects, counts_.bytes_repeated, counts_.frames_damaged};
    if (new_world) {
      suspicions_before_ = counts_.suspicions;
      withdrawn_before_ = counts_.suspicions_withdrawn;
    }
    slowest_link(-1, -1, 0, 0);
  }
  void link_changed(bool slow) { ++(slow ? counts_.links_slowed : counts_.links_recovered); }
  // By rank, in bytes a second; -1: none is slow.
  void slowest_link(int from, int to, double rate, double expected) {
    counts_.slow_link_from = from;
    counts_.slow_link_to = to;
    counts_.slow_link_MBps = rate / 1e6;
    counts_.slow_link_expected_MBps = expected / 1e6;
  }
  void plans_changed() { ++counts_.plans_changed; }
  void waited(const Backoff& backoff) { counts_.waits_yielded += backoff.yields(); }

  // out->struct_bytes says how much of it the caller knows.
  void read(GCCL_Metrics* out) const;

 private:
  static GCCL_Metrics none() {
    GCCL_Metrics m{};
    m.slow_link_from = m.slow_link_to = -1;
    return m;
  }
  GCCL_Metrics counts_ = none();
  LinkCounts links_before_;
  std::uint64_t suspicions_before_ = 0, withdrawn_before_ = 0;
};

}  // namespace gccl
