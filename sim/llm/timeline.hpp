// When the tasks of a step begin and end.
#pragma once

#include <stdexcept>

#include "sim/llm/schedule.hpp"
#include "sim/scenario/run/pool.hpp"

namespace gccl::sim::llm {

// What communications take, and what they do to each other.
struct StepCosts {
  std::vector<double> us;  // by traffic, alone on its links with all its groups at the same time
  // slower[a][b]: by how much a communication of kind a takes longer while one of kind b is in flight; 1: not at all.
  ByKind<ByKind<double>> slower;
  ByKind<double> sm_share{};
  StepCosts() {
    for (auto& row : slower) row.fill(1);
  }
};

// What one stage did with the step's time: compute + slowed + exposed + bubble is all of it.
struct StageTime {
  double compute = 0;        // as long as compute takes by itself
  double slowed = 0;         // what it took longer because communication had part of the card
  ByKind<double> exposed{};  // no compute, and the next one waits for this kind, or there is none left but this
  double bubble = 0;         // no compute, and the next one waits for compute of another stage, or nothing is left
  ByKind<double> busy{};     // communication in flight, exposed or not, on each stage that takes part
  double idle(bool with_bubble) const {
    double sum = with_bubble ? bubble : 0;
    for (const double us : exposed) sum += us;
    return sum;
  }
  // Adds this stage's part of a mean over n stages.
  void add(const StageTime& one, double n) {
    compute += one.compute / n;
    slowed += one.slowed / n;
    bubble += one.bubble / n;
    for (std::size_t k = 0; k < kKinds; ++k) {
      exposed[k] += one.exposed[k] / n;
      busy[k] += one.busy[k] / n;
    }
  }
};

struct Timeline {
  double step_us = 0;
  std::vector<double> begin, end;  // by task
  std::vector<StageTime> stages;
  ByKind<ByKind<double>> together{};  // how long two kinds were in flight on a stage at the same time, over all stages
};

// Each of these tasks waits for the next one, and the last for the first.
struct WaitsInCircle : std::runtime_error {
  explicit WaitsInCircle(std::vector<std::uint32_t> circle)
      : std::runtime_error("the tasks of the step wait for each other"), tasks(std::move(circle)) {}
  std::vector<std::uint32_t> tasks;
};

// A stage's tasks of one queue run in order, its queues concurrently. While communications of several kinds are in
// flight, each goes on at 1 / (1 + sum of (slower - 1)) of its pace: exact where all share one limit equally. Compute
// goes on at 1 - the sum of their shares of the card, at least 5 %. Throws WaitsInCircle, and Interrupted soon after
// `stop` is set.
Timeline timeline_of(const StepGraph& graph, const Expansion& e, const StepCosts& costs,
                     const StopFlag* stop = nullptr);

}  // namespace gccl::sim::llm
