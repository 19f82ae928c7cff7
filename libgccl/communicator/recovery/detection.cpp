// How ranks notice that others have failed without a transport's word: processes of this machine that have ended, and
// those whose machine or network is silent.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kDetectionMsMax = std::int64_t(1000) * 86400 * 365;
constexpr unsigned kUnheardWarned = 8;  // datagrams: all rounds of a probe, and of the next

}  // namespace

// On all ranks or none, and with one limit: a rank that does not answer pings is silent.
void Recovery::start_detector() {
  bool all_near = true;
  for (const Contact& c : contacts_) {
    if (c.detection_ms <= 0) return;
    detection_ms_ = std::max(detection_ms_, std::min(c.detection_ms, kDetectionMsMax));
    all_near = all_near && c.near(contacts_[0]);
  }
  if (all_near) return;
  std::lock_guard lock(mutex_);
  rules_.recovery = this;
  const fault::DetectorSettings settings = {.detection = detection_ms_ * kNsPerMs, .heard_first = true};
  detector_ = std::make_unique<fault::Detector>(now_ns(), settings, rank_, fault::Epoch{1},
                                                fault::RankSet::below(Rank(contacts_.size())), job_ + rank_, rules_);
  try {
    start_thread();
  } catch (const std::system_error&) {  // nobody answers for this rank, and whom nobody has heard is not accused
    detector_.reset();
  }
}

bool Recovery::Rules::lives(Rank r) const {
  return recovery->contacts_[r].near(recovery->contacts_[recovery->rank_]) && !recovery->gone_[r] &&
         recovery->contacts_[r].process.state() != OtherProcess::State::ended;
}

void Recovery::check_processes() {
  for (Rank r = 0; r < contacts_.size(); ++r) {
    if (r == rank_ || gone_[r] || !seen(r)) continue;
    if (contacts_[r].process.state() == OtherProcess::State::ended) note_gone(r);
  }
}

void Recovery::note_gone(Rank world) {
  if (gone_[world]) return;
  gone_[world] = true;
  if (detector_) {
    detector_->gone(world);
    ended_at_.emplace_back(world, now_ns());
  }
  for (auto& [id, g] : groups_) learn(g, {});
}

// The ranks have started, so a transport reaches it, unless it is known to be lost. Once: most often it is a firewall,
// between many.
void Recovery::warn_of_silent(Rank r) {
  if (warned_ || seen(r) || !paths_.never_heard(r, kUnheardWarned, now_ns() - 2 * detection_ms_ * kNsPerMs)) return;
  for (const auto& [id, g] : groups_) {
    const auto at = std::ranges::find(g.members.world_rank, r);
    if (at == g.members.world_rank.end()) continue;
    const Rank there = Rank(at - g.members.world_rank.begin());
    const fault::Failures& lost = g.membership->failures();
    if (!g.membership->members().contains(there) || lost.failed.contains(there) || lost.gone.contains(there)) return;
  }
  warned_ = true;
  log_line(
      kLogWarnings,
      fmt::format("rank {} has heard no datagram of rank {}, to which it sends them at {}: failures of ranks that no "
                  "other hears are not detected within GCCL_DETECTION_MS, and GCCL_Comm_shrink and GCCL_Comm_agree "
                  "do not reach them; let UDP through between the machines, or name with GCCL_ADDRESS the network "
                  "that they share",
                  rank_, r, paths_.text(r)));
}

// Packets out, verdicts in. A rank that is isolated takes part in nothing any more, also where its own packets still
// reach the others: those that hear it would wait for it.
void Recovery::drive_detector() {
  if (!detector_) return;
  if (now_ns() >= detector_->deadline()) detector_->time_passed(now_ns());
  const bool alone = detector_->isolated() && !std::exchange(isolated_, true);
  for (const fault::Packet& p : detector_->take_packets()) {
    if (isolated_) continue;
    send(job_, rank_, p.to, Kind::detector, p.bytes);
    warn_of_silent(p.to);
  }
  for (const Rank r : detector_->failures().gone) note_gone(r);  // as others saw
  fault::Failures found = {.failed = detector_->failures().failed, .gone = {}};
  // Transports know better when one that has ended has said all.
  for (const auto& [r, at] : ended_at_)
    if (now_ns() - at < detection_ms_ * kNsPerMs) found.failed = found.failed - fault::RankSet{r};
  if (!silent_.insert(found) && !alone) return;
  news_.fetch_add(1, std::memory_order_relaxed);
  for (auto& [id, g] : groups_) {
    learn(g, {});
    if (alone) g.membership->isolated();
    flush(g);
  }
}

void Recovery::suspicions(Metrics* out) {
  std::lock_guard lock(mutex_);
  if (detector_) out->suspected(detector_->suspicions(), detector_->suspicions_withdrawn());
}

Status Recovery::silence(const Members& members, Rank* who) {
  std::lock_guard lock(mutex_);
  const std::string limit = fmt::format("within the detection time of {} ms (GCCL_DETECTION_MS)", detection_ms_);
  for (Rank r = 0; r < members.size(); ++r) {
    const Rank world = members.world_rank[r];
    if (!silent_.failed.contains(world)) continue;
    *who = r;
    if (gone_[world])
      return Status::error(fmt::format("lost {}: its process has ended", members.name(r)), GCCL_ERR_PEER_LOST);
    if (r == members.rank)
      return Status::error(fmt::format("the others have not heard {} {}, and go on without it", members.name(r), limit),
                           GCCL_ERR_PEER_LOST);
    return Status::error(fmt::format("lost {}: nothing heard of it {}: its machine or the network has failed, or it is "
                                     "stopped",
                                     members.name(r), limit),
                         GCCL_ERR_PEER_LOST);
  }
  if (!isolated_ || members.size() == 1) return {};
  *who = members.rank;
  return Status::error(fmt::format("{} has heard no other rank {}: it is cut off", members.name(members.rank), limit),
                       GCCL_ERR_PEER_LOST);
}

}  // namespace gccl
