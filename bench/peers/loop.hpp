// The measuring loop, the same for every peer. bench/compare drives it with lines of text:
//
//   prepare KIND BYTES WARMUP LIMIT_S     -> ready WRONG ESTIMATE_US
//     New buffers, one checked operation, WARMUP timed ones; ESTIMATE_US is the shortest.
//   sample COUNT LIMIT_S REF_NS           -> samples WRONG BEGIN_NS END_NS BEGIN_NS END_NS ...
//   sample COUNT LIMIT_S REF_NS PERIOD_NS
//     COUNT operations, then a checked one; the buffers are freed. Times are CLOCK_MONOTONIC's less REF_NS: one
//     machine, hence one clock for all ranks. A barrier goes before each operation, and BEGIN is read after it. With
//     PERIOD_NS instead, operation k starts everywhere at REF_NS + k*PERIOD_NS, and BEGIN is when the rank was ready
//     for it.
//   quit
//
// Every rank answers for itself, and bench/compare makes one figure of each sample: no figure and no verdict passes
// through the library under test. A rank that is not done after LIMIT_S is ended by SIGALRM. One sample is one
// operation, eight round trips of pingpong, and holds one reading of the clock (its cost is in the greeting).
#pragma once

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peers/control.hpp"
#include "bench/peers/pattern.hpp"
#include "bench/peers/peer.hpp"

namespace gccl::bench {

inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t(1000000000) + t.tv_nsec;
}

// The least time between two readings of the clock.
inline double clock_us() {
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t begin = now_ns();
    least = std::min(least, now_ns() - begin);
  }
  return double(least) / 1e3;
}

// Sleeps for most of the way, then spins, yielding, so that ranks that share a core all get there.
inline void wait_until(std::int64_t at_ns) {
  constexpr std::int64_t spin_ns = 100000;
  if (const std::int64_t wake_ns = at_ns - spin_ns; wake_ns > now_ns()) {
    const timespec t{time_t(wake_ns / 1000000000), long(wake_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  }
  while (now_ns() < at_ns) sched_yield();
}

// Zeroed floats on their own pages.
class Memory {
 public:
  Memory(Peer& peer, std::size_t floats) : peer_(peer), bytes_(std::max<std::size_t>(1, floats) * sizeof(float)) {
    data_ = provided_ = peer.allocate(bytes_);
    if (provided_) return;
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<float*>(p);
  }
  ~Memory() {
    if (provided_)
      peer_.release(provided_);
    else
      munmap(data_, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* data() const { return data_; }

 private:
  Peer& peer_;
  std::size_t bytes_;
  float *data_ = nullptr, *provided_ = nullptr;
};

// One operation of one size.
class Point {
 public:
  Point(Peer& peer, Kind kind, std::size_t bytes)
      : peer_(peer),
        kind_(kind),
        sizes_(sizes_of(kind, bytes, std::size_t(peer.size()))),
        in_(peer, sizes_.in),
        out_(peer, sizes_.out),
        buffers_{in_.data(), out_.data(), sizes_.count},
        run_(peer.bind(kind, buffers_)) {}

  std::size_t wrong_after_one(std::size_t salt) {
    if (peer_.reduces_in_place()) peer_.barrier();  // Gloo returns while it may still send from it
    fill(peer_, kind_, sizes_, buffers_, salt);
    peer_.barrier();
    run_();
    return mismatches(peer_, kind_, buffers_, salt);
  }

  struct Sample {
    std::int64_t begin_ns, end_ns;
  };

  Sample sample() {
    peer_.barrier();
    return run_from(now_ns());
  }

  Sample sample_at(std::int64_t start_ns) {
    const std::int64_t ready_ns = now_ns();
    wait_until(start_ns);
    return run_from(ready_ns);
  }

 private:
  Sample run_from(std::int64_t begin_ns) {
    const int times = kind_ == Kind::pingpong ? 8 : 1;
    for (int i = 0; i < times; ++i) run_();
    return {begin_ns, now_ns()};
  }

  Peer& peer_;
  Kind kind_;
  Sizes sizes_;
  Memory in_, out_;
  Buffers buffers_;
  std::function<void()> run_;
};

// Serves bench/compare until it says quit or is gone. Returns the process's exit status.
inline int serve(Peer& peer, Control& control) {
  char number[64];
  std::snprintf(number, sizeof number, " %.4f", clock_us());
  control.write_line("hello " + std::to_string(peer.rank()) + number);
  std::unique_ptr<Point> point;
  std::string line;
  while (control.read_line(&line)) {
    std::istringstream words(line);
    std::string command, kind_name;
    words >> command;
    if (command == "quit") return 0;
    if (command == "prepare") {
      std::size_t bytes = 0;
      int warmup = 0;
      unsigned limit_s = 0;
      words >> kind_name >> bytes >> warmup >> limit_s;
      const auto kind = kind_named(kind_name);
      if (!words || !kind) break;
      alarm(limit_s);
      point.reset();
      point = std::make_unique<Point>(peer, *kind, bytes);
      const std::size_t wrong = point->wrong_after_one(1);
      std::int64_t shortest_ns = 0;
      for (int i = 0; i < warmup; ++i) {
        const Point::Sample s = point->sample();
        shortest_ns = i == 0 ? s.end_ns - s.begin_ns : std::min(shortest_ns, s.end_ns - s.begin_ns);
      }
      alarm(0);
      std::snprintf(number, sizeof number, "ready %zu %.3f", wrong, double(shortest_ns) / 1e3);
      control.write_line(number);
    } else if (command == "sample") {
      std::size_t count = 0;
      unsigned limit_s = 0;
      std::int64_t ref_ns = 0;
      words >> count >> limit_s >> ref_ns;
      if (!words || !point) break;
      std::int64_t period_ns = 0;
      const bool windowed = bool(words >> period_ns);
      alarm(limit_s);
      std::vector<Point::Sample> samples(count);
      if (!windowed) point->sample();  // the caches have gone cold since `prepare`
      for (std::size_t k = 0; k < count; ++k)
        samples[k] = windowed ? point->sample_at(ref_ns + std::int64_t(k) * period_ns) : point->sample();
      const std::size_t wrong = point->wrong_after_one(2);
      point.reset();
      alarm(0);
      std::string answer = "samples " + std::to_string(wrong);
      for (const Point::Sample& s : samples)
        answer += ' ' + std::to_string(s.begin_ns - ref_ns) + ' ' + std::to_string(s.end_ns - ref_ns);
      control.write_line(std::move(answer));
    } else {
      break;
    }
  }
  std::fprintf(stderr, "bench peer: rank %d: bench/compare is gone, or sent \"%s\"\n", peer.rank(), line.c_str());
  _exit(2);  // the other ranks may be stuck: no orderly end
}

// The value of `--name VALUE`, or "".
inline std::string option(int argc, char** argv, const std::string& name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == "--" + name) return argv[i + 1];
  return "";
}

}  // namespace gccl::bench
