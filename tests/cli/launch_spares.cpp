// `gccl launch --spares` and `--restart`: which processes there are, what becomes of them, and of the job's exit code.
// Ranks that really join are in runtime_spares.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "libgccl/bootstrap/join_report.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;

namespace {

Ended launch_with(std::vector<std::string> options, const std::string& script) {
  options.insert(options.begin(), "launch");
  options.insert(options.end(), {"--", "sh", "-c", script});
  return Program(options).wait();
}
bool says(const Ended& e, std::string_view text) { return e.err.find(text) != e.err.npos; }

// What one says that is a rank, or joins; and what becomes of its joining.
const std::string kWho = "if [ -n \"$GCCL_JOIN\" ]; then who=joins; else who=rank$GCCL_RANK; fi; says() { SAYS=$1 " +
                         std::filesystem::read_symlink("/proc/self/exe").string() +
                         " --no-skip --test-case='one says what becomes of its joining' >/dev/null || exit 99; }; "
                         "admitted() { says j; }; ";

}  // namespace

TEST_CASE("one says what becomes of its joining" * doctest::skip()) {
  REQUIRE(gccl::report_join(gccl::process_environment(), gccl::JoinState(std::getenv("SAYS")[0])).ok());
}

TEST_CASE("spares get the store and the secret and no rank, and end with the ranks") {
  const auto began = std::chrono::steady_clock::now();
  const Ended e =
      launch_with({"-n", "2", "--spares", "2"}, kWho +
                                                    "echo $who ${GCCL_STORE%:*} ${#GCCL_SECRET} [$GCCL_RANK]; "
                                                    "[ $who = joins ] && sleep 77; sleep 0.3");
  CHECK_MESSAGE(e.code == 0, e.err);
  CHECK(e.lines() == std::set<std::string>{"joins tcp://127.0.0.1 64 []", "rank0 tcp://127.0.0.1 64 [0]",
                                           "rank1 tcp://127.0.0.1 64 [1]"});
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
}

TEST_CASE("one that has been admitted is waited for, and its end counts as a rank's") {
  const Folder folder;
  const std::string in = (folder.path / "in").string();
  const std::string script = kWho + "[ $who = joins ] || { until [ -e " + in +
                             " ]; do sleep 0.01; done; exit $ZERO; }; admitted; >" + in +
                             "; sleep 1; echo late; exit $ONE";
  const auto ended = [&](const char* zero, const char* one) {
    std::filesystem::remove(in);
    return launch_with({"-n", "1", "--spares", "1", "--env", zero, "--env", one}, script);
  };
  Ended e = ended("ZERO=0", "ONE=0");
  CHECK(e.out == "late\n");
  CHECK_MESSAGE(e.code == 0, e.err);
  e = ended("ZERO=3", "ONE=0");
  CHECK(e.out == "late\n");
  CHECK(says(e, "rank 0 exited with code 3; a spare may take its place"));
  CHECK(e.code == 0);
  e = ended("ZERO=0", "ONE=4");
  CHECK(e.err == "gccl launch: spare 0 exited with code 4\n");
  CHECK(e.code == 4);  // nobody was left to admit another
  e = ended("ZERO=3", "ONE=4");
  CHECK(e.code == 4);
}

TEST_CASE("as many ranks may fail as there are spares, and the next one ends the job") {
  const std::string script = kWho +
                             "[ $who = joins ] && sleep 77; [ $GCCL_RANK = 0 ] && kill -9 $$; sleep 1; "
                             "[ $GCCL_RANK = 1 ] && exit $ONE; [ $GCCL_RANK = 2 ] && sleep 1; echo $who";
  Ended e = launch_with({"-n", "3", "--spares", "1", "--env", "ONE=0"}, script);
  CHECK(e.code == 0);
  CHECK(says(e, "rank 0 was killed by signal 9 (Killed); a spare may take its place"));
  CHECK(e.lines() == std::set<std::string>{"rank2"});
  e = launch_with({"-n", "3", "--spares", "1", "--env", "ONE=5"}, script);
  CHECK(e.code == 5);
  CHECK(says(e, "rank 1 exited with code 5; ending the others"));
  CHECK(e.out.empty());
  e = launch_with({"-n", "3", "--spares", "1", "--keep-going", "--env", "ONE=5"}, script);
  CHECK(e.code == 5);
  CHECK(says(e, "rank 1 exited with code 5; the others go on"));
  CHECK(e.out == "rank2\n");
}

TEST_CASE("a rank that fails when all others have ended fails the job, as nobody is left to admit another") {
  const Folder folder;
  const std::string id = (folder.path / "id").string();
  for (const std::string option : {"--spares", "--restart"}) {
    CAPTURE(option);
    std::filesystem::remove(id);
    // It waits until rank 0 is a zombie, and for the launcher to see that.
    const Ended e = launch_with({"-n", "2", option, "1", "--tag"},
                                kWho + "[ $who = joins ] && sleep 77; [ $GCCL_RANK = 0 ] && { echo $$ >" + id +
                                    "; exit 0; }; until [ -s " + id + " ] && grep -q 'State:.Z' /proc/$(cat " + id +
                                    ")/status; do sleep 0.02; done; exit 3");
    CHECK(e.err == "gccl launch: rank 1 exited with code 3\n");
    CHECK(e.code == 3);
  }
}

// As one does that the ranks refuse.
TEST_CASE("a spare that fails while it waits ends nothing, also where a rank that failed had counted on it") {
  const std::string script = kWho +
                             "[ $who = joins ] && { sleep 1; exit 6; }; [ $GCCL_RANK = 0 ] && kill -9 $$; "
                             "sleep 3; echo $who";
  const Ended e = launch_with({"-n", "3", "--spares", "1"}, script);
  CHECK(e.code == 0);
  CHECK(says(e, "rank 0 was killed by signal 9 (Killed); a spare may take its place"));
  CHECK(says(e, "spare 0 exited with code 6"));
  CHECK_FALSE(says(e, "ending the others"));
  CHECK(e.lines() == std::set<std::string>{"rank1", "rank2"});
}

TEST_CASE("a rank that fails is started again, as one that joins, as often as was said") {
  const Folder folder;
  const std::string spoke = (folder.path / "spoke").string();  // rank 0, which the others' end would keep from it
  const Ended e = launch_with({"-n", "2", "--restart", "2", "--tag"},
                              kWho + "echo $who $GCCL_RANK; [ $GCCL_RANK = 0 ] && >" + spoke +
                                  " && sleep 77; until [ -e " + spoke + " ]; do sleep 0.01; done; exit 9");
  CHECK(e.code == 9);
  CHECK(says(e, "rank 1 exited with code 9; starting it again"));
  CHECK(says(e, "rank 1 exited with code 9; ending the others"));
  CHECK(e.lines() == std::set<std::string>{"[0] rank0 0", "[1] rank1 1", "[1] joins 1"});
}

TEST_CASE("a rank whose program is gone when it is to be started again ends the job, unless the others are to go on") {
  const Folder folder;
  const std::string there = folder.path.string(), program = there + "/app";
  const auto run = [&](std::vector<std::string> options) {
    folder.write("app",
                 "#!/bin/sh\ncd " + there +
                     "\ncase $GCCL_RANK in 0) until [ -e here ]; do sleep 0.02; done; rm app here; exit 7;; "
                     "1) >here; until [ ! -e app ]; do sleep 0.02; done; sleep 1; "
                     "[ -n \"$SHORT\" ] || sleep 77; echo done; exit 5;; esac\n",
                 std::filesystem::perms(0700));
    options.insert(options.begin(), {"launch", "-n", "2", "--restart", "3"});
    options.insert(options.end(), {"--", program});
    return Program(options).wait();
  };
  const auto began = std::chrono::steady_clock::now();
  Ended e = run({});
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));  // of 78
  CHECK(e.code == 2);
  CHECK(e.err == "gccl launch: rank 0 exited with code 7; starting it again\ngccl launch: " + program +
                     ": not found\ngccl launch: rank 0 could not be started again; ending the others\n");
  e = run({"--keep-going", "--env", "SHORT=1"});
  CHECK(e.code == 2);
  CHECK(e.out == "done\n");
  CHECK_MESSAGE(says(e, "rank 1 exited with code 5\n"), e.err);
}

TEST_CASE("where nobody ends well the first failure is the job's, though there were spares for it") {
  const std::string joins_sleep = kWho + "[ $who = joins ] && sleep 77; exit 4";
  CHECK(launch_with({"-n", "1", "--spares", "1"}, joins_sleep).code == 4);
  CHECK(launch_with({"-n", "2", "--spares", "2"}, joins_sleep).code == 4);
  CHECK(launch_with({"-n", "2", "--restart", "2"}, joins_sleep).code == 4);
}

TEST_CASE("one that waits to join again is ended when nobody is left to admit it, and one that gave up is not") {
  const Folder folder;
  const std::string waits = (folder.path / "waits").string();
  const auto ended = [&](const std::string& rank1, int ranks = 2) {
    std::filesystem::remove(waits);
    return launch_with({"-n", std::to_string(ranks)},
                       kWho + "if [ $GCCL_RANK = 0 ] && [ $GCCL_SIZE = 2 ]; then until [ -e " + waits +
                           " ]; do sleep 0.01; done; exit 0; fi; " + rank1);
  };
  Ended e = ended("says w; >" + waits + "; sleep 77");
  CHECK_MESSAGE(e.code == 0, e.err);
  CHECK(says(e, "rank 1 waits to join (GCCL_Join), and nobody is left to admit it: ending it"));
  for (const char* goes_on : {"says g", "says j"}) {
    e = ended(std::string("says w; ") + goes_on + "; >" + waits + "; sleep 0.5; echo done; exit 5");
    CHECK(e.code == 5);
    CHECK(e.out == "done\n");
  }
  e = ended("says w; sleep 77", 1);
  CHECK(e.code == 1);
  CHECK(says(e, "rank 0 waits to join (GCCL_Join), and nobody is left to admit it: ending it"));
}

TEST_CASE("what the launcher's own surroundings say of ranks is not said to spares") {
  const Folder folder;
  const std::string there = (folder.path / "there").string();
  const Ended e = Program({"launch", "-n", "1", "--spares", "1", "--", "sh", "-c",
                           "[ -n \"$GCCL_JOIN\" ] || { until [ -e " + there + " ]; do sleep 0.02; done; exit 0; }; " +
                               "echo [$GCCL_RANK$GCCL_SIZE$GCCL_LOCAL_RANK$GCCL_LOCAL_SIZE]; >" + there},
                          {.environment = {"GCCL_RANK=4", "GCCL_SIZE=7", "GCCL_LOCAL_RANK=4", "GCCL_LOCAL_SIZE=7"}})
                      .wait();
  CHECK_MESSAGE(e.code == 0, e.err);
  CHECK(e.out == "[]\n");
}

TEST_CASE("what the launcher's own surroundings say of joining is not said to ranks") {
  ::setenv("GCCL_JOIN", "1", 1);
  ::setenv("GCCL_JOIN_REPORT", "another:1", 1);
  const Ended e = launch_with({"-n", "2"}, "echo [$GCCL_JOIN] ${GCCL_JOIN_REPORT%%-*}");
  ::unsetenv("GCCL_JOIN");
  ::unsetenv("GCCL_JOIN_REPORT");
  CHECK(e.out == "[] gccl\n[] gccl\n");
}

TEST_CASE("wrong numbers of spares are reported, and spares on other hosts") {
  check_refused({"launch", "-n", "2", "--spares", "0", "--", "true"}, "--spares");
  check_refused({"launch", "-n", "2", "--restart", "x", "--", "true"}, "--restart");
  check_refused({"launch", "--hosts", "a:2", "--spares", "1", "--", "true"},
                "--spares: only without --hosts; elsewhere start such processes with GCCL_JOIN=1");
}
