// gccl tune by several processes, as mpirun and gccl launch start them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"
#include "tests/support/shell.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> kSweep{"tune",        "ethernet-cpu",  "--quiet",
                                      "--ranks",     "4,8",           "--bytes",
                                      "64..1MiB*16", "--collectives", "allreduce,allgather"};

struct Outputs {
  std::string text, json, table;
  friend bool operator==(const Outputs&, const Outputs&) = default;
};

// By `launcher`, whose last words start the program; empty: by one process.
Outputs swept(const Folder& folder, const std::string& launcher, std::vector<std::string> more = {}) {
  std::string command = launcher + " '" GCCL_PROGRAM "'";
  more.insert(more.begin(), kSweep.begin(), kSweep.end());
  for (const std::string& word : more) command += " '" + word + "'";
  CAPTURE(command);
  REQUIRE(shell(command + " --json json --table table >text 2>errors", folder.path) == 0);
  return {read_text(folder.path / "text"), read_text(folder.path / "json"), read_text(folder.path / "table")};
}

std::size_t found_in(const fs::path& journal) {
  const std::string text = read_text(journal);
  return std::size_t(std::max<std::ptrdiff_t>(1, std::count(text.begin(), text.end(), '\n'))) - 1;
}

}  // namespace

TEST_CASE("processes of one launcher share a sweep: the result is that of one process, to the byte") {
  const Folder folder;
  const Outputs alone = swept(folder, "", {"--resume", "alone"});
  const std::size_t places = found_in(folder.path / "alone");
  CHECK(places > 16);
  std::vector<std::string> launchers{"'" GCCL_PROGRAM "' launch -n 3 --"};
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  if (installed("mpirun.openmpi")) launchers.emplace_back("mpirun.openmpi --oversubscribe -n 3");
  for (const std::string& launcher : launchers) {
    CAPTURE(launcher);
    for (const char* journal : {"j", "j.1", "j.2"}) fs::remove(folder.path / journal);
    CHECK(swept(folder, launcher, {"--resume", "j"}) == alone);
    // Each has searched a part, and the first one's journal has the others' parts as well.
    CHECK(found_in(folder.path / "j") == places);
    const std::size_t second = found_in(folder.path / "j.1"), third = found_in(folder.path / "j.2");
    CHECK(second > places / 5);
    CHECK(third > places / 5);
    CHECK(second + third < places);
    // One process goes on where three were, and the other way round.
    CHECK(swept(folder, "", {"--resume", "j"}) == alone);
    CHECK(found_in(folder.path / "j") == places);
    CHECK(swept(folder, launcher, {"--resume", "alone"}) == alone);
    CHECK(found_in(folder.path / "alone") == places);
    CHECK(found_in(folder.path / "alone.1") == 0);
    fs::remove(folder.path / "alone.1");
    fs::remove(folder.path / "alone.2");
  }
}

TEST_CASE("processes that would sweep different things say so, and nothing is written") {
  const Folder folder;
  const std::string sweep = "exec '" GCCL_PROGRAM "' tune ethernet-cpu --bytes 64 --ranks $((GCCL_RANK+2)) --json out";
  const Ended e = run_gccl({"launch", "-n", "2", "--", "sh", "-c", sweep}, folder.path);
  CHECK(e.code == 2);
  CHECK(e.err.find("rank 1 sweeps something else than rank 0: expected the same program") != std::string::npos);
  CHECK(!fs::exists(folder.path / "out"));
}

TEST_CASE("an interrupt ends a shared sweep with what all have found until then") {
  const Folder folder;
  const std::string json = (folder.path / "o.json").string(), journal = (folder.path / "j").string();
  Program program({"launch", "-n", "2", "--", GCCL_PROGRAM, "tune", "polaris", "--quiet", "--ranks", "4..64", "--bytes",
                   "8..64MiB", "--jobs", "1", "--json", json, "--resume", journal});
  const auto begun = [](const fs::path& file) { return fs::exists(file) && found_in(file) > 0; };
  for (int i = 0; i < 2400 && !(begun(journal) && begun(journal + ".1")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(program.pid(), SIGINT);
  const Ended ended = program.wait();
  CHECK(ended.code == 130);
  CHECK(ended.err.find("interrupted") != std::string::npos);
  const Json document = Json::parse(read_text(json));
  CHECK(document["complete"] == false);
  CHECK(document["cells"].size() == found_in(journal));
  CHECK(document["cells"].size() > found_in(journal + ".1"));
}
