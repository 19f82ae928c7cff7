// The table of algorithms: a new one is one file and one line in table.cpp.
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
  // The steps of rank view.all.rank for one share. Peers are ranks of the communicator.
  Schedule (*make)(Call, View, Share);
  // Elements of scratch that one lane needs for one share; null means none.
  Count (*scratch)(const Call&, const View&, Share);
  // False where the algorithm cannot serve the call, or has so many messages on so many ranks that it never should
  // (few_ranks.hpp); speed alone is for `cost`. Null means always true.
  bool (*fits)(const Call&, const View&);
  // Closed form for a call in one chunk, nanoseconds, without contention between lanes or jobs.
  Cost (*cost)(const Call&, const View&, const CostModel&);
  // A combination that "all" leaves out and a user may still name, such as hierarchical(pairwise,swing).
  bool variant = false;
  // Closed form for a call that is one of many chunks: nanoseconds from the end of one chunk to the end of the next,
  // where ranks pass on a chunk while the next arrives. Null where each chunk takes its turn.
  Cost (*interval)(const Call&, const View&, const CostModel&, const Slicing&) = nullptr;

  bool can(const Call& c, const View& v) const { return !fits || fits(c, v); }
  Count scratch_count(const Call& c, const View& v, Share s) const { return scratch ? scratch(c, v, s) : 0; }
  // What one lane of `sliced` needs: the most of its shares. A shorter share may need more than a longer one: it may be
  // sent by another rule (all_gather_pat.hpp).
  Count scratch_count(const Call& c, const View& v, Count shares, Count lane, Count lanes) const {
    Count most = 0;
    for (Count s = lane; scratch && s < shares; s += lanes) most = std::max(most, scratch(c, v, Share{s, shares}));
    return most;
  }
};

std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(Collective kind, std::string_view name);
// Names as users type them: of one collective or of all, each once.
std::vector<std::string_view> algorithm_names(std::optional<Collective> kind = std::nullopt);

// The combinator behind pipelining and channels: shares lane, lane+lanes, lane+2*lanes, ... of `shares`, one after the
// other. Lanes run beside each other, so `lanes` of them keep that many shares in flight.
Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes);

}  // namespace gccl
