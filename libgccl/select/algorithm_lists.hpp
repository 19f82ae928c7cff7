// GCCL_ALGO: among which algorithms the planner may choose, in the grammar of NCCL_ALGO (NCCL's documentation,
// environment variables) with sizes added to it:
//
//   ring,tree                          any collective that has one of these: these alone
//   ^bruck                             any but these
//   allreduce:ring,tree;broadcast:^chain   a collective's own list goes before that for all
//   allreduce:0-64KiB:tree             calls of these sizes: the first included, the second not; either may be left out
//
// Capital letters and underscores make no difference, so that NCCL's names do: AllReduce, NVLSTree. Its ring of a
// broadcast or a reduce is the row chain.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/status.hpp"

namespace gccl {

class AlgorithmLists {
 public:
  struct Rule {
    Collective kind{};
    Count from_bytes = 0, to_bytes = std::numeric_limits<Count>::max();
    bool excludes = false;
    std::vector<const Algorithm*> rows{};

    // Whether the planner may not use it.
    bool forbids(const Algorithm& a) const;
    // Whether it may use it on its own: a variant only where it is named.
    bool offers(const Algorithm& a) const { return !forbids(a) && (!excludes || !a.variant); }
  };

  static Status parse(const std::string& text, AlgorithmLists* out);
  // The same for lists that mean the same.
  std::string text() const;
  // Null: anything goes. Bytes are counted as nccl-tests does.
  const Rule* of(Collective kind, Count bytes) const;
  // Adds the bytes at which a rule for the collective begins or ends.
  void borders(Collective kind, std::vector<Count>& to) const;

 private:
  std::vector<Rule> rules_;  // by collective; a collective's own before those for all
};

}  // namespace gccl
