// Backends as plug-ins: the sample of examples/backend_sample at work, and plug-ins that are none.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

Job over(const std::string& backends, int size) {
  return {.size = size, .backends = backends, .environment = {{"GCCL_BACKEND_PATH", "/nowhere:" GCCL_TEST_PLUGINS}}};
}

TEST_CASE("the sample plug-in carries every collective, in addition to and instead of the built-in backends") {
  std::vector<Job> jobs = {over("sample", 1), over("sample", 2), over("sample", 3), over("sample", 5)};
  jobs.push_back(over("sample,tcp", 4));
  jobs.back().nodes = {0, 1, 0, 1};
  for (const Job& job : jobs)
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      if (!world) return;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &c));
      Random shared(std::uint64_t(job.size));
      for (int round = 0; round < 10 && !any_reported(); ++round) {
        std::vector<std::unique_ptr<RankCall>> calls;
        std::vector<GCCL_Request> requests;
        for (int i = 0; i < 15; ++i) {
          const bool reversed = shared.below(2);
          const CallCase x = random_case(shared, job.size, 300000);
          calls.push_back(std::make_unique<RankCall>(x, reversed ? job.size - 1 - rank : rank, job.size));
          if (shared.below(3) == 0) {
            RANK_SUCCESS(calls.back()->run(reversed ? c : world));
          } else {
            requests.push_back(GCCL_REQUEST_NULL);
            RANK_SUCCESS(calls.back()->start(reversed ? c : world, &requests.back()));
          }
        }
        RANK_SUCCESS(GCCL_Waitall(int(requests.size()), requests.data()));
        for (const auto& call : calls)
          if (const std::string wrong = call->verify(); !wrong.empty()) report(wrong);
      }
      for (const Kind kind : {Kind::allreduce, Kind::alltoall, Kind::broadcast}) {
        RankCall large({.kind = kind, .count = 1000003}, rank, job.size);
        RANK_SUCCESS(large.run(world));
        if (const std::string wrong = large.verify(); !wrong.empty()) report(wrong);
      }
      RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("over the sample plug-in, different calls, aborts and deaths are everybody's errors") {
  Running running(over("sample", 3), [](int rank) {
    GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
    float x[8] = {}, y[8] = {};
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
    GCCL_Result result = GCCL_Allreduce(x, y, rank == 1 ? 5 : 4, GCCL_FLOAT32, GCCL_SUM, c);
    for (int i = 0; i < 3 && result == GCCL_SUCCESS; ++i) result = GCCL_Barrier(c);
    RANK_CHECK(result == GCCL_ERR_MISMATCH);
    RANK_CHECK(says("of 5 x f32"));
    GCCL_Comm_free(&c);
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
    if (rank == 1) RANK_SUCCESS(GCCL_Abort(c, 77));
    RANK_CHECK(GCCL_Recv(x, 1, GCCL_FLOAT32, (rank + 1) % 3, c) == GCCL_ERR_ABORTED);
    RANK_CHECK(says("77"));
    GCCL_Comm_free(&c);
    ready(world);
    while (rank == 1) ::pause();
    RANK_CHECK(GCCL_Allreduce(x, y, 4, GCCL_FLOAT32, GCCL_SUM, world) == GCCL_ERR_PEER_LOST);
    RANK_CHECK(says("rank 1"));
    GCCL_Finalize();
  });
  CHECK(running.await_ready(3));
  running.kill(1, SIGKILL);
  const std::vector<End> ends = running.wait();
  CHECK_MESSAGE((ends[0].good() && ends[2].good() && ends[1].signal == SIGKILL), texts(ends));
}

TEST_CASE("plug-ins are found beside a library whose own folder is called gccl, as add_subdirectory() makes it") {
  Dl_info library{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&GCCL_Init), &library) != 0);
  const std::filesystem::path plugin = std::filesystem::path(GCCL_TEST_PLUGINS) / "libgccl_backend_sample.so";
  for (const std::string in : {"gccl", "gccl/gccl", "gccl/lib/gccl", "lib/gccl"}) {
    CAPTURE(in);
    const gccl::test::Folder folder;
    const std::filesystem::path root = folder.path, of_library = root / (in[0] == 'g' ? "gccl" : "lib");
    std::filesystem::create_directories(of_library);
    std::filesystem::create_directories(root / in);
    std::filesystem::copy_file(library.dli_fname, of_library / "libgccl.so");
    std::filesystem::copy_file(plugin, root / in / plugin.filename());
    check({.size = 1, .backends = "sample"}, [&](int) {
      void* const copy = ::dlopen((of_library / "libgccl.so").c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!copy) return report(::dlerror());
      const auto init = reinterpret_cast<decltype(&GCCL_Init)>(::dlsym(copy, "GCCL_Init"));
      const auto text = reinterpret_cast<decltype(&GCCL_Last_error)>(::dlsym(copy, "GCCL_Last_error"));
      const auto finalize = reinterpret_cast<decltype(&GCCL_Finalize)>(::dlsym(copy, "GCCL_Finalize"));
      GCCL_Comm world = GCCL_COMM_NULL;
      if (init(&world, nullptr) != GCCL_SUCCESS) return report(text());
      RANK_SUCCESS(finalize());
    });
  }
}

TEST_CASE("a plug-in that cannot be used is an error that says why") {
  const std::filesystem::path junk = std::filesystem::path(GCCL_TEST_PLUGINS) / "libgccl_backend_junk.so";
  std::ofstream(junk) << "this is no library\n";
  const auto fails = [](const std::string& backends, GCCL_Result due, const std::vector<std::string>& words) {
    check(over(backends, 1), [&](int) {
      GCCL_Comm world = GCCL_COMM_NULL;
      const GCCL_Result result = GCCL_Init(&world, nullptr);
      RANK_CHECK(world == GCCL_COMM_NULL);
      if (result != due) report("GCCL_Init returned " + std::to_string(int(result)) + ": " + GCCL_Last_error());
      for (const std::string& word : words)
        if (!says(word)) report("\"" + std::string(GCCL_Last_error()) + "\" does not say \"" + word + "\"");
    });
  };
  fails("wrong_abi", GCCL_ERR_NOT_SUPPORTED, {"libgccl_backend_wrong_abi.so", "interface 7", "has 1"});
  fails("no_entry", GCCL_ERR_NOT_SUPPORTED, {"libgccl_backend_no_entry.so", "GCCL_Backend_entry_v1"});
  fails("incomplete", GCCL_ERR_NOT_SUPPORTED, {"libgccl_backend_incomplete.so", "without close"});
  fails("refuses", GCCL_ERR_DEVICE, {"refuses", "there is no such card"});
  fails("junk", GCCL_ERR_SYSTEM, {"junk", "cannot load"});
  fails("missing", GCCL_ERR_INVALID_ARGUMENT,
        {"\"missing\"", "GCCL_BACKEND_PATH", "no libgccl_backend_missing.so in /nowhere, "});
  fails(",", GCCL_ERR_INVALID_ARGUMENT, {"GCCL_BACKENDS"});
  std::filesystem::remove(junk);
}

}  // namespace
