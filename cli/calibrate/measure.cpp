#include "cli/calibrate/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl::calibrate {
namespace {

using bench::Job;
using Clock = std::chrono::steady_clock;

// From fewer than six samples the least and the greatest hold the median with less than 95 %.
constexpr std::size_t kRoundsLeast = 6, kRoundsMost = 2000;
constexpr double kBatchNs = 150'000;  // much shorter than a scheduler's slice, so that few samples meet its end
constexpr int kBatchFirst = 4, kBatchMost = 256;
constexpr int kWarmUps = 2;
constexpr int kBurstLeast = 8, kBurstMost = 24;

template <class F>
double timed_ns(F f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

void carry_out(Job& group, Collective kind, const char* algorithm, double bytes, Rank root, Buffers& b) {
  const Call call{.kind = kind, .count = Count(bytes), .root = root, .in_place = kind == Collective::broadcast};
  const Status s = group.run(find_algorithm(kind, algorithm), call, Dtype::u8, Reduction::sum, b.input(), b.output(),
                             {.shares = 1, .lanes = 1, .window = 8});
  group.hold(s);
}

void send_to_all(Job& group, double bytes, Rank from, Buffers& b) {
  carry_out(group, Collective::broadcast, "direct", bytes, from, b);
}
void take_from_all(Job& group, double bytes, Buffers& b) {
  carry_out(group, Collective::gather, "linear", bytes, 0, b);
}

// Calls round(most), which adds a sample to each curve and repeats nothing more than `most` times for it, until the
// time is over. Rank 0 decides for `group`: where other work keeps the ranks from running together, a message takes as
// long as a scheduler's turn, so samples are of few messages until rounds turn out to be short.
template <class F>
void rounds(Job& group, double seconds, F round) {
  enum Verdict { go_on, more, fewer, stop };
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double took = seconds;
  int most = kBatchFirst;
  for (std::size_t done = 0; done < kRoundsMost; ++done) {
    Verdict verdict = go_on;
    if (group.rank() == 0) {
      if (done >= kRoundsLeast && Clock::now() >= end)
        verdict = stop;
      else if (took < seconds / 40)
        verdict = more;
      else if (done > 0 && took > seconds / 10)
        verdict = fewer;
    }
    const int agreed = int(group.max_over_ranks(double(int(verdict))));
    if (agreed == stop) return;
    if (agreed == more) most = std::min(2 * most, kBatchMost);
    if (agreed == fewer) most = std::max(most / 4, 1);
    took = timed_ns([&] { round(most); }) / 1e9;
  }
}

sim::Curve curve_of(const Job& group, const std::vector<double>& amounts) {
  return group.rank() == 0 ? sim::Curve{amounts, std::vector<std::vector<double>>(amounts.size())} : sim::Curve{};
}
void add_sample(sim::Curve& curve, std::size_t i, double ns) {
  if (!curve.ns.empty()) curve.ns[i].push_back(std::max(ns, 1.0));
}

// How often to repeat what takes so long, the same on all ranks.
int batch_of(Job& group, double ns) {
  return int(group.max_over_ranks(group.rank() == 0 ? std::clamp(kBatchNs / ns, 1.0, double(kBatchMost)) : 0));
}

// From one call to the next, of a burst: a longer one less a shorter one, so that beginning and end do not count.
template <class F>
double gap_ns(Job& group, int most, F call) {
  const auto burst = [&](int calls) {
    group.barrier();
    return timed_ns([&] {
      for (int i = 0; i < calls; ++i) call();
      group.barrier();
    });
  };
  const int calls = std::clamp(most, kBurstLeast, kBurstMost), few = calls / 4;
  const double beginning = burst(few);
  return (burst(calls) - beginning) / (calls - few);
}

}  // namespace

sim::Curve ping_pong(Job& group, Buffers& buffers, const std::vector<double>& bytes, double seconds, Job* pairs) {
  Job& all = pairs ? *pairs : group;
  sim::Curve curve = curve_of(all, bytes);
  const auto once = [&](double size) {
    send_to_all(group, size, 0, buffers);
    send_to_all(group, size, 1, buffers);
  };
  std::vector<int> batch;
  for (const double size : bytes) {
    double least = timed_ns([&] { once(size); });
    for (int i = 0; i < kWarmUps; ++i) least = std::min(least, timed_ns([&] { once(size); }));
    batch.push_back(batch_of(all, least));
  }
  rounds(all, seconds, [&](int most) {
    // What a round begins with takes 0.1 ms longer over TCP than it does later in the round.
    for (int n = 0; n < std::min(batch[0], most); ++n) once(bytes[0]);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const int times = std::min(batch[i], most);
      if (batch[i] > 1) once(bytes[i]);  // both ranks are awake
      if (pairs) pairs->barrier();
      const double ns = timed_ns([&] {
        for (int n = 0; n < times; ++n) once(bytes[i]);
      });
      add_sample(curve, i, ns / (2 * times));
    }
  });
  return curve;
}

Fans fans(const std::vector<Job*>& groups, Job& widest, Buffers& buffers, double bytes_short, double bytes_long,
          double seconds) {
  std::vector<double> peers;
  for (Job* g : groups) peers.push_back(g ? g->ranks() - 1 : 0);  // rank 0 of the widest is in all of them
  Fans f{curve_of(widest, peers), curve_of(widest, peers), curve_of(widest, peers), curve_of(widest, peers)};
  rounds(widest, seconds, [&](int most) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i]) continue;
      Job& g = *groups[i];
      const auto add = [&](double bytes, sim::Curve& out, sim::Curve& in) {
        add_sample(out, i, gap_ns(g, most, [&] { send_to_all(g, bytes, 0, buffers); }));
        add_sample(in, i, gap_ns(g, most, [&] { take_from_all(g, bytes, buffers); }));
      };
      add(bytes_short, f.out, f.in);
      add(bytes_long, f.out_long, f.in_long);
    }
  });
  return f;
}

Rates rates(Job& group, Buffers& buffers, const std::vector<double>& bytes, double seconds) {
  Rates r{curve_of(group, bytes), curve_of(group, bytes)};
  Elements sum;
  group.hold(elements_of(GCCL_FLOAT32, GCCL_SUM, &sum));
  const auto combine = [&](double size) {
    sum.combine(buffers.input(), buffers.input(), buffers.output(), Count(size) / sizeof(float));
  };
  const auto copy = [&](double size) { std::memcpy(buffers.input(), buffers.output(), std::size_t(size)); };
  const auto sample = [&](sim::Curve& curve, std::size_t i, const auto& work) {
    work(bytes[i]);
    const double once = std::max(timed_ns([&] { work(bytes[i]); }), 1.0);
    const int batch = int(std::clamp(kBatchNs / once, 1.0, double(kBatchMost)));
    const double ns = timed_ns([&] {
      for (int n = 0; n < batch; ++n) work(bytes[i]);
    });
    add_sample(curve, i, ns / batch);
  };
  rounds(group, seconds, [&](int) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sample(r.combine, i, combine);
      sample(r.copy, i, copy);
    }
  });
  return r;
}

}  // namespace gccl::calibrate
