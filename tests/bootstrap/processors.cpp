// How many processors a process has: by the scheduler's sets, and by control groups as containers have them.
#include "libgccl/base/processors.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/folder.hpp"

using namespace gccl;

namespace {

constexpr std::uint32_t kNoLimit = UINT32_MAX;

// Control groups as files: what a process is in, and what is mounted.
struct Groups {
  test::Folder folder;

  explicit Groups(const std::string& of_process) { folder.write("self", of_process); }
  void put(const std::string& group, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(folder.path / "mounted" / group);
    folder.write("mounted/" + group + "/" + file, text);
  }
  ProcessorShare share() const { return processor_share(folder.path / "self", folder.path / "mounted"); }
  std::uint32_t granted() const { return share().granted; }
};

}  // namespace

// Bound to these processors, and a group of its own.
ProcessorShare bound_to(std::initializer_list<unsigned> processors) {
  ProcessorShare share;
  for (const unsigned p : processors) share.bound[p / 64] |= std::uint64_t(1) << p % 64;
  return share;
}
int bits(const ProcessorShare& share) {
  int n = 0;
  for (const std::uint64_t word : share.bound) n += std::popcount(word);
  return n;
}

TEST_CASE("a thread that is bound has the processors it is bound to") {
  cpu_set_t all, first;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  std::size_t p = 0;
  while (!CPU_ISSET(p, &all)) ++p;
  CPU_ZERO(&first);
  CPU_SET(p, &first);
  const ProcessorShare here = processor_share();
  CHECK(bits(here) == CPU_COUNT(&all));
  ProcessorShare bound;
  std::thread([&] {
    sched_setaffinity(0, sizeof first, &first);
    bound = processor_share();
  }).join();
  CHECK(bits(bound) == 1);
  CHECK(bound.bound == bound_to({unsigned(p)}).bound);
}

TEST_CASE("processes outnumber processors where some of them find too few, or all of them do") {
  using Shares = std::vector<ProcessorShare>;
  const ProcessorShare a = bound_to({0}), b = bound_to({1}), both = bound_to({0, 1}), far = bound_to({700, 701});
  for (const Shares& fit : {Shares{a}, Shares{a, b}, Shares{a, both}, Shares{both, both}, Shares{a, b, far, far}})
    CHECK_FALSE(outnumber_processors(fit));
  for (const Shares& crowd : {Shares{a, a}, Shares{a, b, both}, Shares{both, both, both}, Shares{a, both, both, far},
                              Shares{far, far, far, a}, Shares{a, a, far}})
    CHECK(outnumber_processors(crowd));
  ProcessorShare limited = bound_to({0, 1, 2, 3}), other = limited;
  limited.group = 7, limited.granted = 2;
  CHECK_FALSE(outnumber_processors(Shares{limited, limited, other, other}));
  CHECK(outnumber_processors(Shares{limited, limited, limited}));
  other.group = 8, other.granted = 0;
  CHECK(outnumber_processors(Shares{other}));
}

TEST_CASE("control groups of version 2: the least of the group's and of those above it, rounded down") {
  const Groups pod("0::/kubepods/pod7/c1\n");
  CHECK(pod.granted() == kNoLimit);
  pod.put("kubepods/pod7/c1", "cpu.max", "max 100000\n");
  CHECK(pod.granted() == kNoLimit);
  pod.put("kubepods", "cpu.max", "6400000 100000\n");
  CHECK(pod.granted() == 64);
  const std::uint64_t above = pod.share().group;
  pod.put("kubepods/pod7", "cpu.max", "250000 100000\n");
  CHECK(pod.granted() == 2);
  CHECK(pod.share().group != above);
  pod.put("kubepods/pod7/c1", "cpu.max", "50000 100000\n");
  CHECK(pod.granted() == 0);
}

TEST_CASE("a container that sees its own group as the root") {
  const Groups container("0::/\n");
  container.put(".", "cpu.max", "300000 100000\n");
  CHECK(container.granted() == 3);
}

TEST_CASE("control groups of version 1, mounted with other controllers or alone; paths may be the machine's") {
  const std::string names = "5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n2:cpuset:/docker/ab\n0::/\n";
  for (const std::string folder : {"cpu,cpuacct", "cpu"})
    for (const std::string group : {"/docker/ab", ""}) {
      CAPTURE(folder + group);
      const Groups docker(names);
      docker.put(folder + group, "cpu.cfs_period_us", "50000\n");
      docker.put(folder + group, "cpu.cfs_quota_us", "-1\n");
      CHECK(docker.granted() == kNoLimit);
      docker.put(folder + group, "cpu.cfs_quota_us", "200000\n");
      CHECK(docker.granted() == 4);
    }
}

TEST_CASE("what is no control group limits nothing") {
  CHECK(processor_share("/nonexistent", "/nonexistent").granted == kNoLimit);
  for (const char* line : {"", "\n", "0", "0:", "0::", ":::", "4:cpu", "4:cpu:", "0::x/y"}) {
    CAPTURE(line);
    const Groups odd(line);
    CHECK(odd.granted() == kNoLimit);
    odd.put("x", "cpu.max", "100000 0\n");
    odd.put("x/y", "cpu.max", "many\n");
    CHECK(odd.granted() == kNoLimit);
  }
}
