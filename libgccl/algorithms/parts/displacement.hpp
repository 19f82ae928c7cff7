// Where the blocks of a call lie whose blocks may have different lengths: next to each other in rank order, each as
// long as Call::between says, or where Call::places says.
#pragma once

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl {

// The share's slice of the block that goes from one rank to another.
inline Count block_count(const Call& c, Share s, Rank from, Rank to) {
  return s.in({Buffer::none, 0, c.between(from, to)}).count;
}

// The size of a block of an all-to-all(-v) for closed forms, elements: count, or in alltoallv without places the mean
// of n blocks spread over all distances. The same on every rank, as every choice between algorithms must be. O(n) for
// alltoallv.
double mean_block(const Call& c, Rank ranks);
// The same of the rank that gets most (`incoming`) or sends most, among those whose blocks with a few others say so:
// the mean of its blocks.
double heaviest_block(const Call& c, Rank ranks, bool incoming);

// Until the rank with most of an all-to-all-v has got, or sent, its blocks; 0 where all are equal. `bundled`: what
// their bytes alone take, as few messages bring them.
Cost busiest_rank_cost(const Call& c, const View& v, const CostModel& m, bool bundled);

// Finds one rank's blocks in a buffer. Moving by k ranks costs k evaluations of the caller's counts (none where all are
// equal or have places), and so does starting again from rank 0: a walk through all ranks in either direction is O(n),
// without a table.
class Displacement {
 public:
  // The blocks that `rank` sends (in a reduce-scatter: its contributions to each rank's block), in `at`; those it
  // receives, in `at`; the slices that it sends, packed from `at` on.
  static Displacement sent(const Call& c, Share s, Rank rank, Region at) { return {c, s, rank, at, true, false}; }
  static Displacement received(const Call& c, Share s, Rank rank, Region at) { return {c, s, rank, at, false, false}; }
  static Displacement saved(const Call& c, Share s, Rank rank, Region at) { return {c, s, rank, at, true, true}; }

  // The share's slice of the block to or from `peer`.
  Region operator[](Rank peer);
  // The blocks to or from peers first .. first+length-1 as one region. Requires length > 0, no places, and the only
  // share or saved().
  Region run(Rank first, Rank length);

 private:
  Displacement(const Call& c, Share s, Rank rank, Region at, bool outgoing, bool packed)
      : call_(c), share_(s), rank_(rank), at_(at), outgoing_(outgoing), packed_(packed) {}
  // What the block occupies.
  Count extent(Rank peer) const {
    if (packed_) return outgoing_ ? block_count(call_, share_, rank_, peer) : block_count(call_, share_, peer, rank_);
    return outgoing_ ? call_.between(rank_, peer) : call_.between(peer, rank_);
  }
  void seek(Rank peer);

  Call call_;
  Share share_;
  Rank rank_, peer_ = 0;
  Count offset_ = 0;  // of peer_'s block
  Region at_;
  bool outgoing_, packed_;
};

}  // namespace gccl
