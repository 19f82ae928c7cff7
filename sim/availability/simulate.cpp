#include <algorithm>
#include <cmath>
#include <queue>

#include "sim/availability/study.hpp"
#include "sim/fault/virtual_time.hpp"

namespace gccl::sim {
namespace {

constexpr double kDay = 86400;

double exponential(Chance& chance, double mean) {
  return -std::log((double(chance.next() >> 11) + 0.5) * 0x1p-53) * mean;
}

// One job from its beginning to the end of the study. Time is spent in one way at a time, by all nodes of the job.
class Job {
 public:
  Job(const AvailabilityStudy& s, std::uint64_t cards, AvailabilityPolicy policy, std::uint64_t spares, double interval,
      std::uint64_t seed)
      : s_(s), policy_(policy), interval_(interval), nodes_(cards / s.cards_per_node), chance_(seed) {
    for (const FailureRates::Cause& c : s.rates.causes)
      rate_ += (c.per_card_day * double(s.cards_per_node) + c.per_node_day) / kDay;
    active_ = nodes_;
    spares_ = policy == AvailabilityPolicy::shrink ? 0 : spares;
  }

  void run() {
    const double end = s_.days * kDay;
    while (now_ < end) {
      const double failure = exponential(chance_, 1 / (rate_ * double(active_)));
      const double repaired = repairs_.empty() ? 1e300 : repairs_.top() - now_;
      const bool returns = policy_ != AvailabilityPolicy::restart && active_ < nodes_ && repaired < failure;
      const double span = std::min({failure, end - now_, returns ? repaired : 1e300});
      work(span);
      take_back();
      if (now_ >= end) break;
      if (returns) continue;  // memoryless: the time until the next failure is drawn anew
      ++failures_;
      repairs_.push(now_ + s_.repair);
      policy_ == AvailabilityPolicy::restart ? restart(end) : go_on(end);
    }
    const double total = now_ * double(nodes_);
    for (double* part : {&kept_, &writing_, &lost_, &down_, &waiting_, &missing_}) *part /= total;
  }

  double kept_ = 0, writing_ = 0, lost_ = 0, down_ = 0, waiting_ = 0, missing_ = 0;  // node-seconds; then parts of all
  std::uint64_t failures_ = 0;
  double now_ = 0;

 private:
  // Works and writes checkpoints. Where the job restarts, what came after the last one is not kept.
  void work(double span) {
    const double period = interval_ + s_.write;
    const double nodes = double(active_);
    missing_ += span * double(nodes_ - active_);
    if (policy_ != AvailabilityPolicy::restart) {
      kept_ += span * interval_ / period * nodes;
      writing_ += span * s_.write / period * nodes;
    } else {
      const double whole = std::floor(span / period);
      kept_ += whole * interval_ * nodes;
      writing_ += whole * s_.write * nodes;
      lost_ += (span - whole * period) * nodes;
    }
    now_ += span;
    unbroken_ += span;
  }
  void take_back() {
    while (!repairs_.empty() && repairs_.top() <= now_) {
      repairs_.pop();
      active_ < nodes_ ? ++active_ : ++spares_;
    }
  }
  // A failure during the restart begins it anew.
  void restart(double end) {
    for (;;) {
      if (spares_ > 0) {
        --spares_;
      } else {  // nothing goes on before a node is back
        const double until = std::min(std::max(repairs_.top(), now_), end);
        waiting_ += (until - now_) * double(nodes_);
        now_ = until;
        if (now_ >= end) return;
        repairs_.pop();
      }
      take_back();
      const double takes = s_.detection + s_.restart, failure = exponential(chance_, 1 / (rate_ * double(nodes_)));
      const double spent = std::min({takes, failure, end - now_});
      down_ += spent * double(nodes_);
      now_ += spent;
      if (failure >= takes || now_ >= end) return;
      ++failures_;
      repairs_.push(now_ + s_.repair);
    }
  }
  // The others go on, with a spare where there is one.
  void go_on(double end) {
    const double half_a_step = std::min(s_.step / 2, unbroken_) * interval_ / (interval_ + s_.write) * double(active_);
    unbroken_ = 0;
    lost_ += half_a_step;
    kept_ -= half_a_step;
    if (spares_ > 0)
      --spares_;
    else if (active_ > 1)
      --active_;
    const double spent = std::min(s_.detection + s_.shrink, end - now_);
    down_ += spent * double(nodes_);
    now_ += spent;
  }

  const AvailabilityStudy& s_;
  const AvailabilityPolicy policy_;
  const double interval_;
  const std::uint64_t nodes_;
  Chance chance_;
  double unbroken_ = 0;  // worked since the last failure
  double rate_ = 0;      // of failures of a node, per second
  std::uint64_t active_ = 0, spares_ = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs_;  // when nodes are back
};

}  // namespace

double daly_goodput(double interval, double write, double restart, double mttf) {
  return interval / (mttf * std::exp(restart / mttf) * std::expm1((interval + write) / mttf));
}
double young_interval(double write, double mttf) { return std::sqrt(2 * write * mttf); }
double daly_interval(double write, double mttf) {
  if (write >= 2 * mttf) return mttf;
  const double x = std::sqrt(write / (2 * mttf));
  return std::sqrt(2 * write * mttf) * (1 + x / 3 + x * x / 9) - write;
}

std::vector<AvailabilityOutcome> simulate(const AvailabilityStudy& s) {
  std::vector<AvailabilityOutcome> all;
  for (const std::uint64_t cards : s.cards)
    for (const AvailabilityPolicy policy : s.policies)
      for (const std::uint64_t spares : s.spares) {
        if (policy == AvailabilityPolicy::shrink && spares != s.spares.front()) continue;
        for (const double interval : s.intervals) {
          AvailabilityOutcome o{.cards = cards,
                                .policy = policy,
                                .spares = policy == AvailabilityPolicy::shrink ? 0 : spares,
                                .interval = interval};
          double squares = 0, time = 0;
          std::uint64_t failures = 0;
          for (unsigned r = 0; r < s.replicas; ++r) {
            Job job(s, cards, policy, spares, interval, splitmix::hash(s.seed * 1'000'003 + all.size() * 10'007 + r));
            job.run();
            const double n = s.replicas;
            o.goodput += job.kept_ / n;
            squares += job.kept_ * job.kept_ / n;
            o.lowest = std::min(o.lowest, job.kept_);
            o.highest = std::max(o.highest, job.kept_);
            o.writing += job.writing_ / n;
            o.lost += job.lost_ / n;
            o.down += job.down_ / n;
            o.waiting += job.waiting_ / n;
            o.missing += job.missing_ / n;
            failures += job.failures_;
            time += job.now_;
          }
          o.error = std::sqrt(std::max(0.0, squares - o.goodput * o.goodput) / std::max(1.0, double(s.replicas) - 1));
          o.mttf = failures ? time / double(failures) : 0;
          // The formula knows no waiting for repairs.
          if (policy == AvailabilityPolicy::restart && o.waiting == 0 && failures > 0) {
            double rate = 0;
            for (const FailureRates::Cause& c : s.rates.causes)
              rate += (c.per_card_day * double(cards) + c.per_node_day * double(cards / s.cards_per_node)) / kDay;
            o.daly = daly_goodput(interval, s.write, s.detection + s.restart, 1 / rate);
          }
          all.push_back(o);
        }
      }
  return all;
}

}  // namespace gccl::sim
