#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "sim/availability/study.hpp"
#include "sim/fault/virtual_time.hpp"

namespace gccl::sim {
namespace {

double exponential(Chance& chance, double mean) {
  return -std::log((double(chance.next() >> 11) + 0.5) * 0x1p-53) * mean;
}

// One job from its beginning to the end of the study. It works, or begins anew after a failure, and each of its nodes
// may fail meanwhile; or it waits, idle, for a node that is repaired.
class Job {
 public:
  Job(const AvailabilityStudy& s, std::uint64_t cards, AvailabilityPolicy policy, std::uint64_t spares, double interval,
      std::uint64_t seed)
      : s_(s),
        policy_(policy),
        interval_(interval),
        nodes_(cards / s.cards_per_node),
        rate_(failures_per_second(s, cards) / double(nodes_)),
        chance_(seed),
        active_(nodes_),
        spares_(policy == AvailabilityPolicy::shrink ? 0 : spares) {}

  void run() {
    const double end = s_.days * kDay;
    while (now_ < end) {
      take_back();
      // Memoryless: the time until the next failure is drawn anew after each event.
      const double failure = !waits() ? exponential(chance_, 1 / (rate_ * double(active_))) : kNever,
                   repaired = repairs_.empty() ? kNever : repairs_.top() - now_,
                   begun = waits() || pause_ == 0 ? kNever : pause_,
                   span = std::min({failure, active_ < nodes_ ? repaired : kNever, begun, end - now_});
      spend(span);
      if (span == failure && now_ < end) fail();
    }
    const double total = now_ * double(nodes_);
    for (double* part : {&kept_, &writing_, &lost_, &down_, &waiting_, &missing_}) *part /= total;
  }

  double kept_ = 0, writing_ = 0, lost_ = 0, down_ = 0, waiting_ = 0, missing_ = 0;  // node-seconds; then parts of all
  double at_risk_ = 0;  // node-seconds of nodes that could have failed
  std::uint64_t failures_ = 0;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  bool waits() const { return active_ < (policy_ == AvailabilityPolicy::restart ? nodes_ : 1); }

  void spend(double span) {
    const double nodes = double(nodes_);
    now_ += span;
    if (waits()) {
      waiting_ += span * nodes;
      return;
    }
    at_risk_ += span * double(active_);
    if (pause_ > 0) {
      down_ += span * nodes;
      pause_ -= span;
      if (pause_ == 0) from_checkpoint_ = false;
    } else {
      missing_ += span * double(nodes_ - active_);
      work(span);
    }
  }
  // Works and writes checkpoints by turns, from where the job is between two of them.
  void work(double span) {
    const double period = interval_ + s_.write, until = since_checkpoint_ + span, whole = std::floor(until / period),
                 rest = until - whole * period;
    const double worked =
        whole * interval_ + std::min(rest, interval_) - std::min(since_checkpoint_, interval_);  // seconds
    kept_ += worked * double(active_);
    writing_ += (whole * s_.write + std::max(rest - interval_, 0.0) - std::max(since_checkpoint_ - interval_, 0.0)) *
                double(active_);
    if (whole > 0) unsaved_ = 0;
    unsaved_ += (whole > 0 ? std::min(rest, interval_) : worked) * double(active_);
    since_checkpoint_ = rest;
    unbroken_ += worked;
  }
  void take_back() {
    while (!repairs_.empty() && repairs_.top() <= now_) {
      repairs_.pop();
      active_ < nodes_ ? ++active_ : ++spares_;
    }
  }
  // A restart takes the last checkpoint, as where the last node is gone. Otherwise the others have the state. What a
  // failure interrupts begins anew.
  void fail() {
    take_back();
    ++failures_;
    repairs_.push(now_ + s_.repair);
    from_checkpoint_ = from_checkpoint_ || policy_ == AvailabilityPolicy::restart || active_ == 1;
    const double gone =
        from_checkpoint_ ? unsaved_ : std::min(std::min(s_.step / 2, unbroken_) * double(active_), unsaved_);
    lost_ += gone;
    kept_ -= gone;
    unsaved_ -= gone;
    unbroken_ = 0;
    since_checkpoint_ = from_checkpoint_ ? 0 : std::min(since_checkpoint_, interval_);
    --active_;
    for (; spares_ > 0 && active_ < nodes_; --spares_) ++active_;
    pause_ = s_.detection + (from_checkpoint_ ? s_.restart : s_.shrink);
    if (pause_ == 0) from_checkpoint_ = false;
  }

  const AvailabilityStudy& s_;
  const AvailabilityPolicy policy_;
  const double interval_;
  const std::uint64_t nodes_;
  const double rate_;  // of failures of a node, per second
  Chance chance_;
  std::uint64_t active_, spares_;
  double now_ = 0;
  double pause_ = 0;              // until the job works again
  bool from_checkpoint_ = false;  // which it then does from there
  double since_checkpoint_ = 0;   // seconds, of work and of writing the next one
  double unsaved_ = 0;            // node-seconds of work since then
  double unbroken_ = 0;           // seconds of work since the last failure
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs_;  // when nodes are back
};

}  // namespace

double failures_per_second(const AvailabilityStudy& s, std::uint64_t cards) {
  double rate = 0;
  for (const FailureRates::Cause& c : s.rates.causes)
    rate += (c.per_card_day * double(cards) + c.per_node_day * double(cards / s.cards_per_node)) / kDay;
  return rate;
}

double daly_goodput(double interval, double write, double restart, double mttf) {
  if (std::isinf(mttf)) return interval / (interval + write);  // the limit
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
          double squares = 0;
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
            o.failures += job.failures_;
            o.at_risk += job.at_risk_ / double(cards / s.cards_per_node);
          }
          o.error = std::sqrt(std::max(0.0, squares - o.goodput * o.goodput) / std::max(1.0, double(s.replicas) - 1));
          // The formula knows no waiting for repairs.
          if (policy == AvailabilityPolicy::restart && o.waiting == 0)
            o.daly = daly_goodput(interval, s.write, s.detection + s.restart, 1 / failures_per_second(s, cards));
          all.push_back(o);
        }
      }
  return all;
}

}  // namespace gccl::sim
