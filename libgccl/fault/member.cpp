#include "libgccl/fault/member.hpp"

#include <algorithm>
#include <iterator>

namespace gccl::fault {

Member::Member(Nanos now, const MemberSettings& settings, Rank self, const RankSet& members, std::uint64_t seed,
               const MemberRules& rules)
    : settings_(settings),
      rules_(rules),
      self_(self),
      seed_(seed),
      membership_(now, settings.membership, self, members, *rules.membership) {
  exchange(now);
}

Member::Member(Nanos now, const MemberSettings& settings, Rank self, std::uint64_t life, const RankSet& contacts,
               std::uint64_t seed, const MemberRules& rules)
    : settings_(settings),
      rules_(rules),
      self_(self),
      seed_(seed),
      membership_(now, settings.membership, self, life, contacts, *rules.membership) {}

// What one of the two has found is passed to the other. A new epoch has a new detector.
void Member::exchange(Nanos now) {
  if (detector_ && watched_ == membership_.epoch()) {
    membership_.learn(now, detector_->failures());
    if (detector_->isolated()) membership_.isolated();
  }
  if (membership_.member() && watched_ != membership_.epoch()) {
    if (detector_) std::ranges::move(detector_->take_packets(), std::back_inserter(packets_));
    watched_ = membership_.epoch();
    detector_.emplace(now, settings_.detector, self_, watched_, membership_.members(), seed_ + watched_,
                      *rules_.detector);
  }
  if (membership_.member()) detector_->learn(membership_.failures());
}

void Member::agree(Nanos now, std::uint64_t flags) {
  membership_.agree(now, flags);
  exchange(now);
}

void Member::shrink(Nanos now) {
  membership_.shrink(now);
  exchange(now);
}

void Member::grow(Nanos now) {
  membership_.grow(now);
  exchange(now);
}

void Member::revoke(Nanos now) {
  membership_.revoke(now);
  exchange(now);
}

bool Member::received(Nanos now, Rank from, std::span<const std::byte> bytes) {
  if (membership_.out() != Membership::Out::no) return true;
  if (const auto m = DetectorMessage::decoded(bytes)) {
    if (!detector_) return true;
    detector_->received(now, from, *m);
    membership_.behind(now, from, m->epoch);
  } else if (const auto n = MembershipMessage::decoded(bytes)) {
    if (detector_) detector_->heard(now, from);
    membership_.received(now, from, *n);
  } else {
    return false;
  }
  exchange(now);
  return true;
}

void Member::heard(Nanos now, Rank from) {
  if (detector_) detector_->heard(now, from);
}

void Member::gone(Nanos now, Rank rank, std::uint64_t life) {
  if (detector_ && membership_.life_of(rank) == life) detector_->gone(rank);
  exchange(now);
}

void Member::stopped(Rank rank, bool is) {
  if (detector_) detector_->stopped(rank, is);
}

void Member::time_passed(Nanos now) {
  if (membership_.out() != Membership::Out::no) return;
  membership_.time_passed(now);
  if (detector_ && now >= detector_->deadline()) detector_->time_passed(now);
  exchange(now);
}

Nanos Member::deadline() const {
  if (membership_.out() != Membership::Out::no) return kNever;
  return std::min(membership_.deadline(), detector_ ? detector_->deadline() : kNever);
}

std::vector<Packet> Member::take_packets() {
  std::vector<Packet> all = std::exchange(packets_, {});
  if (detector_) std::ranges::move(detector_->take_packets(), std::back_inserter(all));
  std::ranges::move(membership_.take_packets(), std::back_inserter(all));
  if (membership_.out() != Membership::Out::no) all.clear();
  return all;
}

}  // namespace gccl::fault
