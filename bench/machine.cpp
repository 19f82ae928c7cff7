// What this machine's two first cores can do at this moment: the round trip of a cache line between them, and the
// memory bandwidth of both together. bench/compare asks for it beside the points that it bounds. Commands on standard
// input, answers on standard output:
//
//   roundtrip      -> roundtrip BEST_NS MEDIAN_NS
//     One line that two threads write in turn, 15 times 2,000 round trips.
//   memory BYTES   -> memory NAME:STREAMED:TRAFFIC_BYTES:BEST_US:MEDIAN_US ...
//     copy (c = a) and triad (c = a + 3 b), each thread over its own arrays of BYTES; and allreduce: the least that an
//     all-reduce of BYTES between two ranks must do, with every buffer in reach of both. Each thread takes one half: it
//     reads both inputs' half once, and writes the sum to both outputs' half. Each with stores that bypass the caches
//     (STREAMED 1; TRAFFIC counts what is read and written) and with ordinary ones (0; TRAFFIC counts every line
//     written twice, since it is read for ownership first).
#include <sched.h>
#include <sys/mman.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The processors this process may use, at most two.
std::vector<int> cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  return found;
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Runs body(0) and body(1) on the two cores; microseconds from the common start to the last end.
double both(const std::vector<int>& cpus, const std::function<void(int)>& body) {
  std::atomic<int> ready{0};
  std::array<double, 2> begin{}, end{};
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&, k] {
      pin(cpus[k]);
      ++ready;
      while (ready < 2) {
      }
      begin[k] = now_us();
      body(k);
      end[k] = now_us();
    });
  for (std::thread& thread : threads) thread.join();
  return std::max(end[0], end[1]) - std::min(begin[0], begin[1]);
}

struct Times {
  double best, median;
};
Times repeated(int times, const std::function<double()>& measure) {
  std::vector<double> t(times);
  std::generate(t.begin(), t.end(), measure);
  std::sort(t.begin(), t.end());
  return {t.front(), t[t.size() / 2]};
}

Times round_trip_ns(const std::vector<int>& cpus) {
  alignas(128) static std::atomic<std::uint32_t> line;
  constexpr std::uint32_t trips = 2000, warmup = 100;
  return repeated(15, [&] {
    line = 0;
    double ns = 0;
    both(cpus, [&](int k) {
      double begin = 0;
      for (std::uint32_t i = 1; i <= trips; ++i) {
        if (k == 0 && i == warmup + 1) begin = now_us();
        if (k == 0) line.store(2 * i - 1, std::memory_order_release);
        const std::uint32_t awaited = k == 0 ? 2 * i : 2 * i - 1;
        while (line.load(std::memory_order_acquire) != awaited) {
        }
        if (k == 1) line.store(2 * i, std::memory_order_release);
      }
      if (k == 0) ns = (now_us() - begin) * 1e3 / (trips - warmup);
    });
    return ns;
  });
}

class Array {
 public:
  explicit Array(std::size_t floats) : bytes_(floats * sizeof(float)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data = static_cast<float*>(p);
    std::fill_n(data, floats, 1.0F);
  }
  ~Array() { munmap(data, bytes_); }
  Array(const Array&) = delete;
  float* data = nullptr;

 private:
  std::size_t bytes_;
};

// Eight floats at once; `count` below is a multiple of eight and arrays begin at a page.
#if defined(__AVX__)
using Vector = __m256;
inline Vector load(const float* p) { return _mm256_load_ps(p); }
inline Vector plus(Vector a, Vector b) { return _mm256_add_ps(a, b); }
template <bool streamed>
inline void store(float* p, Vector v) {
  streamed ? _mm256_stream_ps(p, v) : _mm256_store_ps(p, v);
}
#else
struct Vector {
  float lane[8];
};
inline Vector load(const float* p) {
  Vector v;
  std::copy_n(p, 8, v.lane);
  return v;
}
inline Vector plus(Vector a, Vector b) {
  for (int i = 0; i < 8; ++i) a.lane[i] += b.lane[i];
  return a;
}
template <bool streamed>
inline void store(float* p, Vector v) {
#if defined(__SSE2__)
  if constexpr (streamed) {
    _mm_stream_ps(p, _mm_loadu_ps(v.lane));
    _mm_stream_ps(p + 4, _mm_loadu_ps(v.lane + 4));
    return;
  }
#endif
  std::copy_n(v.lane, 8, p);
}
#endif
inline void stored() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

struct Arrays {
  explicit Arrays(std::size_t floats)
      : a{Array(floats), Array(floats)}, b{Array(floats), Array(floats)}, c{Array(floats), Array(floats)} {}
  std::array<Array, 2> a, b, c;
};

template <bool streamed>
void copy(const Arrays& x, int k, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) store<streamed>(x.c[k].data + i, load(x.a[k].data + i));
  stored();
}
template <bool streamed>
void triad(const Arrays& x, int k, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const Vector b = load(x.b[k].data + i);
    store<streamed>(x.c[k].data + i, plus(load(x.a[k].data + i), plus(b, plus(b, b))));
  }
  stored();
}
// Inputs a[0] and a[1], outputs c[0] and c[1].
template <bool streamed>
void all_reduce(const Arrays& x, int k, std::size_t count) {
  const std::size_t half = count / 16 * 8, begin = k == 0 ? 0 : half, end = k == 0 ? half : count;
  for (std::size_t i = begin; i < end; i += 8) {
    const Vector sum = plus(load(x.a[0].data + i), load(x.a[1].data + i));
    store<streamed>(x.c[0].data + i, sum);
    store<streamed>(x.c[1].data + i, sum);
  }
  stored();
}

void report_memory(const std::vector<int>& cpus, std::size_t bytes) {
  const std::size_t count = std::max<std::size_t>(64, bytes / sizeof(float) / 8 * 8);
  const double size = double(count) * sizeof(float);
  const Arrays x(count);
  struct Kernel {
    const char* name;
    bool streamed;
    double reads, writes;  // in units of `size`, of both threads together
    void (*run)(const Arrays&, int, std::size_t);
  };
  const Kernel kernels[] = {
      {"copy", true, 2, 2, copy<true>},
      {"copy", false, 2, 2, copy<false>},
      {"triad", true, 4, 2, triad<true>},
      {"triad", false, 4, 2, triad<false>},
      {"allreduce", true, 2, 2, all_reduce<true>},
      {"allreduce", false, 2, 2, all_reduce<false>},
  };
  std::printf("memory");
  for (const Kernel& kernel : kernels) {
    const Times t = repeated(7, [&] { return both(cpus, [&](int k) { kernel.run(x, k, count); }); });
    const double traffic = (kernel.reads + kernel.writes * (kernel.streamed ? 1 : 2)) * size;
    std::printf(" %s:%d:%.0f:%.2f:%.2f", kernel.name, kernel.streamed, traffic, t.best, t.median);
  }
  std::printf("\n");
}

}  // namespace

int main() {
  const std::vector<int> cpus = cores();
  if (cpus.size() < 2) return std::fprintf(stderr, "bench_machine: needs two processors\n"), 2;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    std::size_t bytes = 0;
    words >> command;
    if (command == "roundtrip") {
      const Times ns = round_trip_ns(cpus);
      std::printf("roundtrip %.1f %.1f\n", ns.best, ns.median);
    } else if (command == "memory" && words >> bytes && bytes > 0) {
      report_memory(cpus, bytes);
    } else {
      return std::fprintf(stderr, "bench_machine: \"%s\"; roundtrip or memory BYTES was expected\n", line.c_str()), 2;
    }
    std::fflush(stdout);
  }
}
