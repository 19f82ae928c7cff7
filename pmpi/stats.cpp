#include "pmpi/stats.hpp"

#include <atomic>
#include <cstdio>

#include "pmpi/gccl_pmpi.h"

namespace gccl::pmpi {
namespace {

constexpr int kFunctions = int(Function::count), kReasons = int(Reason::count);
std::atomic<std::uint64_t> calls[kFunctions][kReasons];

constexpr const char* kNames[kFunctions] = {"MPI_Allgather",
                                            "MPI_Iallgather",
                                            "MPI_Allgatherv",
                                            "MPI_Iallgatherv",
                                            "MPI_Allreduce",
                                            "MPI_Iallreduce",
                                            "MPI_Alltoall",
                                            "MPI_Ialltoall",
                                            "MPI_Alltoallv",
                                            "MPI_Ialltoallv",
                                            "MPI_Alltoallw",
                                            "MPI_Ialltoallw",
                                            "MPI_Barrier",
                                            "MPI_Ibarrier",
                                            "MPI_Bcast",
                                            "MPI_Ibcast",
                                            "MPI_Gather",
                                            "MPI_Igather",
                                            "MPI_Reduce",
                                            "MPI_Ireduce",
                                            "MPI_Reduce_scatter",
                                            "MPI_Ireduce_scatter",
                                            "MPI_Reduce_scatter_block",
                                            "MPI_Ireduce_scatter_block",
                                            "MPI_Scatter",
                                            "MPI_Iscatter"};

constexpr const char* kReasonTexts[kReasons] = {nullptr,
                                                "wrong argument",
                                                "intercommunicator",
                                                "ranks not connected",
                                                "non-blocking, before the first blocking collective",
                                                "operation not defined on this type",
                                                "non-blocking, with an operation that GCCL does not compute",
                                                "element too large for a user's operation",
                                                "too large for an operation that does not commute",
                                                "MPI not started by MPI_Init, or ended"};

}  // namespace

const char* name(Function function) { return kNames[int(function)]; }
const char* text(Reason reason) { return kReasonTexts[int(reason)]; }

void count(Function function, Reason reason) {
  calls[int(function)][int(reason)].fetch_add(1, std::memory_order_relaxed);
}

void print_stats() {
  std::uint64_t answered = 0, left = 0;
  for (auto& function : calls)
    for (int r = 0; r < kReasons; ++r) (r == 0 ? answered : left) += function[r].load(std::memory_order_relaxed);
  std::fprintf(stderr, "gccl_pmpi: rank 0: %llu collective calls answered by GCCL, %llu left to MPI\n",
               static_cast<unsigned long long>(answered), static_cast<unsigned long long>(left));
  for (int f = 0; f < kFunctions; ++f)
    for (int r = 0; r < kReasons; ++r)
      if (const auto n = static_cast<unsigned long long>(calls[f][r].load(std::memory_order_relaxed)); n > 0)
        std::fprintf(stderr, "gccl_pmpi:   %-26s %12llu %s%s\n", kNames[f], n,
                     r == 0 ? "GCCL" : "MPI: ", r == 0 ? "" : kReasonTexts[r]);
}

}  // namespace gccl::pmpi

extern "C" int GCCL_PMPI_stats(GCCL_PMPI_Count* counts, int max) {
  using namespace gccl::pmpi;
  int n = 0;
  for (int f = 0; f < kFunctions; ++f)
    for (int r = 0; r < kReasons; ++r) {
      const std::uint64_t calls_here = calls[f][r].load(std::memory_order_relaxed);
      if (calls_here == 0) continue;
      if (n < max) counts[n] = {kNames[f], kReasonTexts[r], calls_here};
      ++n;
    }
  return n;
}
