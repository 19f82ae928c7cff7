// Why a call is carried out as it is: every candidate that the planner compares, what its predicted time consists of,
// and why it lost. Words and numbers alone; the caller prints them.
#pragma once

#include <string>
#include <vector>

#include "libgccl/select/plan.hpp"

namespace gccl {

// A kind of cost, which some part of a predicted time goes to.
struct CostKind {
  enum class What : std::uint8_t { start_up, latency, bandwidth, channel, reduction };
  What what{};
  std::string_view tier{};   // of the links whose bandwidth it is; else empty
  std::string text() const;  // "latency", "bandwidth (nic)"
};

// The machine's models while one kind of cost after another gets smaller.
//
// Closed forms are sums and maxima of costs, homogeneous of degree 1: where all costs are a times as much, so is the
// time. By Euler's theorem it then is the sum of what it would fall by for each kind of cost alone, in proportion. So
// models[0] is the machine; models[i + 1] that in which kinds[0] to kinds[i] take kLighter of their time less, all of
// them in the last; and the steps between predictions by them, over kLighter, add up to the predicted time whatever
// maximum is met by two terms at once.
struct CostStairs {
  static constexpr double kLighter = 1.0 / (1 << 20);
  std::vector<CostKind> kinds;
  std::vector<std::vector<CostModel>> models;  // each: by protocol

  CostModels machine() const { return models.front(); }
};

// What an algorithm does for a call that is neither cut up nor shared out, counted by its closed form on a machine
// where one thing takes time.
struct CriticalPath {
  double messages = 0;  // one after the other
  double bytes = 0;     // sent one after the other
};

struct Candidate {
  Plan plan;
  Cost predicted_ns = 0;
  std::vector<Cost> parts_ns;  // by CostStairs::kinds; they add up to predicted_ns
  CriticalPath path;
  std::string why;  // what speaks for it, or against it
};

// What the planner did not compare, and why not: an algorithm, or a protocol of it.
struct Excluded {
  const Algorithm* algorithm = nullptr;
  std::optional<std::size_t> protocol{};
  std::string why;
};

struct Explanation {
  Plan plan;                          // the planner's; its algorithm is null where nothing serves the call
  std::string decided;                // what the choice rests on: a sentence
  std::vector<Candidate> candidates;  // the chosen one first, then by predicted time
  std::vector<Excluded> excluded;
};

// Of what plan(call, view, stairs.machine(), tuning, authorities, algorithms(), most) chooses from.
Explanation explain(const Call& call, const View& view, const CostStairs& stairs, const Tuning& tuning,
                    const Authorities& authorities = {}, const ChunksMax& most = nullptr);

// From so many elements on, up to the next one, calls are planned so.
struct Crossover {
  Count count = 0;
  Plan plan;
  Cost predicted_ns = 0;
};
// By algorithm and protocol, for calls of 1 to `most` elements: looked for between sizes that double, the call's own
// and those at which lists and entries begin and end, where the choices differ, by bisection. The first is that of 1.
std::vector<Crossover> crossovers(Call call, const View& view, CostModels models, const Tuning& tuning, Count most,
                                  const Authorities& authorities = {}, const ChunksMax& chunks = nullptr);

}  // namespace gccl
