// GCCL_AVG as docs/api.md defines it: the sum in the elements' own type, then one division. And what an all-reduce
// promises about NaNs. The oracle is integer arithmetic of 128 bits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

__extension__ typedef __int128 Wide;

std::vector<Job> jobs() {
  return {{.size = 2, .backends = "shm"},
          {.size = 3, .backends = "shm"},
          {.size = 3, .backends = "tcp"},
          {.size = 4, .backends = "shm", .environment = {{"GCCL_ALGORITHM", "allreduce=recursive_doubling"}}},
          {.size = 3, .backends = "shm", .environment = {{"GCCL_ALGORITHM", "allreduce=ring"}}}};
}

// What rank r contributes: limits, neighbours of limits, small numbers of both signs.
template <class T>
std::vector<T> contributed(int r) {
  using L = std::numeric_limits<T>;
  const std::vector<T> all = {L::max(), L::min(), T(100),          T(200),          T(-3), T(-4),
                              T(0),     T(1),     T(L::max() - 1), T(L::min() + 1), T(-1), T(7)};
  std::vector<T> mine(64);
  for (std::size_t i = 0; i < mine.size(); ++i)
    mine[i] = i < 12 ? all[i] : all[(i * 5 + std::size_t(r) * (i + 3)) % all.size()];
  return mine;
}

// The sum of all modulo 2^bits, as the type reads it, divided toward zero.
template <class T>
T mean(const std::vector<T>& values) {
  Wide sum = 0;
  for (const T v : values) sum += Wide(v);
  const Wide modulus = Wide(1) << (8 * sizeof(T));
  sum = (sum % modulus + modulus) % modulus;
  if (std::is_signed_v<T> && sum >= modulus / 2) sum -= modulus;
  return T(sum / Wide(values.size()));
}

template <class T>
void check_integers(GCCL_Comm world, int size, int rank, GCCL_Dtype dtype) {
  const std::vector<T> in = contributed<T>(rank);
  std::vector<T> out(in.size());
  RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), in.size(), dtype, GCCL_AVG, world));
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::vector<T> column;
    for (int r = 0; r < size; ++r) column.push_back(contributed<T>(r)[i]);
    if (out[i] != mean(column))
      report("type " + std::to_string(dtype) + ", element " + std::to_string(i) + ": " + std::to_string(out[i]) +
             ", due " + std::to_string(mean(column)));
  }
}

TEST_CASE("the average of integers is their wrapped sum divided toward zero") {
  CHECK(mean<std::int8_t>({100, 100}) == -28);  // as docs/api.md says
  CHECK(mean<std::uint8_t>({200, 200}) == 72);
  for (const Job& job : jobs())
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      check_integers<std::int8_t>(world, job.size, rank, GCCL_INT8);
      check_integers<std::uint8_t>(world, job.size, rank, GCCL_UINT8);
      check_integers<std::int16_t>(world, job.size, rank, GCCL_INT16);
      check_integers<std::uint16_t>(world, job.size, rank, GCCL_UINT16);
      check_integers<std::int32_t>(world, job.size, rank, GCCL_INT32);
      check_integers<std::uint32_t>(world, job.size, rank, GCCL_UINT32);
      check_integers<std::int64_t>(world, job.size, rank, GCCL_INT64);
      check_integers<std::uint64_t>(world, job.size, rank, GCCL_UINT64);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("the average of floats is one division of their sum, which may overflow") {
  for (const Job& job : jobs())
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      // 60000, 1, 1.001 in float16.
      const std::uint16_t in[3] = {0x7b53, 0x3c00, 0x3c01};
      std::uint16_t out[3] = {};
      RANK_SUCCESS(GCCL_Allreduce(in, out, 3, GCCL_FLOAT16, GCCL_AVG, world));
      RANK_CHECK(out[0] == 0x7c00);  // infinite
      RANK_CHECK(out[1] == 0x3c00);
      const float f[2] = {3e38f, float(rank)};
      float g[2] = {};
      RANK_SUCCESS(GCCL_Allreduce(f, g, 2, GCCL_FLOAT32, GCCL_AVG, world));
      RANK_CHECK(std::isinf(g[0]));
      RANK_CHECK(g[1] == float(job.size * (job.size - 1) / 2) / float(job.size));
      const double d = 3e38;
      double e = 0;
      RANK_SUCCESS(GCCL_Allreduce(&d, &e, 1, GCCL_FLOAT64, GCCL_AVG, world));
      RANK_CHECK(std::abs(e - 3e38) < 1e24);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("where a result is a NaN it is one on every rank; everything else has the same bits") {
  constexpr std::size_t kCount = 4096;
  for (const Job& job : jobs())
    for (const GCCL_Op op : {GCCL_SUM, GCCL_PROD, GCCL_MAX, GCCL_MIN})
      check(job, [&](int rank) {
        GCCL_Comm world = begin();
        std::vector<float> in(kCount), out(kCount), all(kCount * std::size_t(job.size));
        for (std::size_t i = 0; i < kCount; ++i) {
          in[i] = float(std::sin(double(i) * (rank + 1))) * 1.1f;
          // NaNs of another sign and payload on each rank, on one rank, or on several.
          const bool nan = i % 7 == 0 && (i % std::size_t(job.size) == std::size_t(rank) || i % 14 == 0);
          const std::uint32_t bits = 0x7fc00000u | (rank % 2 ? 0x80000000u : 0u) | std::uint32_t(rank * 64 + 1);
          if (nan) std::memcpy(&in[i], &bits, sizeof bits);
        }
        RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), kCount, GCCL_FLOAT32, op, world));
        RANK_SUCCESS(GCCL_Allgather(out.data(), all.data(), kCount, GCCL_FLOAT32, world));
        int wrong = 0;
        for (std::size_t i = 0; i < kCount; ++i)
          for (int r = 0; r < job.size; ++r) {
            const float theirs = all[std::size_t(r) * kCount + i];
            const bool due = i % 7 == 0;  // some rank contributes one
            if (std::isnan(theirs) != due) ++wrong;
            if (!due && std::memcmp(&theirs, &out[i], sizeof theirs) != 0) ++wrong;
          }
        if (wrong) report(std::to_string(wrong) + " elements are wrong for operation " + std::to_string(op));
        RANK_SUCCESS(GCCL_Finalize());
      });
}

}  // namespace
