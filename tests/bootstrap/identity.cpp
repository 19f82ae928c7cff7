// Who am I, what is set, and where do ranks meet: tables of environments.
#include "libgccl/bootstrap/identity.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>

#include "libgccl/bootstrap/host.hpp"
#include "libgccl/bootstrap/job_place.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/bootstrap/settings.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "tests/support/child.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/has.hpp"
#include "tests/support/project.hpp"
#include "tests/support/shell.hpp"

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

TEST_CASE("one writes down where its job meets" * doctest::skip()) {
  Identity i;
  REQUIRE(identify(process_environment(), -1, -1, &i).ok());
  std::string place;
  REQUIRE(job_prefix(process_environment(), *i.launcher, &place).ok());
  std::ofstream(process_environment()("PLACE")) << place;
}

TEST_CASE("two jobs of Hydra's in a shell that is a rank itself meet in two places") {
  const Folder folder;
  const std::string there = folder.path.string();
  // It inherits PMI_RANK, as Hydra does.
  const std::string proxy =
      folder.write("proxy", "for rank in 0 1; do\nPLACE=" + there +
                                "/$1$rank PMI_RANK=$rank PMI_SIZE=2 MPI_LOCALRANKID=$rank MPI_LOCALNRANKS=2 " +
                                fs::read_symlink("/proc/self/exe").string() +
                                " --no-skip --test-case='one writes down where its job meets' >/dev/null\ndone\n");
  CHECK(shell("env -i XDG_RUNTIME_DIR=" + there + " PMI_RANK=0 PMI_SIZE=1 sh -c 'for job in a b; do sh " + proxy +
              " $job; done'") == 0);
  const auto place = [&](const char* name) { return test::read_text(folder.path / name); };
  CHECK(!place("a0").empty());
  CHECK(place("a0") == place("a1"));
  CHECK(place("b0") == place("b1"));
  CHECK(place("a0") != place("b0"));
}

// As a container's first process may be. One that it has adopted, of a launcher that has ended, is of another job.
TEST_CASE("ranks that process 1 starts itself meet in one place, those that it has adopted elsewhere") {
  if (shell("unshare --map-root-user --pid --fork --mount-proc true 2>/dev/null") != 0) {
    MESSAGE("not checked: no process namespace can be made here");
    return;
  }
  const Folder folder;
  const std::string there = folder.path.string();
  const std::string rank = fs::read_symlink("/proc/self/exe").string() +
                           " --no-skip --test-case='one writes down where its job meets' >/dev/null\n";
  const std::string orphan = folder.write(
      "orphan", "until grep -q '^PPid:.1$' /proc/$$/status; do sleep 0.01; done\n" + std::string("exec ") + rank);
  const std::string wrapped = folder.write("wrapped", rank + "true\n");
  const std::string first =
      folder.write("first", "export PMI_SIZE=2\nfor rank in 0 1; do\nPLACE=" + there + "/a$rank PMI_RANK=$rank " +
                                rank + "PLACE=" + there + "/b$rank PMI_RANK=$rank sh " + wrapped + "\nPLACE=" + there +
                                "/c$rank PMI_RANK=$rank setsid sh -c 'sh " + orphan + " &'\ndone\nuntil [ -s " + there +
                                "/c0 ] && [ -s " + there + "/c1 ]; do sleep 0.01; done\n");
  CHECK(shell("env -i PATH=\"$PATH\" XDG_RUNTIME_DIR=" + there +
              " timeout 60 unshare --map-root-user --pid --fork --mount-proc sh " + first) == 0);
  const auto place = [&](const char* name) { return test::read_text(folder.path / name); };
  CHECK(!place("a0").empty());
  for (const char* other : {"a1", "b0", "b1"}) CHECK(place("a0") == place(other));
  CHECK(place("c0") != place("a0"));
  CHECK(place("c0") != place("c1"));
}
