// Who am I, what is set, and where do ranks meet: tables of environments first, then real processes.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "libgccl/bootstrap/host.hpp"
#include "libgccl/bootstrap/identity.hpp"
#include "libgccl/bootstrap/job_place.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/bootstrap/settings.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "tests/support/child.hpp"
#include "tests/support/meeting.hpp"

using namespace gccl;
using namespace gccl::test;
namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

namespace {

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
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

TEST_CASE("launchers are asked in order, and none of them makes a job of one") {
  const Variables gccl{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}},
      torchrun{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}},
      openmpi{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "5"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
      pmix{{"PMIX_RANK", "4"}},
      slurm{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "7"}, {"SLURM_LOCALID", "1"}, {"SLURM_NNODES", "2"}},
      pmi{{"PMI_RANK", "6"}, {"PMI_SIZE", "9"}};
  const auto identity = [](Variables v, int rank = -1, int size = -1) {
    Identity i;
    const Status s = identify(environment_of(v), rank, size, &i);
    CHECK_MESSAGE(s.ok(), s.text());
    CHECK_MESSAGE(i.wrong.ok(), i.wrong.text());
    return i;
  };
  const auto both = [](Variables a, const Variables& b) {
    a.insert(b.begin(), b.end());
    return a;
  };
  using Kind = Launcher::Kind;
  const auto none = identity({});
  CHECK(none.rank == 0);
  CHECK(none.size == 1);
  CHECK(!none.launcher);
  const auto is = [](const Identity& i, Rank rank, Rank size, Kind kind) {
    CHECK(i.rank == rank);
    CHECK(i.size == size);
    REQUIRE(i.launcher);
    CHECK(int(i.launcher->kind) == int(kind));
  };
  is(identity(gccl), 1, 3, Kind::gccl);
  is(identity(torchrun), 2, 4, Kind::torchrun);
  is(identity(openmpi), 3, 5, Kind::openmpi);
  is(identity(slurm), 5, 7, Kind::slurm);
  is(identity(pmi), 6, 9, Kind::pmi);
  is(identity(both(pmix, {{"SLURM_NTASKS", "6"}})), 4, 6, Kind::pmix);
  is(identity(both(both(both(gccl, torchrun), openmpi), both(slurm, pmi))), 1, 3, Kind::gccl);
  is(identity(both(both(torchrun, openmpi), slurm)), 2, 4, Kind::torchrun);
  is(identity(both(openmpi, both(slurm, pmi))), 3, 5, Kind::openmpi);
  is(identity(both(slurm, {{"SLURM_STEP_NUM_TASKS", "6"}})), 5, 6, Kind::slurm);
  CHECK(identity(torchrun).machines == Identity::Machines::one);
  CHECK(identity(openmpi).machines == Identity::Machines::several);
  CHECK(identity(slurm).machines == Identity::Machines::several);
  CHECK(identity(pmi).machines == Identity::Machines::unknown);

  // Hydra, which srun has started once on each node, or an sbatch script: SLURM's variables are of that process. All
  // ranks of the job go by PMI, those too whose rank and size happen to be that process's.
  const Variables proxy{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "2"}},
      script{{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}},
      one_task{{"SLURM_PROCID", "0"}}, wrong{{"SLURM_PROCID", "captain"}};
  for (const Variables& outer : {proxy, script, one_task, wrong, both(pmix, proxy), both(pmix, {}), both(pmix, script),
                                 both({{"PMIX_RANK", "0"}}, script)})
    for (int size : {2, 4, 9})
      for (int rank = 0; rank < size; ++rank) {
        const Variables hydra{{"PMI_RANK", std::to_string(rank)},
                              {"PMI_SIZE", std::to_string(size)},
                              {"MPI_LOCALRANKID", std::to_string(rank % 2)},
                              {"MPI_LOCALNRANKS", "2"}};
        is(identity(both(hydra, outer)), rank, size, Kind::pmi);
        CHECK(identity(both(hydra, outer)).machines ==
              (size == 2 ? Identity::Machines::one : Identity::Machines::several));
        is(identity(both(both(hydra, outer), openmpi)), 3, 5, Kind::openmpi);
      }
  // srun --mpi=pmi2 sets PMI's pair, and that of a shell which it has started is inherited by the srun in it.
  for (const Variables& pmi2 :
       {Variables{{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}, Variables{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
        Variables{{"PMI_RANK", "0"}}, Variables{{"PMI_RANK", "9"}, {"PMI_SIZE", "9"}}}) {
    is(identity(both(slurm, pmi2)), 5, 7, Kind::slurm);
    CHECK(identity(both(slurm, pmi2)).machines == Identity::Machines::several);
    is(identity(both(both(pmix, slurm), pmi2)), 4, 7, Kind::pmix);
  }

  // In a shell of an allocation that srun did not start: nobody was launched.
  CHECK(!identity({{"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}}).launcher);

  // The caller's word counts, and the environment gives the other half.
  CHECK(identity({}, 2, 5).rank == 2);
  CHECK(identity({}, 2, 5).size == 5);
  CHECK(identity(gccl, 2, 8).size == 8);
  CHECK(identity(gccl, 0).rank == 0);
  CHECK(identity(gccl, 0).size == 3);
  CHECK(identity({{"GCCL_SIZE", "4"}}, 3).size == 4);
  CHECK(identity({{"GCCL_RANK", "3"}}, -1, 4).rank == 3);
  CHECK(identity({}, -1, 1).size == 1);
  CHECK(identity({}, 0, 1).size == 1);
  // Both halves: whatever other programs call RANK.
  for (const Variables& other :
       {Variables{{"RANK", "captain"}}, Variables{{"WORLD_SIZE", "0"}}, Variables{{"RANK", "3"}, {"WORLD_SIZE", "2"}},
        Variables{{"RANK", "3"}}, Variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "captain"}}}) {
    CHECK(identity(other, 1, 2).rank == 1);
    CHECK(identity(other, 1, 2).size == 2);
    CHECK(identity(other, 1, 2).wrong.ok());
  }
  is(identity(both({{"RANK", "captain"}}, openmpi), 4, 5), 4, 5, Kind::openmpi);
}

TEST_CASE("half a pair and contradictions name the variable, what was found and what was expected") {
  struct Case {
    Variables variables;
    std::string text;  // all of the parts between '*'
    int rank = -1, size = -1;
  };
  const Case cases[] = {
      {{{"GCCL_RANK", "1"}}, "GCCL_RANK is set and GCCL_SIZE is not"},
      {{{"GCCL_SIZE", "1"}}, "GCCL_SIZE is set and GCCL_RANK is not"},
      {{{"RANK", "1"}}, "RANK is set and WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set and RANK is not"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, "OMPI_COMM_WORLD_SIZE is not"},
      {{{"PMIX_RANK", "1"}}, "PMIX_RANK is set*GCCL_RANK and GCCL_SIZE"},
      {{{"SLURM_PROCID", "1"}}, "SLURM_PROCID is set"},
      {{{"PMI_SIZE", "2"}}, "PMI_SIZE is set and PMI_RANK is not"},
      {{{"GCCL_RANK", "3"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is 3, expected less than GCCL_SIZE, which is 3"},
      {{{"GCCL_RANK", "x"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is \"x\", expected a whole number"},
      {{{"GCCL_RANK", ""}, {"GCCL_SIZE", "3"}}, "GCCL_SIZE is set and GCCL_RANK is not"},
      {{{"GCCL_RANK", "-1"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is \"-1\""},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "0"}}, "GCCL_SIZE is \"0\", expected a whole number from 1"},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "99999999999999999999"}}, "GCCL_SIZE is"},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "3 "}}, "GCCL_SIZE is \"3 \""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
       "LOCAL_RANK is 2*LOCAL_WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}},
       "LOCAL_WORLD_SIZE is 4*WORLD_SIZE"},
      {{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}}, "the size is given as 4*GCCL_SIZE is 3", -1, 4},
      {{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}}, "the rank is given as 3*GCCL_SIZE", 3},
      {{}, "the size is given as 4*GCCL_RANK", -1, 4},
      {{}, "the rank is given as 0*GCCL_SIZE", 0},
      {{}, "the rank is 4, expected 0 to 3", 4, 4},
      {{}, "the rank is -2", -2, 4},
      {{}, "the size is 0", 0, 0},
      {{}, "the size is -3", 0, -3},
      {{}, "the size is 2000000", 0, 2000000},
  };
  for (const Case& c : cases) {
    Identity i;
    const Status identified = identify(environment_of(c.variables), c.rank, c.size, &i);
    const Status s = identified.ok() ? i.wrong : identified;
    CHECK_MESSAGE(s.code() == GCCL_ERR_INVALID_ARGUMENT, c.text);
    for (std::size_t at = 0; at <= c.text.size();) {
      const std::size_t end = std::min(c.text.find('*', at), c.text.size());
      CHECK_MESSAGE(has(s.text(), c.text.substr(at, end - at)), s.text());
      at = end + 1;
    }
  }
}

TEST_CASE("settings come from the configuration, then from variables, and bad ones name themselves") {
  const auto read = [](Variables v, Settings* out, auto change) {
    GCCL_Config c = GCCL_CONFIG_INIT;
    change(c);
    return read_settings(c, environment_of(v), out);
  };
  const auto nothing = [](GCCL_Config&) {};
  Settings s;
  REQUIRE(read({}, &s, nothing).ok());
  CHECK(s.backends == "shm,tcp");
  CHECK(s.timeout_ms == GCCL_TIMEOUT_NONE);
  CHECK(s.start_timeout_ms == 60000);
  CHECK(!s.progress_thread);
  CHECK((s.secret + s.store + s.host + s.address).empty());

  Variables empty;
  for (const Variable& v : variables()) empty[std::string(v.name)] = "";
  REQUIRE(read(empty, &s, nothing).ok());
  CHECK(s.backends == "shm,tcp");
  CHECK(s.timeout_ms == GCCL_TIMEOUT_NONE);
  CHECK(s.detection_ms == 5000);
  CHECK((s.secret + s.store + s.host + s.address).empty());
  CHECK(check_values(environment_of(empty)).ok());
  Identity i;
  REQUIRE(identify(environment_of(empty), -1, -1, &i).ok());
  CHECK(i.size == 1);

  const Variables all{{"GCCL_STORE", "tcp://h:1"},     {"GCCL_SECRET", "k"},         {"GCCL_HOST", "h"},
                      {"GCCL_ADDRESS", "127.0.0.1"},   {"GCCL_BACKENDS", "tcp"},     {"GCCL_TIMEOUT_MS", "70"},
                      {"GCCL_START_TIMEOUT_MS", "80"}, {"GCCL_PROGRESS_THREAD", "1"}};
  REQUIRE(read(all, &s, nothing).ok());
  CHECK(s.store == "tcp://h:1");
  CHECK(s.secret == "k");
  CHECK(s.host == "h");
  CHECK(s.address == "127.0.0.1");
  CHECK(s.backends == "tcp");
  CHECK(s.timeout_ms == 70);
  CHECK(s.start_timeout_ms == 80);
  CHECK(s.progress_thread);
  REQUIRE(read(all, &s, [](GCCL_Config& c) {
            c.store = "file:///x", c.secret = "", c.host = "other", c.address = "::1", c.backends = "shm,my_own-1";
            c.timeout_ms = GCCL_TIMEOUT_NONE, c.progress_thread = 0;
          }).ok());
  CHECK(s.store == "file:///x");
  CHECK(s.secret.empty());
  CHECK(s.host == "other");
  CHECK(s.address == "::1");
  CHECK(s.backends == "shm,my_own-1");
  CHECK(s.timeout_ms == GCCL_TIMEOUT_NONE);
  CHECK(!s.progress_thread);

  const std::pair<const char*, std::string> wrong[] = {
      {"GCCL_SECRET_FILE", "/no/such"}, {"GCCL_BACKENDS", "shm,"},
      {"GCCL_BACKENDS", ",shm"},        {"GCCL_BACKENDS", "shm tcp"},
      {"GCCL_BACKENDS", "tcp,tcp"},     {"GCCL_BACKENDS", "../x"},
      {"GCCL_TIMEOUT_MS", "0"},         {"GCCL_TIMEOUT_MS", "-2"},
      {"GCCL_TIMEOUT_MS", "5s"},        {"GCCL_START_TIMEOUT_MS", "0"},
      {"GCCL_START_TIMEOUT_MS", "-1"},  {"GCCL_PROGRESS_THREAD", "yes"},
      {"GCCL_PROGRESS_THREAD", "2"},    {"GCCL_ADDRESS", "no-such"},
      {"GCCL_ADDRESS", "0.0.0.0"},      {"GCCL_HOST", std::string(1000, 'h')},
  };
  for (const auto& setting : wrong) {
    const auto& [name, value] = setting;
    const Status bad = read({{name, value}}, &s, nothing);
    CHECK_MESSAGE(bad.code() == GCCL_ERR_INVALID_ARGUMENT, setting.first << "=" << setting.second);
    CHECK_MESSAGE(has(bad.text(), name), bad.text());
  }
  CHECK(has(read({{"GCCL_TIMEOUT_MS", "9223372036854775808"}}, &s, nothing).text(), "from 1 on, or -1 for no limit"));
  CHECK(has(read({}, &s, [](GCCL_Config& c) { c.timeout_ms = 0; }).text(), "GCCL_Config.timeout_ms is \"0\""));
  CHECK(has(read({}, &s, [](GCCL_Config& c) { c.progress_thread = 7; }).text(), "GCCL_Config.progress_thread is 7"));
  // More than a year is a year, wherever it is given.
  constexpr std::int64_t kYearMs = 365LL * 24 * 60 * 60 * 1000;
  for (const std::int64_t ms : {kYearMs - 1, kYearMs, kYearMs + 1, std::int64_t(INT64_MAX)}) {
    REQUIRE(read({{"GCCL_TIMEOUT_MS", std::to_string(ms)}}, &s, nothing).ok());
    CHECK(s.timeout_ms == std::min(ms, kYearMs));
    REQUIRE(read({}, &s, [ms](GCCL_Config& c) { c.timeout_ms = ms; }).ok());
    CHECK(s.timeout_ms == std::min(ms, kYearMs));
  }
}

TEST_CASE("a secret file must be its owner's alone") {
  Folder folder;
  const std::string path = folder.path / "secret";
  const auto write = [&](const std::string& text, mode_t mode) {
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
  };
  std::string secret;
  write("open sesame\n", 0600);
  REQUIRE(read_secret_file(path, &secret).ok());
  CHECK(secret == "open sesame");
  write("x", 0400);
  CHECK(read_secret_file(path, &secret).ok());
  for (const mode_t mode : {0640, 0604, 0644, 0660}) {
    write("x", mode);
    const Status s = read_secret_file(path, &secret);
    CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
    CHECK(has(s.text(), "chmod 600 " + path));
  }
  write("\n", 0600);
  CHECK(has(read_secret_file(path, &secret).text(), "is empty"));
  write(std::string(4097, 'x'), 0600);
  CHECK(has(read_secret_file(path, &secret).text(), "at most 4096"));
  CHECK(has(read_secret_file(folder.path, &secret).text(), "regular file"));
  CHECK(has(read_secret_file(path + "?", &secret).text(), "No such file"));
  const std::string a = random_secret(), b = random_secret();
  CHECK(a.size() == 64);
  CHECK(a != b);
}

TEST_CASE("processes that share memory have one host, and it does not change") {
  CHECK(host_identity() == host_identity());
  CHECK(host_identity().size() > 36);
  const auto child = in_child([] {
    const std::string h = host_identity();
    return std::vector<char>(h.begin(), h.end());
  });
  CHECK(std::string(child.begin(), child.end()) == host_identity());
}

TEST_CASE("a job's place is private, and its own") {
  Folder folder;
  Identity i;
  Variables v{{"OMPI_COMM_WORLD_RANK", "0"},
              {"OMPI_COMM_WORLD_SIZE", "2"},
              {"XDG_RUNTIME_DIR", folder.path.string()},
              {"OMPI_MCA_ess_base_jobid", "77"},
              {"OMPI_MCA_orte_hnp_uri", "77.0;tcp://x"}};
  REQUIRE(identify(environment_of(v), -1, -1, &i).ok());
  std::string a, b;
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &a).ok());
  v["OMPI_COMM_WORLD_RANK"] = "1";
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &b).ok());
  CHECK(a == b);
  v["OMPI_MCA_ess_base_jobid"] = "78";
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &b).ok());
  CHECK(a != b);
  const fs::path place = fs::path(a).parent_path();
  CHECK(place == folder.path / ("gccl-" + std::to_string(geteuid())));
  CHECK(fs::status(place).permissions() == fs::perms::owner_all);
  chmod(place.c_str(), 0755);
  CHECK(has(job_prefix(environment_of(v), *i.launcher, &a).text(), "chmod 700"));
  fs::remove(place);
  fs::create_symlink("/tmp", place);
  CHECK(!job_prefix(environment_of(v), *i.launcher, &a).ok());
}

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
