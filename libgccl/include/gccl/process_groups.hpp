// The groups of ranks that train one model together: tensor, context, pipeline and data parallel.
#pragma once

#include "gccl/cpp20.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gccl/communicator.hpp"

namespace gccl {
inline namespace api {

// Kinds of groups: ranks of one group differ in these coordinates only.
enum class Parallel : unsigned { tp = 1, cp = 2, pp = 4, dp = 8, cp_dp = cp | dp, pp_dp = pp | dp };

// Where a rank is among the tensor, context, pipeline and data parallel ones.
struct ParallelPlace {
  int tp = 0, cp = 0, pp = 0, dp = 0;
  friend bool operator==(const ParallelPlace&, const ParallelPlace&) = default;
};

// Pure arithmetic: needs no communicator. The order names the coordinates from the fastest varying one on. The default
// is Megatron-LM's (megatron/core/parallel_state.py: "tp-cp-ep-dp-pp"):
//   rank = tp + cp*TP + dp*TP*CP + pp*TP*CP*DP
// so tensor parallel ranks are neighbours, on one node. A size that is 1 may be left out; "ep" may stand in the order
// and changes nothing: expert parallel ranks are data parallel ones.
class ProcessGroups {
 public:
  // Throws Error (GCCL_ERR_INVALID_ARGUMENT) for sizes below 1, more than 2^31 - 1 ranks, or a wrong order.
  ProcessGroups(int tp, int cp, int pp, int dp, std::string_view order = "tp-cp-dp-pp") : size_{tp, cp, pp, dp} {
    std::int64_t world = 1;
    for (std::size_t a = 0; a < kAxes; ++a) {
      if (size_[a] < 1) wrong(std::string(kNames[a]) + " is " + std::to_string(size_[a]) + ", expected at least 1");
      world *= size_[a];
      if (world > INT_MAX) wrong("tp, cp, pp and dp make more than 2147483647 ranks");
    }
    world_size_ = int(world);
    read_order(order);
  }

  // As many data parallel ranks as fill a world. Throws with the nearest valid value where the others do not divide it.
  static ProcessGroups for_world(int world_size, int tp, int cp, int pp, std::string_view order = "tp-cp-dp-pp") {
    ProcessGroups one(tp, cp, pp, 1, order_with_dp(order));
    if (world_size < 1) wrong("there are " + std::to_string(world_size) + " ranks, expected at least 1");
    if (world_size % one.world_size_ != 0) {
      const int least = one.world_size_, below = world_size / least * least;
      wrong(one.text(false) + " = " + std::to_string(least) + " does not divide " + std::to_string(world_size) +
            " ranks; " + one.nearest_divisor(world_size, kAxes - 1) + "nearest number of ranks: " +
            (below == 0 ? "" : std::to_string(below) + " or ") + std::to_string(std::int64_t(below) + least));
    }
    return ProcessGroups(tp, cp, pp, world_size / one.world_size_, order);
  }

  // Throws, with the nearest valid value, unless the sizes multiply to world_size.
  void expect_world(int world_size) const {
    if (world_size == world_size_) return;
    const int others = world_size_ / size_[kDp];
    std::string advice = "expected " + std::to_string(world_size_) + " ranks";
    if (world_size > 0 && world_size % others == 0)
      advice = "expected dp " + std::to_string(world_size / others) + ", or " + std::to_string(world_size_) + " ranks";
    else if (world_size > 0)
      advice = nearest_divisor(world_size, kAxes) + advice;
    wrong(text(true) + " = " + std::to_string(world_size_) + ", but there are " + std::to_string(world_size) +
          " ranks; " + advice);
  }

  int world_size() const { return world_size_; }
  int tp() const { return size_[kTp]; }
  int cp() const { return size_[kCp]; }
  int pp() const { return size_[kPp]; }
  int dp() const { return size_[kDp]; }

  int rank_of(const ParallelPlace& p) const {
    const std::array<int, kAxes> at{p.tp, p.cp, p.pp, p.dp};
    int rank = 0;
    for (std::size_t a = 0; a < kAxes; ++a) {
      if (at[a] < 0 || at[a] >= size_[a])
        wrong(std::string(kNames[a]) + " coordinate " + std::to_string(at[a]) + ", expected 0 to " +
              std::to_string(size_[a] - 1));
      rank += at[a] * stride_[a];
    }
    return rank;
  }
  ParallelPlace place_of(int rank) const {
    check_rank(rank);
    const auto at = [&](std::size_t a) { return rank / stride_[a] % size_[a]; };
    return {at(kTp), at(kCp), at(kPp), at(kDp)};
  }

  // The members of the rank's group, ascending; among them the rank itself.
  std::vector<int> group(Parallel kind, int rank) const {
    check_rank(rank);
    std::vector<int> members{first_of(kind, rank)};
    for (const std::size_t a : order_) {  // ascending strides keep the members ascending
      if (!varies(kind, a)) continue;
      const std::size_t inner = members.size();
      for (int i = 1; i < size_[a]; ++i)
        for (std::size_t m = 0; m < inner; ++m) members.push_back(members[m] + i * stride_[a]);
    }
    return members;
  }
  // All groups of a kind, in order of their lowest ranks. Every rank is in exactly one.
  std::vector<std::vector<int>> groups(Parallel kind) const {
    std::vector<std::vector<int>> all;
    for (int r = 0; r < world_size_; ++r)
      if (first_of(kind, r) == r) all.push_back(group(kind, r));
    return all;
  }

  // The communicator of the caller's group. Collective over the world, whose size must be world_size().
  Communicator split(const Communicator& world, Parallel kind) const {
    expect_world(world.size());
    const int rank = world.rank();
    return world.split(first_of(kind, rank), rank);
  }

 private:
  static constexpr std::size_t kTp = 0, kCp = 1, kPp = 2, kDp = 3, kAxes = 4;
  static constexpr std::array<std::string_view, kAxes> kNames = {"tp", "cp", "pp", "dp"};

  [[noreturn]] static void wrong(const std::string& what) { api_detail::wrong("process groups", what); }
  static bool varies(Parallel kind, std::size_t axis) { return unsigned(kind) >> axis & 1u; }

  void check_rank(int rank) const {
    if (rank < 0 || rank >= world_size_)
      wrong("rank " + std::to_string(rank) + ", expected 0 to " + std::to_string(world_size_ - 1));
  }
  // The lowest rank of the rank's group: its number where colors are needed.
  int first_of(Parallel kind, int rank) const {
    int first = rank;
    for (std::size_t a = 0; a < kAxes; ++a)
      if (varies(kind, a)) first -= rank / stride_[a] % size_[a] * stride_[a];
    return first;
  }

  // "tp 2 x cp 1 x pp 3 x dp 4".
  std::string text(bool with_dp) const {
    std::string s;
    for (std::size_t a = 0; a < (with_dp ? kAxes : kDp); ++a)
      s += (a ? " x " : "") + std::string(kNames[a]) + " " + std::to_string(size_[a]);
    return s;
  }
  // "nearest tp: 4; " -- the smallest change of one of the first `axes` sizes with which their product divides the
  // world; empty where there is none.
  std::string nearest_divisor(int world_size, std::size_t axes) const {
    std::size_t best_axis = axes;
    int best = 0;
    std::int64_t product = 1;
    for (std::size_t a = 0; a < axes; ++a) product *= size_[a];
    for (std::size_t a = 0; a < axes; ++a) {
      const std::int64_t others = product / size_[a];
      if (others > world_size || world_size % others != 0) continue;
      const int room = int(world_size / others);
      // With all sizes given the product must be the world; else a divisor of it will do.
      const int value = axes == kAxes ? room : nearest_factor(room, size_[a]);
      if (best_axis == axes || std::abs(value - size_[a]) < std::abs(best - size_[best_axis]))
        best_axis = a, best = value;
    }
    return best_axis == axes ? "" : "nearest " + std::string(kNames[best_axis]) + ": " + std::to_string(best) + "; ";
  }
  // The divisor of n that is nearest to `wanted`, the smaller of two.
  static int nearest_factor(int n, int wanted) {
    int best = 1;
    const auto consider = [&](int d) {
      const int change = std::abs(d - wanted), change_best = std::abs(best - wanted);
      if (change < change_best || (change == change_best && d < best)) best = d;
    };
    for (int d = 1; std::int64_t(d) * d <= n; ++d)
      if (n % d == 0) consider(d), consider(n / d);
    return best;
  }

  // dp has size 1 while it is looked for, but must not be left out of the order.
  static std::string order_with_dp(std::string_view order) {
    if (order.find("dp") == std::string_view::npos) wrong("dp is missing in the order \"" + std::string(order) + "\"");
    return std::string(order);
  }
  void read_order(std::string_view order) {
    const std::string whole(order);
    std::array<bool, kAxes> seen{};
    int stride = 1;
    std::size_t places = 0;
    const auto place = [&](std::size_t axis) {
      seen[axis] = true;
      order_[places++] = axis;
      stride_[axis] = stride;
      stride *= size_[axis];
    };
    while (!order.empty()) {
      const std::size_t end = std::min(order.find('-'), order.size());
      const std::string_view name = order.substr(0, end);
      order.remove_prefix(std::min(end + 1, order.size()));
      if (name == "ep") continue;
      const std::size_t axis = std::size_t(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
      if (axis == kAxes || seen[axis])
        wrong("the order \"" + whole + "\" has \"" + std::string(name) + "\"" + (axis < kAxes ? " twice" : "") +
              ", expected tp, cp, dp and pp once each, joined by '-'");
      place(axis);
    }
    for (std::size_t a = 0; a < kAxes; ++a) {
      if (seen[a]) continue;
      if (size_[a] != 1)
        wrong(std::string(kNames[a]) + " is " + std::to_string(size_[a]) + " and missing in the order \"" + whole +
              "\"");
      place(a);
    }
  }

  std::array<int, kAxes> size_, stride_{};
  std::array<std::size_t, kAxes> order_{};  // axes by ascending stride
  int world_size_ = 1;
};

// The communicators of every kind of group that one rank belongs to.
struct ParallelCommunicators {
  Communicator tp, cp, pp, dp, cp_dp, pp_dp;

  // Collective over the world.
  static ParallelCommunicators create(const Communicator& world, const ProcessGroups& groups) {
    ParallelCommunicators c;
    c.tp = groups.split(world, Parallel::tp);
    c.cp = groups.split(world, Parallel::cp);
    c.pp = groups.split(world, Parallel::pp);
    c.dp = groups.split(world, Parallel::dp);
    c.cp_dp = groups.split(world, Parallel::cp_dp);
    c.pp_dp = groups.split(world, Parallel::pp_dp);
    return c;
  }
};

}  // namespace api
}  // namespace gccl
