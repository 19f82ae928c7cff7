// Jobs that processes join (rank_job.hpp): the first of its processes start it, the others call GCCL_Join.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/own_entries.hpp"
#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"

namespace ranks::grown {

inline constexpr int kEnoughMs = 60000;  // which nobody waits, unless something is wrong

// The first `members` processes of a job start it, the others join.
struct Grown {
  Job job;
  int members = 2;
  gccl::test::Folder folder;

  Grown(Job j, int starts) : job(std::move(j)), members(starts) {
    if (!job.environment.contains("GCCL_STORE"))
      job.environment["GCCL_STORE"] = "file://" + (folder.path / "store").string();
    job.environment["GCCL_JOIN_TIMEOUT_MS"] = std::to_string(2 * kEnoughMs);
  }
  Grown(const Grown&) = delete;
  bool joins(int process) const { return process >= members; }
};

inline GCCL_Comm begin_of(int members) {
  gccl::test::first_threads();
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = std::atoi(std::getenv("GCCL_RANK"));
  config.size = members;
  GCCL_Comm world = GCCL_COMM_NULL;
  RANK_SUCCESS(GCCL_Init(&world, &config));
  return world;
}

inline GCCL_Comm join() {
  gccl::test::first_threads();
  GCCL_Comm comm = GCCL_COMM_NULL;
  RANK_SUCCESS(GCCL_Join(&comm, nullptr));
  return comm;
}

inline std::set<int> joined_of(GCCL_Comm comm) {
  int count = 0, ranks[16];
  RANK_SUCCESS(GCCL_Comm_get_joined(comm, ranks, 16, &count));
  return {ranks, ranks + std::min(count, 16)};
}

// Each collective with each operation and place it is drawn with, against the definition.
inline void use(GCCL_Comm comm, std::uint64_t seed, int cases = 40) {
  if (!comm) return;
  Random random(seed);
  const int rank = rank_of(comm), size = size_of(comm);
  for (int i = 0; i < cases && !any_reported(); ++i) {
    CallCase c = random_case(random, size, 1 << 16);
    if (std::size_t(i) < std::size(kKinds)) c.kind = kKinds[i];
    if (c.kind != Kind::allreduce && c.kind != Kind::reduce && c.kind != Kind::reduce_scatter &&
        c.kind != Kind::reduce_scatterv)
      c.op = GCCL_SUM;
    const std::string wrong = outcome(c, comm, rank, size, random.below(3) == 0);
    if (!wrong.empty()) report(describe(c, size) + ": " + wrong);
  }
}

// What ranks say of themselves, gathered: each sees the same.
inline void agree_on_numbers(GCCL_Comm comm, int process, std::vector<int> due) {
  if (!comm) return;
  std::vector<std::int32_t> who(std::size_t(size_of(comm)), -1);
  const std::int32_t mine = process;
  RANK_SUCCESS(GCCL_Allgather(&mine, who.data(), 1, GCCL_INT32, comm));
  // Which process that joins gets which of the new numbers is not said.
  std::string text;
  for (const std::int32_t w : who) text += std::to_string(w) + " ";
  std::vector<int> sorted(who.begin(), who.end());
  std::ranges::sort(sorted);
  RANK_CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
  if (who.size() != due.size()) return report("there are processes " + text);
  for (std::size_t r = 0; r < due.size(); ++r)
    if (due[r] >= 0 && who[r] != due[r]) report("rank " + std::to_string(r) + " is not as due: processes " + text);
}

inline void finish() {
  RANK_SUCCESS(GCCL_Finalize());
  RANK_CHECK(gccl::test::comes_to("task", gccl::test::first_threads()));
}

inline void check_grown(const Grown& g, const std::vector<End>& ends, const std::set<int>& killed = {}) {
  for (std::size_t p = 0; p < ends.size(); ++p)
    if (!killed.contains(int(p))) CHECK_MESSAGE(ends[p].good(), describe(g.job) << "\n" << texts(ends));
  CHECK(g.folder.empty());  // no file of the store is left
}

}  // namespace ranks::grown
