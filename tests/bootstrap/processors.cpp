// How many processors a process has: by the scheduler's sets, and by control groups as containers have them.
#include "libgccl/base/processors.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

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
  SharedProcessors granted() const { return granted_processors(folder.path / "self", folder.path / "mounted"); }
};

}  // namespace

TEST_CASE("a thread that is bound has the processors it is bound to, and threads bound alike share them") {
  cpu_set_t all, first;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  std::size_t p = 0;
  while (!CPU_ISSET(p, &all)) ++p;
  CPU_ZERO(&first);
  CPU_SET(p, &first);
  const SharedProcessors here = bound_processors();
  CHECK(here.count == std::uint32_t(CPU_COUNT(&all)));
  SharedProcessors bound, again;
  for (SharedProcessors* s : {&bound, &again})
    std::thread([&] {
      sched_setaffinity(0, sizeof first, &first);
      *s = bound_processors();
    }).join();
  CHECK(bound.count == 1);
  CHECK(bound.id == again.id);
  CHECK((bound.id == here.id) == (here.count == 1));
}

TEST_CASE("control groups of version 2: the least of the group's and of those above it, rounded down") {
  const Groups pod("0::/kubepods/pod7/c1\n");
  CHECK(pod.granted().count == kNoLimit);
  pod.put("kubepods/pod7/c1", "cpu.max", "max 100000\n");
  CHECK(pod.granted().count == kNoLimit);
  pod.put("kubepods", "cpu.max", "6400000 100000\n");
  CHECK(pod.granted().count == 64);
  const std::uint64_t above = pod.granted().id;
  pod.put("kubepods/pod7", "cpu.max", "250000 100000\n");
  CHECK(pod.granted().count == 2);
  CHECK(pod.granted().id != above);
  pod.put("kubepods/pod7/c1", "cpu.max", "50000 100000\n");
  CHECK(pod.granted().count == 0);
}

TEST_CASE("a container that sees its own group as the root") {
  const Groups container("0::/\n");
  container.put(".", "cpu.max", "300000 100000\n");
  CHECK(container.granted().count == 3);
}

TEST_CASE("control groups of version 1, mounted with other controllers or alone; paths may be the machine's") {
  const std::string names = "5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n2:cpuset:/docker/ab\n0::/\n";
  for (const std::string& folder : {"cpu,cpuacct", "cpu"})
    for (const std::string& group : {"/docker/ab", ""}) {
      CAPTURE(folder + group);
      const Groups docker(names);
      docker.put(folder + group, "cpu.cfs_period_us", "50000\n");
      docker.put(folder + group, "cpu.cfs_quota_us", "-1\n");
      CHECK(docker.granted().count == kNoLimit);
      docker.put(folder + group, "cpu.cfs_quota_us", "200000\n");
      CHECK(docker.granted().count == 4);
    }
}

TEST_CASE("what is no control group limits nothing") {
  CHECK(granted_processors("/nonexistent", "/nonexistent").count == kNoLimit);
  for (const char* line : {"", "\n", "0", "0:", "0::", ":::", "4:cpu", "4:cpu:", "0::x/y"}) {
    CAPTURE(line);
    const Groups odd(line);
    CHECK(odd.granted().count == kNoLimit);
    odd.put("x", "cpu.max", "100000 0\n");
    odd.put("x/y", "cpu.max", "many\n");
    CHECK(odd.granted().count == kNoLimit);
  }
}
