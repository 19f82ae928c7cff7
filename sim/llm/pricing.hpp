// What the communications of a step take: each distinct one is played on the engine as a scenario of its own, with all
// groups that may share links with each other at the same time.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/llm/timeline.hpp"
#include "sim/scenario/run_campaign.hpp"

namespace gccl::sim::llm {

// Nodes that are alike have the same kind; a card's place is its number on its node.
struct Nodes {
  std::vector<Rank> kind;   // by node
  std::vector<Rank> place;  // by card
};

// A workload's ranks on the cards of its cluster.
struct StepWorld {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  std::shared_ptr<const Nodes> nodes;

  Rank node_of(Rank r) const { return cluster->node_of(cards[r]); }
  Rank kind_of(Rank r) const { return nodes->kind[node_of(r)]; }
  Rank place_of(Rank r) const { return nodes->place[cards[r]]; }
};

// Stages first .. last-1 whose ranks have no node in common with later stages', as far as stages follow each other on
// the cards: one stage where it fills nodes, all of them where the placement deals ranks out.
Rank separate_stages(const LlmWorkload& w, const StepWorld& world, Rank first = 0);
// How many ranks of the first expert group are on one node.
Rank expert_ranks_in_node(const LlmWorkload& w, const StepWorld& world);

// The run of a scenario ("gccl/scenario/1") that plays these communications concurrently. Groups that lie inside nodes
// are played on one node of each kind where nothing else is in flight. `one_group`: of each set one group alone that is
// on as many nodes as any, for closed forms, to which those are alike.
nlohmann::json run_of(const LlmWorkload& w, const StepWorld& world, const std::vector<const Traffic*>& traffic,
                      bool one_group = false);
// How many times as long the busiest link of a node has what all groups of such a communication send by it at the same
// time as what one of them does, at least 1: what a closed form of that one does not know. `stages`: the first ones, as
// separate_stages() has them.
double groups_at_once(const LlmWorkload& w, const StepWorld& world, const Traffic& traffic, Rank stages);
// Its task: one call on these groups.
nlohmann::json task_of(const LlmWorkload& w, const TrafficCall& call, const nlohmann::json& groups);
// The whole scenario of a step's communications, each alone.
nlohmann::json scenario_of(const LlmWorkload& w, const std::vector<nlohmann::json>& runs);

// Plays runs, each once however often it is asked for.
class Pricer {
 public:
  struct Options {
    Engines engines;
    unsigned jobs = 1;
    std::function<void(std::size_t done, std::size_t of)> progress = {};
    const StopFlag* stop = nullptr;
    Journal* journal = nullptr;
    Authorities authorities = {};
  };
  explicit Pricer(Options options) : options_(std::move(options)) {}

  StepWorld world(const LlmWorkload& w);
  // Rows of "gccl/result/1", one for each run. Throws what run_campaign throws.
  std::vector<nlohmann::json> play(const LlmWorkload& w, const StepWorld& world,
                                   const std::vector<nlohmann::json>& runs);
  // Microseconds by the planner's closed forms, without contention; nothing is simulated. For runs of one group.
  std::vector<double> predict(const LlmWorkload& w, const StepWorld& world, const std::vector<nlohmann::json>& runs);
  std::size_t simulated() const { return simulated_; }
  const std::vector<std::string>& keys() const { return keys_; }  // with a journal: of all points so far
  const StopFlag* stop() const { return options_.stop; }
  const Authorities& authorities() const { return options_.authorities; }

 private:
  Campaign campaign(const LlmWorkload& w, const StepWorld& world, const std::vector<nlohmann::json>& runs) const;

  Options options_;
  struct Loaded {
    std::shared_ptr<const Cluster> cluster;
    std::shared_ptr<const Nodes> nodes;
  };
  std::map<std::filesystem::path, Loaded> clusters_;
  std::map<std::string, nlohmann::json> rows_;
  std::map<std::string, double> predicted_;
  std::vector<std::string> keys_;
  std::size_t simulated_ = 0;
};

// From the row of two communications played concurrently, the first of `first` streams, and what each takes alone: how
// much longer each takes while the other is in flight; no more than kSlowerMax, as one may stand still meanwhile.
inline constexpr double kSlowerMax = 20;
std::pair<double, double> slower_together(const nlohmann::json& row, std::size_t first, double alone_us,
                                          double other_alone_us);

}  // namespace gccl::sim::llm
