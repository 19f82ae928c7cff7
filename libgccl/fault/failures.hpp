// Which members of an epoch have failed, as far as a rank knows, and whether the others may go on without them.
#pragma once

#include "libgccl/fault/never.hpp"
#include "libgccl/fault/rank_set.hpp"

namespace gccl::fault {

using Epoch = std::uint32_t;

// Only grows within an epoch: a rank that counted as failed once stays out until the next.
struct Failures {
  RankSet failed;
  RankSet gone;  // those of them whose process has ended for certain: the system says so

  // True when something was new.
  bool insert(const Failures& other) {
    const bool failed_grew = failed.insert(other.failed);
    return gone.insert(other.gone) || failed_grew;
  }
  bool insert_gone(Rank r) {
    const bool failed_grew = failed.insert(r);
    return gone.insert(r) || failed_grew;
  }
  friend bool operator==(const Failures&, const Failures&) = default;
};

// Whether the members that have not failed may decide for all. Silence does not distinguish a dead rank from one behind
// a partition, so of two sides that call each other failed at most one may: the one with more than half of the members,
// or with half and the first of them. Where every other member's process has ended for certain, there is no other side.
inline bool has_quorum(const RankSet& members, const Failures& failures) {
  const RankSet left = members - failures.failed;
  if (left.empty()) return false;
  if (failures.gone.includes(failures.failed)) return true;
  return 2 * left.size() > members.size() || (2 * left.size() == members.size() && left.first() == members.first());
}

inline void write(BytesOut& out, const Failures& f) {
  write(out, f.failed);
  write(out, f.gone);
}

// False: these bytes are no failures.
inline bool read(BytesIn& in, Failures* f) {
  return read(in, &f->failed) && read(in, &f->gone) && f->failed.includes(f->gone);
}

// What a machine of the fault protocol wants sent. Datagrams will do: they may be lost, repeated and reordered.
struct Packet {
  Rank to;
  std::vector<std::byte> bytes;
};

}  // namespace gccl::fault
