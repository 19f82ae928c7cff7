// A set of ranks, in ascending order. Sets of failed ranks are small and travel in every message of the fault protocol.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "libgccl/net/bytes.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::fault {

class RankSet {
 public:
  RankSet() = default;
  RankSet(std::initializer_list<Rank> ranks) {
    for (const Rank r : ranks) insert(r);
  }
  // 0 .. n-1
  static RankSet below(Rank n) {
    RankSet s;
    for (Rank r = 0; r < n; ++r) s.ranks_.push_back(r);
    return s;
  }

  bool contains(Rank r) const { return std::binary_search(ranks_.begin(), ranks_.end(), r); }
  bool includes(const RankSet& other) const {
    return std::includes(ranks_.begin(), ranks_.end(), other.ranks_.begin(), other.ranks_.end());
  }
  // False: it was there already.
  bool insert(Rank r) {
    const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), r);
    if (at != ranks_.end() && *at == r) return false;
    ranks_.insert(at, r);
    return true;
  }
  // False: all of them were.
  bool insert(const RankSet& other) {
    if (includes(other)) return false;
    std::vector<Rank> both;
    std::set_union(ranks_.begin(), ranks_.end(), other.ranks_.begin(), other.ranks_.end(), std::back_inserter(both));
    ranks_ = std::move(both);
    return true;
  }
  friend RankSet operator-(const RankSet& a, const RankSet& b) {
    RankSet rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest.ranks_));
    return rest;
  }
  friend RankSet operator&(const RankSet& a, const RankSet& b) {
    RankSet both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both.ranks_));
    return both;
  }
  friend bool operator==(const RankSet&, const RankSet&) = default;

  bool empty() const { return ranks_.empty(); }
  Rank size() const { return Rank(ranks_.size()); }
  Rank operator[](std::size_t i) const { return ranks_[i]; }
  Rank first() const { return ranks_.front(); }  // requires !empty()
  std::vector<Rank>::const_iterator begin() const { return ranks_.begin(); }
  std::vector<Rank>::const_iterator end() const { return ranks_.end(); }

 private:
  std::vector<Rank> ranks_;
};

inline void write(BytesOut& out, const RankSet& set) {
  out.u32(set.size());
  for (const Rank r : set) out.u32(r);
}

// False: these bytes are no set.
inline bool read(BytesIn& in, RankSet* set) {
  *set = {};
  const std::uint32_t size = in.u32();
  for (std::uint32_t i = 0; i < size && in.ok(); ++i)
    if (!set->insert(in.u32())) return false;
  return in.ok();
}

}  // namespace gccl::fault
