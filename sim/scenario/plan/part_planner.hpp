// How the parts of a campaign's points are carried out: which algorithms, by which planner, cut up in which way.
#pragma once

#include <map>
#include <tuple>

#include "libgccl/cluster/cost_stairs.hpp"
#include "sim/scenario/plan/campaign.hpp"

namespace gccl::sim {

// Plans parts on a campaign's worlds, of which `w` is the index. Parts that are alike share what is expensive to make.
// The campaign must outlive it.
class PartPlanner {
 public:
  // Calls are planned around slow links between these ranks of the campaign's worlds.
  explicit PartPlanner(const Campaign& campaign, std::vector<SlowPair> slow = {})
      : campaign_(campaign), slow_(std::move(slow)) {}

  // An algorithm for each shape of communicator.
  using Algorithms = std::vector<const Algorithm*>;

  struct Chosen {
    Algorithms algorithms;
    std::vector<OtherChoice> others;  // see Part
    std::vector<Plan> plans;          // GCCL's planner's; none where another library's rules chose
  };

  // A call on one communicator, as the planner sees it.
  struct Asked {
    CountTable table;
    Call call;
    View view;
    Asked(const Part& part, const SimulatedCommunicator& c, std::uint64_t seed)
        : table(count_table(*part.task, part.bytes, c.ranks(), seed)),
          call(call_of(*part.task, part.bytes, c.ranks(), &table)),
          view(c.layout->view(0)) {}
    Asked(const Asked&) = delete;
  };

  Communicators communicators_of(const Task& task, std::size_t w);
  // The first communicator of each shape.
  static std::vector<const SimulatedCommunicator*> firsts(const Part& part);
  // The algorithms of a single collective in the order of the results, and the planner's choice among them.
  std::pair<std::vector<Algorithms>, Chosen> candidates(const Part& part, std::size_t w);
  // Fills in how each shape of communicator carries the part out. A table also says how calls are cut up.
  void set_plans(Part& part, const Algorithms& by_shape, const Chosen& chosen, std::size_t w);
  // The closed form of one part with its chunks: the longest of its communicators; NaN where an algorithm has none.
  // Without elements no block is sent, which forms do not look at; the call's own cost is left.
  double predicted_us(const Part& part, std::size_t w);
  // Of one part alone, on the campaign's first world. Null: the planner chooses.
  Plan plan_of_part(const Task& task, Count bytes, const Algorithm* stated);

 private:
  struct Basis : PlannedBy {
    Authorities authorities;
  };

  const SimulatedWorld& world(std::size_t w) const { return campaign_.worlds[w]; }
  std::vector<Card> cards_of(const SimulatedCommunicator& c, std::size_t w) const;
  const Basis& basis_of(const Part& part, const SimulatedCommunicator& c, std::size_t w);
  // Those of the cluster's protocols that a task may use: [first, first + number). Where NCCL's model chose one that
  // the cluster has, it is that.
  std::pair<std::size_t, std::size_t> protocols_of(const Part& part, const SimulatedCommunicator& c,
                                                   std::size_t w) const;
  // As stated, or as the planner has it. What would send more than kPlannedMessagesMax messages is not planned so
  // finely.
  Plan plan_for(const Part& part, const Algorithm& a, const SimulatedCommunicator& c, std::size_t w);
  static std::optional<Slicing> stated_slicing(const Part& part);
  static ChunksMax chunks_max(const Part& part, const Asked& asked, const SimulatedCommunicator& c);
  bool fits(const Part& part, const Algorithm& a) const;
  // Whether there are switches that sum, by a protocol that may be used.
  bool switches_sum(const Part& part, const SimulatedCommunicator& c, std::size_t w);
  // An algorithm with steps for switches is part of "all" where there are such switches, and a protocol that they take.
  bool suits(const Part& part, const Algorithm& a, std::size_t w);
  // Whether it is for switches that there are, and no protocol that may be used is.
  bool in_vain(const Part& part, const Algorithm& a, std::size_t w);
  OtherChoice other_choice(const Part& part, const SimulatedCommunicator& c, const Asked& asked, std::size_t w) const;
  // The planner's choice for each.
  Chosen choose(const Part& part, std::size_t w);

  const Campaign& campaign_;
  const std::vector<SlowPair> slow_;
  std::map<std::pair<const Task*, std::size_t>, Communicators> communicators_;
  // By world, bytes of an element, cards, root if their order depends on it, and whether it is that of blocks: tasks
  // that are alike share a cost model, which may take a second to make.
  std::map<std::tuple<std::size_t, unsigned, std::vector<Card>, Rank, bool>, Basis> bases_;
  std::map<std::tuple<const Task*, std::size_t, std::size_t>, const Basis*> basis_of_shape_;  // task, world, shape
};

}  // namespace gccl::sim
