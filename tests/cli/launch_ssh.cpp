// `gccl launch --hosts`, with a stand-in for ssh.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/launch_job.hpp"

using namespace gccl::test;

namespace {

// It logs how it is called. What runs over there ends with the connection, and not with the client: had it died with
// this, between the rank's start and that of the shell which watches it, the rank would have gone on.
std::string stand_in_for_ssh(const Folder& folder) {
  return folder.write("ssh",
                      "#!/bin/bash\necho \"$@\" >> " + (folder.path / "log").string() +
                          "\n[ \"$3\" = nowhere ] && exit 255\nexec 3<&0\n"
                          "{ trap - INT QUIT; exec setsid sh -c \"$4\"; } <&3 3<&- &\nexec 3<&-\nwait $!\n",
                      fs::perms(0700));
}

}  // namespace

TEST_CASE("over ssh: ranks, secrets and signals get there, and ends come back") {
  Folder folder;
  const std::vector<std::string> environment{"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder), "GCCL_BACKENDS=shm"};
  Ended e = launch({"--hosts", "127.0.0.1:2,me@localhost,LocalHost", "--env", "A=it's \"b\" $c `d`", "--", "sh", "-c",
                    "echo $GCCL_RANK $GCCL_SIZE $GCCL_LOCAL_RANK $GCCL_LOCAL_SIZE ${#GCCL_SECRET} \"$A\" "
                    "$GCCL_BACKENDS ${GCCL_STORE%:*} \"$@\"",
                    "x", "two words", "don't"},
                   environment);
  CHECK(e.code == 0);
  const std::string rest = " 64 it's \"b\" $c `d` shm tcp://127.0.0.1 two words don't";
  CHECK(e.lines() == std::set<std::string>{"0 4 0 2" + rest, "1 4 1 2" + rest, "2 4 0 2" + rest, "3 4 1 2" + rest});
  const std::string calls = read_text(folder.path / "log");
  CHECK(has(calls, "-o BatchMode=yes me@localhost "));
  CHECK(!has(calls, "SECRET="));

  e = launch({"--hosts", "a:3", "--", "sh", "-c", "test $GCCL_RANK = 1 && exit 9; exec sleep 77"}, environment);
  CHECK(e.code == 9);
  CHECK(has(e.err, "rank 1 exited with code 9"));
  e = launch({"--hosts", "a,nowhere", "--", "sleep", "77"}, environment);
  CHECK(e.code == 255);
  CHECK(has(e.err, "rank 1 exited with code 255: ssh could not reach its host"));
  e = launch({"--hosts", "a", "--", "no-such-program"}, environment);
  CHECK(e.code == 127);
  CHECK(has(e.err, "was not found"));
  e = launch({"--hosts", "a", "--env", "A=b\nc", "--", "true"}, environment);
  CHECK(e.code == 2);
  CHECK(has(e.err, "a newline cannot travel"));

  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    CAPTURE(signal);
    Folder ids_folder;
    Launch job(std::vector<std::string>{"--hosts", "a:2"} +
                   sleeper(ids_folder.path, signal == SIGKILL ? "trap '' TERM HUP INT; " : ""),
               environment);
    const auto ids = ids_in(ids_folder.path, 4);
    kill(job.pid(), signal);
    CHECK(job.wait().code == 128 + signal);
    CHECK(all_gone_soon(ids));
  }
}

TEST_CASE("over ssh: a signal that the launcher passes on ends a rank as it ends one of this machine") {
  Folder folder;
  const std::vector<std::string> environment{"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)};
  const Ended e = launch({"--hosts", "a", "--", "grep", "SigIgn", "/proc/self/status"}, environment);
  const Ended here = launch({"-n", "1", "--", "grep", "SigIgn", "/proc/self/status"});
  CHECK(e.out == here.out);
}

TEST_CASE("over ssh: a signal that is the program's is passed on, and ends nothing") {
  const Folder folder, ids;
  Launch job({"--hosts", "a", "--", "sh", "-c",
              "trap 'echo got; got=1' USR1; echo $$ > " + ids.path.string() +
                  "/0; until [ \"$got\" ]; do sleep 0.02; done; exit 0"},
             {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)});
  ids_in(ids.path, 1);
  kill(job.pid(), SIGUSR1);
  const Ended e = job.wait();
  CHECK_MESSAGE(e.code == 0, e.err);
  CHECK(e.out == "got\n");
}

TEST_CASE("over ssh: what keeps a rank from starting is said without the script that starts it") {
  Folder folder;
  const std::string elsewhere = folder.write(
      "ssh",
      "#!/bin/bash\nexec sh -c \"$4\" < <(sed -u 's|^GCCL_LAUNCH_FOLDER=.*|GCCL_LAUNCH_FOLDER=/no/such/folder|')\n",
      fs::perms(0700));
  const Ended e = launch({"--hosts", "a", "--", "true"}, {"GCCL_LAUNCH_SSH=" + elsewhere});
  CHECK(e.code == 125);
  CAPTURE(e.err);
  CHECK(e.err.starts_with("gccl-launch: "));
  CHECK(has(e.err, "/no/such/folder"));
}

TEST_CASE("over ssh: an IPv6 address stands in brackets in the store's URL, and never for ssh") {
  Folder folder;
  const std::vector<std::string> environment{"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)};
  for (const std::string hosts : {"me@[::1]:2", "[::1]:2", "::1,[::1]"}) {
    CAPTURE(hosts);
    const Ended e = launch({"--hosts", hosts, "--port", "29500", "--", "sh", "-c", "echo $GCCL_STORE $GCCL_LOCAL_SIZE"},
                           environment);
    CHECK(e.code == 0);
    CHECK(e.out == "tcp://[::1]:29500 2\ntcp://[::1]:29500 2\n");
  }
  const std::string calls = read_text(folder.path / "log");
  CHECK(has(calls, "BatchMode=yes me@::1 "));
  CHECK(has(calls, "BatchMode=yes ::1 "));
  CHECK(!has(calls, "[::1]"));
  CHECK(has(launch({"--hosts", "[::1", "--", "true"}).err, "expected the name or address of a host"));
}

TEST_CASE("over ssh: a launcher that another one has started passes on nothing of its own joining") {
  Folder folder;
  const Ended e =
      launch({"--hosts", "a", "--", "sh", "-c", "echo ${GCCL_JOIN-none} ${GCCL_JOIN_REPORT-none} $GCCL_CHECK"},
             {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder), "GCCL_JOIN=1", "GCCL_JOIN_REPORT=x", "GCCL_CHECK=1"});
  CHECK(e.out == "none none 1\n");
}

TEST_CASE("over ssh: a rank that is killed over there is said to be") {
  Folder folder;
  const Ended e =
      launch({"--hosts", "a", "--", "sh", "-c", "kill -SEGV $$"}, {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)});
  CHECK(e.code == 139);
  CHECK(has(e.err, "rank 0 exited with code 139: it was killed by signal 11 (Segmentation fault)"));
}

TEST_CASE("over ssh: rank 0 has no standard input, and a launcher that was given one says so") {
  Folder folder;
  const std::string ssh = "GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder), program = GCCL_PROGRAM;
  const auto given = [&](const std::string& input) {
    return launch({"-n", "1", "--", "sh", "-c", program + " launch --hosts a -- cat " + input}, {ssh});
  };
  // It is in the pipe before the launcher looks, or in a file, as the shell has it.
  const Ended piped = given("<<END\nhello\nEND\n");
  CHECK(piped.code == 0);
  CHECK(piped.out.empty());
  CHECK(has(piped.err, "standard input is not passed on with --hosts"));
  CHECK(given("</dev/null").err.empty());
}

TEST_CASE("over ssh: settings that no pipe holds get there, and an ssh that does not read them holds up nobody") {
  Folder folder;
  const std::string big = "BIG=" + std::string(120000, 'x');
  const Ended e = launch({"--hosts", "a:2", "--env", big, "--", "sh", "-c", "echo ${#BIG}"},
                         {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)});
  CHECK(e.out == "120000\n120000\n");
  const std::string deaf = folder.write("deaf", "#!/bin/sh\nexec sleep 77\n", fs::perms(0700));
  CHECK(launch({"--hosts", "a:2", "--env", big, "--timeout", "0.5", "--grace", "0.1", "--", "true"},
               {"GCCL_LAUNCH_SSH=" + deaf})
            .code == 124);
}

TEST_CASE("over ssh: no variable of a rank is the script's that starts it") {
  const Folder folder;
  const std::vector<std::string> names{"line", "name", "ids", "code"};
  std::vector<std::string> arguments{"--hosts", "a"};
  for (const std::string& name : names) arguments = arguments + std::vector<std::string>{"--env", name + "=blue"};
  const Ended e =
      launch(arguments +
                 std::vector<std::string>{"--", "sh", "-c", "echo $line $name $ids $code; env | grep -c GCCL_LAUNCH_L"},
             {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder)});
  CHECK(e.out == "blue blue blue blue\n0\n");
}

TEST_CASE("over ssh: what cannot travel in a line for a shell is refused, or stays where it is no setting of GCCL's") {
  const Folder folder;
  const fs::path odd = folder.path / "two\nlines";
  fs::create_directory(odd);
  const Ended refused = Program({"launch", "--hosts", "a", "--", "true"}, {.folder = odd}).wait();
  CHECK(refused.code == 2);
  CHECK_MESSAGE(has(refused.err, "the name of the current folder holds a newline"), refused.err);
  const Ended nowhere = launch({"-n", "1", "--", "sh", "-c",
                                "cd " + folder.path.string() + " && mkdir gone && cd gone && rmdir ../gone && exec " +
                                    std::string(GCCL_PROGRAM) + " launch --hosts a -- true"});
  CHECK(nowhere.code == 2);
  CHECK_MESSAGE(has(nowhere.err, "--hosts: the current folder, in which ranks start: No such file"), nowhere.err);
  const Ended e = launch({"--hosts", "a", "--", "sh", "-c", "echo $GCCL_CHECK"},
                         {"GCCL_LAUNCH_SSH=" + stand_in_for_ssh(folder), "GCCL_A-B=1", "GCCL_CHECK=1"});
  CHECK_MESSAGE(e.out == "1\n", e.err);
}
