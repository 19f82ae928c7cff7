// What measurements of a transport say beyond its cost model: which algorithms it favours, and how calls are cut up.
// It is data: cost-models/transports/*.json, compiled in, or a cluster's own.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// Bytes are those of a call's vector or, where ranks have blocks, of one rank's block.
struct Tuning {
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // The first preference that holds decides, before any closed form.
  struct Preference {
    const Algorithm* algorithm = nullptr;
    Rank ranks_max = ~Rank(0);
    double bytes_min = 0;
    double incast_bytes_max = kNoLimit;    // bytes times the other ranks
    std::optional<bool> oversubscribed{};  // only where ranks outnumber processors, or only where they do not

    bool holds(const Call& call, Rank ranks, double bytes) const {
      return algorithm->kind == call.kind && ranks <= ranks_max && bytes >= bytes_min &&
             bytes * (ranks - 1) <= incast_bytes_max;
    }
  };
  // All other ranks send to one at the same time: beyond so many bytes the network drops some of them, which no closed
  // form sees. Then the fallback is used, or where that is null the cheapest of the others.
  struct Incast {
    const Algorithm* algorithm = nullptr;
    const Algorithm* fallback = nullptr;
    double bytes_max = kNoLimit;  // -1: also a call without bytes
  };
  // As many chunks as so many bytes fit into the call, so none is shorter; 0: one chunk. The first that matches
  // decides, and without one there is one chunk.
  struct Chunks {
    Collective kind{};
    const Algorithm* algorithm = nullptr;  // null: any
    Rank ranks_min = 0;
    double bytes = 0;
  };
  // What an algorithm reaches of the rate at which its chunks could follow each other.
  struct Rate {
    const Algorithm* algorithm = nullptr;
    double fraction = 1;
  };

  std::vector<Preference> preferences;
  std::vector<Incast> incast;
  std::vector<Chunks> chunks;
  std::vector<Rate> rates;
  // Nothing is measured: a call is cut up as is predicted to be fastest, in at most channels_max channels.
  bool search = false;
  bool chunks_overlap = true;  // a call's chunks pass each other's ranks at the same time
  Count channels_max = 1;
  // What carries plans out has no more channels: no plan does, not by a table either.
  Count channels_limit = std::numeric_limits<Count>::max();
  unsigned window = 8;

  // What holds where ranks outnumber processors, or where they do not.
  Tuning where(bool oversubscribed) const {
    Tuning t = *this;
    std::erase_if(t.preferences,
                  [&](const Preference& p) { return p.oversubscribed.value_or(oversubscribed) != oversubscribed; });
    return t;
  }
  Count channels_most() const { return std::min(channels_max, channels_limit); }
};

}  // namespace gccl
