// An algorithm as the rest of GCCL sees it: a row of the table (table.hpp), which the algorithm's own file defines.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/cost/slicing.hpp"
#include "libgccl/schedule/call.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

struct Algorithm {
  std::string_view name;
  Collective kind;
  std::string_view source{};  // the paper and its section, or the program that it comes from
  // Formulas as docs/algorithms.md explains them; the tests count the schedule's messages and elements by them.
  std::string_view steps{};  // exchanges one after the other, where a rank sends and receives one message at a time
  std::string_view bytes{};  // sent by the rank that sends most
  // The steps of rank view.all.rank for one share. Peers are ranks of the communicator.
  Schedule (*make)(Call, View, Share);
  // Elements of scratch that one lane needs for one share; null means none. Lanes never share it, so they never meet
  // there, and transports can reserve it.
  Count (*scratch)(const Call&, const View&, Share) = nullptr;
  // A lane's scratch is what other ranks read, so it should be memory that they have mapped.
  bool stages = false;
  // False where the algorithm cannot serve the call, or has so many messages on so many ranks that it never should
  // (few_ranks.hpp); speed alone is for `cost`. Null means always true.
  bool (*fits)(const Call&, const View&) = nullptr;
  std::string_view limit{};  // what `fits` asks for, as the end of a sentence: "it is for at most 32 ranks"
  // Closed form for a call in one chunk, nanoseconds, without contention between lanes or jobs.
  Cost (*cost)(const Call&, const View&, const CostModel&) = nullptr;
  // One that "all" and closed forms leave out, and that a user or a transport's rule may still name, such as
  // hierarchical(pairwise,swing).
  bool variant = false;
  // Its channels have orders of their own (channel.hpp), and `cost` takes view.channels of them at once, each of which
  // carries the call.
  bool channels = false;
  // `cost` takes view.channels channels at once, of one chunk each, although they have one order.
  bool at_once = false;
  // The algorithm whose schedule it has on that view, and as which it is predicted; null: none.
  const Algorithm* (*same_as)(const View&) = nullptr;
  // Each of its steps waits for the one before, so that a port is idle while a message is in its latency, unless other
  // channels' messages pass. Where not `at_once`, all of them take alike.
  bool rounds = false;
  // Its links inside nodes and between them are busy at the same time: channels of one chunk are in no different
  // phases.
  bool one_phase = false;
  // Its messages hold several blocks side by side. In more than one chunk each of them is a message of its own, which
  // `cost` does not know, so it is not cut up where others can be.
  bool runs = false;
  // Slices of the rank's blocks are first copied side by side, which `cost` does not know either.
  bool packs = false;
  // For channels without an interval: as `cost`, of the first chunk of each. Channels begin in step, all of them
  // sending and then all of them waiting or combining; only later do they drift apart, which is what `cost` is for.
  // Null: no difference.
  Cost (*in_step)(const Call&, const View&, const CostModel&) = nullptr;
  // Closed form for a call that is one of many chunks: nanoseconds from the end of one chunk to the end of the next,
  // where ranks pass on a chunk while the next arrives. Null where each chunk takes its turn. With in_switch asked for
  // only where the switches are.
  Cost (*interval)(const Call&, const View&, const CostModel&, const Slicing&) = nullptr;
  // Where slices of blocks that lie side by side are messages of their own: how long those of all shares take the rank
  // at least that has most of them. `cost` does not know of them, since a call that is not cut up has none.
  Cost (*slices)(const View&, const CostModel&, const Slicing&) = nullptr;
  // For algorithms whose phases use links of different kinds: each channel begins with a chunk of another length, so
  // that they are in different phases from the start and use all links at the same time.
  bool staggered = false;
  // It has steps to groups (group_step.hpp), made for switches that multicast and reduce. "auto" and "all" take it
  // where the cluster has such switches; a user may name it anywhere.
  bool in_switch = false;
  // For algorithms that gather at a root and come back: the two halves of `make`, and how many shares of a lane are on
  // their way between this rank and the root. A rank that waited for each share to come back before it began the
  // next would leave its links idle, so sliced() lets the second halves follow that many shares later.
  Schedule (*first_half)(Call, View, Share) = nullptr;
  Schedule (*second_half)(Call, View, Share) = nullptr;
  Count (*trail)(const View&) = nullptr;

  // The same for another collective.
  constexpr Algorithm of(Collective other) const {
    Algorithm a = *this;
    a.kind = other;
    return a;
  }
  bool can(const Call& c, const View& v) const { return !fits || fits(c, v); }
  Count scratch_count(const Call& c, const View& v, Share s) const { return scratch ? scratch(c, v, s) : 0; }
  bool staggers(Count shares, Count lanes) const { return staggered && shares % lanes == 0 && shares / lanes > 1; }
  // How many shares the lane of `sliced` has, and the i-th of them.
  Count shares_of(Count shares, Count lane, Count lanes) const;
  Share share(Count i, Count shares, Count lane, Count lanes) const;
  // What one lane of `sliced` needs: the most of its shares. A shorter share may need more than a longer one: it may be
  // sent by another rule (allgather/pat.cpp).
  Count scratch_count(const Call& c, View v, Count shares, Count lane, Count lanes) const {
    Count most = 0;
    v.channel = Rank(lane);
    for (Count i = 0; scratch && i < shares_of(shares, lane, lanes); ++i)
      most = std::max(most, scratch(c, v, share(i, shares, lane, lanes)));
    return most;
  }
};

// The table; its rows stay where they are as long as the process lives.
std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(Collective kind, std::string_view name);
// Names as users type them: of one collective or of all, each once.
std::vector<std::string_view> algorithm_names(std::optional<Collective> kind = std::nullopt);

// The combinator behind pipelining and channels: shares lane, lane+lanes, lane+2*lanes, ... of `shares`, one after the
// other. Lanes run concurrently, so `lanes` of them keep that many shares in flight, each as a channel with an order of
// its own (channel.hpp) where the algorithm asks for one.
Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes);

}  // namespace gccl
