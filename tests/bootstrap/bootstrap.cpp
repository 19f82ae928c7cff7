// Jobs that start, in real processes: by every launcher, and what is said where something is missing or wrong.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "libgccl/bootstrap/missing.hpp"
#include "tests/support/child.hpp"
#include "tests/support/meeting.hpp"

using namespace gccl;
using namespace gccl::test;
namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

namespace {

// open_bootstrap() and a few rounds, in a process with these variables; what went wrong, or "".
auto begin_in_child(const Variables& variables, GCCL_Config config = GCCL_CONFIG_INIT, int rank = -1) {
  return InChild([&] {
    clearenv();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    Bootstrap bootstrap;
    Status s = open_bootstrap(&config, rank, &bootstrap);
    if (s.ok()) s = meet(*bootstrap.exchange, bootstrap.rank, bootstrap.size, 2, bootstrap.start_timeout_ms);
    if (s.ok()) s = bootstrap.wrong;
    const std::string t = s.ok() ? "" : std::to_string(s.code()) + " " + s.text();
    return std::vector<char>(t.begin(), t.end());
  });
}
std::string begin_with(const Variables& variables, GCCL_Config config = GCCL_CONFIG_INIT, int rank = -1) {
  const auto text = begin_in_child(variables, config, rank).result();
  return {text.begin(), text.end()};
}

// The same for each rank of a job; `variables_of` gives them theirs.
template <class F>
std::vector<std::string> begin_all(Rank size, F variables_of) {
  using Begun = decltype(begin_in_child({}));
  std::vector<std::unique_ptr<Begun>> ranks;
  for (Rank r = 0; r < size; ++r) ranks.emplace_back(new Begun(begin_in_child(variables_of(r))));
  std::vector<std::string> texts;
  for (const auto& rank : ranks) {
    const auto text = rank->result();
    texts.emplace_back(text.begin(), text.end());
  }
  return texts;
}

}  // namespace

TEST_CASE("the sentence about missing ranks") {
  CHECK(missing_text({3}, 8, 60000) == "rank 3 of 8 did not come within 60 s");
  CHECK(missing_text({3, 5, 6, 7}, 8, 1500) == "ranks 3, 5-7 of 8 did not come within 1.5 s");
  CHECK(ranks_text({1, 2}, 3) == "ranks 1, 2 of 3");
  CHECK(duration_text(200) == "200 ms");
  std::vector<Rank> odd;
  for (Rank r = 1; r < 200; r += 2) odd.push_back(r);
  CHECK(ranks_text(odd, 200) == "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 88 more of 200");
}

TEST_CASE("open_bootstrap: every way to start a job, in real processes") {
  const auto n = [](auto x) { return std::to_string(x); };
  const std::vector<std::string> good(3);
  const std::uint16_t port = free_port();
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"GCCL_RANK", n(r)}, {"GCCL_SIZE", "3"}, {"GCCL_STORE", "tcp://localhost:" + n(port)}};
        }) == good);
  Folder folder;
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"GCCL_RANK", n(r)},
                           {"GCCL_SIZE", "3"},
                           {"GCCL_STORE", "file://" + folder.path.string()},
                           {"GCCL_SECRET", "s"}};
        }) == good);
  CHECK(folder.empty());
  // torchrun on one machine, known by a name that may mean anything; its own store has MASTER_PORT.
  std::uint16_t next = free_port();
  Fd torchruns;
  while (!listen_on(SocketAddress::loopback(std::uint16_t(next - 1)), &torchruns).ok()) next = free_port();
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"RANK", n(r)},
                           {"WORLD_SIZE", "3"},
                           {"LOCAL_RANK", n(r)},
                           {"LOCAL_WORLD_SIZE", "3"},
                           {"MASTER_ADDR", "no-such-host.invalid"},
                           {"MASTER_PORT", n(next - 1)}};
        }) == good);
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"OMPI_COMM_WORLD_RANK", n(r)},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "12.1"},
                           {"XDG_RUNTIME_DIR", folder.path.string()}};
        }) == good);
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"SLURM_PROCID", n(r)},
                           {"SLURM_NTASKS", "3"},
                           {"SLURM_LOCALID", n(r)},
                           {"SLURM_JOB_ID", "9"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_NNODES", "1"},
                           {"XDG_RUNTIME_DIR", folder.path.string()}};
        }) == good);
  CHECK(fs::is_empty(folder.path / ("gccl-" + n(geteuid()))));
  CHECK(begin_with({}) == "");
}

TEST_CASE("begin: what is missing or wrong is named") {
  const Variables pair{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "2"}};
  const auto with = [&](const char* name, std::string value) {
    Variables v = pair;
    v[name] = std::move(value);
    return begin_with(v);
  };
  CHECK(has(begin_with(pair), "4 the job has 2 ranks and no place to meet: set GCCL_STORE"));
  for (const char* bad : {"localhost:1", "http://x:1", "tcp://", "tcp://host", "tcp://host:0", "tcp://:1", "file://x",
                          "file:///", "file:/x"})
    CHECK_MESSAGE(has(with("GCCL_STORE", bad), "expected \"tcp://HOST:PORT\" or \"file:///PATH\""), bad);
  CHECK(has(with("GCCL_STORE", "file:///"), ": the path is missing"));
  CHECK(has(with("GCCL_STORE", "file:x"), "expected \"tcp://HOST:PORT\""));
  CHECK(has(with("GCCL_STORE", "file://x"), ": the path must be absolute"));
  CHECK(has(with("GCCL_STORE", "tcp://host:0"), "expected a port from 1 to 65535"));
  CHECK(has(with("GCCL_STORE", "tcp://10.1.2.3:4"), "set GCCL_SECRET"));
  CHECK(has(begin_with({{"GCCL_STORE", "tcp://localhost:1"}}), "set GCCL_RANK and GCCL_SIZE"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "MASTER_ADDR is not set"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}), "MASTER_PORT is not set"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "65535"}}),
            "MASTER_PORT is \"65535\""));
  const Variables script{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}, {"SLURM_JOB_ID", "9"}};
  Variables step = script, one_machine = script, alone = script;
  step["SLURM_STEP_ID"] = "0";
  one_machine["SLURM_NNODES"] = "1";
  alone["SLURM_NTASKS"] = alone["SLURM_NNODES"] = "1";
  CHECK(has(begin_with(step), "several machines, started by SLURM: set GCCL_STORE"));
  for (const Variables& v : {script, one_machine})
    CHECK(has(begin_with(v), "4 ranks by SLURM's variables, and srun has not started this process (SLURM_STEP_ID"));
  CHECK(begin_with(alone) == "");
  CHECK(has(begin_with({{"GCCL_SECRET_FILE", "/no/such"}}), "GCCL_SECRET_FILE: secret file /no/such: No such file"));
}

TEST_CASE("begin: a rank that does not know where it is comes all the same, to say so to the others") {
  const Folder folder;
  for (const char* name : {"GCCL_LOCAL_RANK", "GCCL_LOCAL_SIZE"}) {
    const auto texts = begin_all(2, [&](Rank r) {
      Variables v{{"GCCL_RANK", std::to_string(r)},
                  {"GCCL_SIZE", "2"},
                  {"GCCL_STORE", "file://" + (folder.path / "store").string()},
                  {"GCCL_START_TIMEOUT_MS", "10000"}};
      if (r == 1) v[name] = "captain";
      return v;
    });
    CHECK(texts[0] == "");
    CHECK_MESSAGE(has(texts[1], std::string("4 ") + name + " is \"captain\", expected a whole number"), texts[1]);
  }
}

TEST_CASE("begin: a configuration stands for itself, and the caller's all-gather for a store") {
  GCCL_Config c = GCCL_CONFIG_INIT;
  c.rank = 0, c.size = 2;
  static const auto copy_twice = [](const void* mine, void* all, size_t bytes, void* context) {
    for (size_t i = 0; i < 2; ++i) std::memcpy(static_cast<char*>(all) + i * bytes, mine, bytes);
    return *static_cast<int*>(context);
  };
  int result = 0;
  c.allgather = copy_twice, c.allgather_context = &result;
  Bootstrap bootstrap;
  REQUIRE(open_bootstrap(&c, -1, &bootstrap).ok());
  Bytes all;
  CHECK(bootstrap.exchange->all_gather(Bytes(3, std::byte(7)), &all, 1000).ok());
  CHECK(all == Bytes(6, std::byte(7)));
  result = 5;
  CHECK(has(bootstrap.exchange->all_gather(Bytes(3), &all, 1000).text(), "returned 5, expected 0"));

  const std::uint16_t port = free_port();
  const std::string store = "tcp://127.0.0.1:" + std::to_string(port);
  check_all_ok(in_threads(4, [&](Rank r, std::unique_ptr<Exchange>* e) {  // ranks of one process
    GCCL_Config mine = GCCL_CONFIG_INIT;
    mine.size = 4, mine.store = store.c_str(), mine.secret = "k", mine.host = "one", mine.timeout_ms = 17;
    Bootstrap s;
    const Status status = open_bootstrap(&mine, int(r), &s);
    if (status.ok() && (s.rank != r || s.size != 4 || s.secret != "k" || s.host != "one" || s.timeout_ms != 17))
      return Status::error("wrong start");
    *e = std::move(s.exchange);
    return status;
  }));
}
