// One rank's part of the fault protocol, without I/O: its detector and its membership, which report to each other what
// they find. What moves bytes and knows the time drives it: after each event it sends the packets, and calls
// time_passed() at the deadline.
#pragma once

#include <optional>

#include "libgccl/fault/detector.hpp"
#include "libgccl/fault/membership.hpp"

namespace gccl::fault {

struct MemberSettings {
  DetectorSettings detector;
  MembershipSettings membership;
};

struct MemberRules {
  const DetectorRules* detector = &DetectorRules::standard();
  const MembershipRules* membership = &MembershipRules::standard();
};

class Member {
 public:
  // One of the first members, and one that joins: as Membership's.
  Member(Nanos now, const MemberSettings& settings, Rank self, const RankSet& members, std::uint64_t seed,
         const MemberRules& rules = {});
  Member(Nanos now, const MemberSettings& settings, Rank self, std::uint64_t life, const RankSet& contacts,
         std::uint64_t seed, const MemberRules& rules = {});

  // ---- Calls ----

  void agree(Nanos now, std::uint64_t flags);
  void shrink(Nanos now);
  void grow(Nanos now);
  void revoke(Nanos now);
  void acknowledge(const RankSet& failed) { membership_.acknowledge(failed); }

  // ---- Events ----

  // Any bytes will do. False: these are no packet of this protocol.
  bool received(Nanos now, Rank from, std::span<const std::byte> bytes);
  void heard(Nanos now, Rank from);
  // The process of that rank and life: as the system says of processes.
  void gone(Nanos now, Rank rank, std::uint64_t life = 0);
  void stopped(Rank rank, bool is);
  void time_passed(Nanos now);

  // ---- Actions and state ----

  Nanos deadline() const;
  std::vector<Packet> take_packets();
  std::vector<Decision> take_decisions() { return membership_.take_decisions(); }
  const Membership& membership() const { return membership_; }
  // Null while it joins.
  const Detector* detector() const { return detector_ ? &*detector_ : nullptr; }

 private:
  void exchange(Nanos now);

  const MemberSettings settings_;
  const MemberRules rules_;
  const Rank self_;
  const std::uint64_t seed_;
  Membership membership_;
  std::optional<Detector> detector_;  // of epoch watched_
  Epoch watched_ = 0;
  std::vector<Packet> packets_;  // of detectors before
};

}  // namespace gccl::fault
