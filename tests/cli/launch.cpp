// `gccl launch` as a user meets it: real processes, real signals. Over ssh: launch_ssh.cpp.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/net/socket.hpp"
#include "tests/cli/launch_job.hpp"

using namespace gccl::test;

TEST_CASE("every rank learns who it is and where to meet, and can") {
  const Ended e =
      launch({"-n", "3", "--env", "A=b c", "--", "sh", "-c",
              "echo $GCCL_RANK $GCCL_SIZE $GCCL_LOCAL_RANK $GCCL_LOCAL_SIZE ${#GCCL_SECRET} \"$A\" ${GCCL_STORE%:*}"},
             {"GCCL_RANK=9", "GCCL_SECRET=from outside"});
  CHECK(e.code == 0);
  CHECK(e.err == "");
  const std::string rest = " 64 b c tcp://127.0.0.1";
  CHECK(e.lines() == std::set<std::string>{"0 3 0 3" + rest, "1 3 1 3" + rest, "2 3 2 3" + rest});
}

TEST_CASE("secrets are fresh, or a file's, and never on a command line") {
  const std::vector<std::string> show{"-n", "1",  "--",
                                      "sh", "-c", "echo $GCCL_SECRET; tr '\\0' ' ' < /proc/$PPID/cmdline"};
  const std::string a = launch(show).out, b = launch(show).out;
  CHECK(a.substr(0, 64) != b.substr(0, 64));
  CHECK(!has(a.substr(64), a.substr(0, 64)));
  Folder folder;
  const fs::path file = folder.write("secret", "open sesame\n", fs::perms(0600));
  CHECK(launch(std::vector<std::string>{"--secret-file", file} + show).out.starts_with("open sesame\n"));
  folder.write("secret", std::string_view("\0binary", 7), fs::perms(0600));
  CHECK(has(launch(std::vector<std::string>{"--secret-file", file} + show).err, "found a null byte"));
  chmod(file.c_str(), 0644);
  const Ended e = launch(std::vector<std::string>{"--secret-file", file} + show);
  CHECK(e.code == 2);
  CHECK(has(e.err, "chmod 600"));
}

TEST_CASE("lines carry their rank when asked, whole lines only") {
  const Ended e =
      launch({"-n", "2", "--tag", "--", "sh", "-c", "printf 'a\\nb'; sleep 0.1; printf 'c\\n\\nend'; echo err >&2"});
  CHECK(e.code == 0);
  CHECK(e.lines() == std::set<std::string>{"[0] a", "[0] bc", "[0] ", "[0] end", "[1] a", "[1] bc", "[1] ", "[1] end"});
  CHECK(has(e.err, "[0] err\n"));
  CHECK(has(e.err, "[1] err\n"));
  CHECK(launch({"-n", "1", "--tag", "--", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"}).out.size() > 1000000);
}

TEST_CASE("a slow reader gets everything, also what is read after all ranks have ended") {
  // 140 lines of 1000 characters wait in the rank's pipe and the reader's, which is emptied in more than two seconds.
  const Ended e = launch({"-n", "1", "--", "bash", "-c",
                          std::string(GCCL_PROGRAM) +
                              " launch -n 1 --tag -- seq -f %0999.0f 140 | "
                              "while n=$(head -c 4096 | wc -c); [ $n -gt 0 ]; do echo $n; sleep 0.06; done"});
  CHECK(e.code == 0);
  std::istringstream numbers(e.out);
  int bytes = 0;
  for (int n; numbers >> n;) bytes += n;
  CHECK(bytes == 140 * 1004);
  // Of 40 ranks 60 lines each: their pipes hold more together than one can, and the reader takes less at a time than
  // one read. It pauses when it has read more than one pipe can hold.
  const Ended many = launch({"-n", "1", "--", "bash", "-c",
                             std::string(GCCL_PROGRAM) +
                                 " launch -n 40 --tag -- seq -f %0999.0f 60 | { sleep 1; i=0; while n=$(head -c 16384 "
                                 "| wc -l); [ $n -gt 0 ]; do echo $n; [ $((i += 1)) != 90 ] || sleep 1; done; }"});
  CHECK(many.code == 0);
  std::istringstream counts(many.out);
  int lines = 0;
  for (int n; counts >> n;) lines += n;
  CHECK(lines == 40 * 60);
}

TEST_CASE("a reader that does not read holds up neither the limit of time nor a signal") {
  struct Case {
    std::string options, redirected, end;
    int code;
  };
  for (const Case& c : {Case{"--tag --timeout 1", "2>err", "", 124}, Case{"--tag", "2>err", "kill $!;", 143},
                        Case{"--tag", "2>&1", "kill $!;", 143}, Case{"--timeout 1", "2>&1", "", 124}}) {
    CAPTURE(c.options);
    CAPTURE(c.redirected);
    Folder folder;
    const std::string there = folder.path.string();
    // The fifo is full after a moment, as each rank writes for ever.
    const Ended e = launch({"-n", "1", "--", "bash", "-c",
                            "cd " + there + "; mkfifo fifo; exec 3<>fifo; timeout -s KILL 60 " + GCCL_PROGRAM +
                                " launch -n 2 --grace 1 " + c.options +
                                " -- sh -c 'echo $$ > id.$GCCL_RANK; exec yes' 3<&- >fifo " + c.redirected +
                                " & sleep 2; " + c.end + " wait $!; echo $?"});
    CHECK_MESSAGE(e.out == std::to_string(c.code) + "\n", e.out << e.err);
    for (const std::string rank : {"0", "1"})
      CHECK(all_gone_soon({pid_t(std::stoi("0" + read_text(folder.path / ("id." + rank))))}));
  }
}

TEST_CASE("a line that was begun is written, although a process that was left behind keeps the pipe open") {
  const Folder folder;
  const std::string there = (folder.path / "there").string();
  const Ended e = launch(
      {"-n", "1", "--tag", "--", "sh", "-c",
       "setsid sh -c 'touch " + there + "; sleep 3' & while [ ! -e " + there + " ]; do sleep 0.02; done; printf end"});
  CHECK(e.code == 0);
  CHECK(e.out == "[0] end\n");
}

TEST_CASE("a reader that leaves ends the job without a word") {
  const Folder folder;
  const std::string err = (folder.path / "err").string();
  const auto piped = [&](const std::string& options, const std::string& program, const std::string& reader) {
    const Ended e = launch({"-n", "1", "--", "bash", "-c",
                            std::string(GCCL_PROGRAM) + " launch -n 2 " + options + " -- " + program + " 2>" + err +
                                " | " + reader + "; echo ${PIPESTATUS[0]}"});
    CHECK_MESSAGE(e.code == 0, e.err);
    return e.out;
  };
  for (const std::string options : {"", "--keep-going", "--tag"}) {
    CAPTURE(options);
    const std::string line = piped(options, "yes", "head -n 1");
    CHECK_MESSAGE(line.ends_with("y\n141\n"), line);  // 128 + SIGPIPE, as of a pipeline's own programs
    CHECK_MESSAGE(read_text(err).empty(), read_text(err));
    piped(options, "sh -c 'yes; exit $?'", "head -n 1");
    CHECK_MESSAGE(read_text(err).empty(), read_text(err));
  }
  // A rank that dies of another pipe than standard output is worth a word.
  CHECK(piped("", "sh -c 'kill -PIPE $$'", "cat") == "141\n");
  CHECK_MESSAGE(has(read_text(err), "was killed by signal 13 (Broken pipe)"), read_text(err));
}

TEST_CASE("an output that cannot be written is exit code 2, unless a rank failed first") {
  const auto to_full_disk = [](const std::string& options, const std::string& script) {
    const Ended e = launch({"-n", "1", "--", "bash", "-c",
                            std::string(GCCL_PROGRAM) + " launch -n 2 --tag --timeout 60 " + options + " -- sh -c '" +
                                script + "' >/dev/full; echo $?"});
    CHECK_MESSAGE(has(e.err, "output cannot be written: No space left on device"), e.err);
    CHECK_MESSAGE(!has(e.err, "signal 13"), e.err);
    CHECK_MESSAGE(!has(e.err, "not done within"), e.err);
    return e.out;
  };
  for (int i = 0; i < 10; ++i) {  // who sees what first differs from run to run
    CHECK(to_full_disk("", "echo a") == "2\n");
    CHECK(to_full_disk("", "exec yes") == "2\n");
    CHECK(to_full_disk("", "yes; exit $?") == "2\n");
    CHECK(to_full_disk("--keep-going", "exec yes") == "2\n");
  }
  CHECK(to_full_disk("", "printf begun; sleep 0.2") == "2\n");
  // The others are ended as after any failure.
  CHECK(to_full_disk("", "[ $GCCL_RANK = 0 ] || exec sleep 300; exec yes") == "2\n");
  // What a rank makes of it is its own affair, but not a failure of its own before.
  CHECK(to_full_disk("", "trap \"\" PIPE; yes 2>/dev/null; exit 7") == "2\n");
  CHECK(to_full_disk("--keep-going", "[ $GCCL_RANK = 0 ] && exit 5; sleep 1; echo a") == "5\n");
}

TEST_CASE("a standard error that cannot be written is exit code 2, unless a rank fails by itself") {
  const auto code = [](const std::string& options, const std::string& script, const std::string& where) {
    const Ended e = launch({"-n", "1", "--", "bash", "-c",
                            std::string(GCCL_PROGRAM) + " launch -n 2 --tag --timeout 60 " + options + " -- sh -c '" +
                                script + "' " + where + "; echo $?"});
    CHECK_MESSAGE(e.err.empty(), e.err);
    return e.out;
  };
  for (const std::string where : {"2>/dev/full", "2>&-"}) {
    CAPTURE(where);
    for (const std::string options : {"", "--keep-going"}) {
      CAPTURE(options);
      CHECK(code(options, "echo a >&2", where) == "2\n");
      CHECK(code(options, "exec yes >&2", where) == "2\n");
      CHECK(code(options, "[ $GCCL_RANK = 1 ] || { echo a >&2; exit 7; }", where) == "7\n");
    }
    CHECK(code("", "[ $GCCL_RANK = 0 ] || exec sleep 300; exec yes >&2", where) == "2\n");
    CHECK(code("", "exit 7", where) == "7\n");
    CHECK(code("", "true", where) == "0\n");
  }
}

TEST_CASE("no control character of a command line reaches the terminal") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"-n", "1", "--", "no-such\x1b[31m-program"}, {"-n", "x\x1b[31m"}, {"--hosts", "a\x1b[31m", "--", "true"}}) {
    const Ended e = launch(arguments);
    CHECK(e.code == 2);
    CHECK_MESSAGE(has(e.err, "?[31m"), e.err);
    CHECK_MESSAGE(!has(e.err, "\x1b"), e.err);
  }
}

TEST_CASE("wrong usage is reported in one line, exit code 2") {
  for (auto [arguments, text] : std::initializer_list<std::pair<std::vector<std::string>, const char*>>{
           {{}, "expected -n RANKS"},
           {{"-n", "2"}, "expected a program"},
           {{"-n", "2", "--"}, "expected a program"},
           {{"-n", "0", "--", "true"}, "--ranks"},
           {{"-n", "x", "--", "true"}, "--ranks"},
           {{"-n", "2", "--tga", "--", "true"}, "unknown option \"--tga\"; did you mean \"--tag\"?"},
           {{"-n", "2", "--bind", "socket", "--", "true"}, "--bind"},
           {{"-n", "2", "--port", "29500", "--store", "tcp://127.0.0.1:29501", "--", "true"},
            "--port 29500: only without --store"},
           {{"-n", "2", "--store", "foo", "--", "true"}, "--store: the store is \"foo\", expected \"tcp://HOST:PORT\""},
           {{"-n", "2", "--store", "tcp://h:0", "--", "true"}, "expected a port from 1 to 65535"},
           {{"-n", "2", "--env", "A", "--", "true"}, "expected NAME=VALUE"},
           {{"-n", "2", "--env", "GCCL_SECRET=abc", "--", "true"},
            "--env GCCL_SECRET: the launcher sets it by itself: use --secret-file FILE"},
           {{"-n", "2", "--env", "GCCL_STORE=file:///tmp/s", "--", "true"}, "use --store URL"},
           {{"-n", "2", "--env", "GCCL_SIZE=3", "--", "true"}, "use -n RANKS, or --hosts"},
           {{"-n", "2", "--env", "GCCL_JOIN=1", "--", "true"}, "use --spares N, or --restart N"},
           {{"-n", "3", "--hosts", "a,b", "--", "true"}, "--hosts has room for 2"},
           {{"--hosts", "a,,b", "--", "true"}, "expected the name or address of a host"},
           {{"--hosts", "-oProxyCommand=x", "--", "true"}, "expected the name or address of a host"},
           {{"--hosts", "a:0", "--", "true"}, "expected HOST or HOST:RANKS"},
           {{"--hosts", "me@localhost,127.0.0.1,b", "--", "true"},
            "--hosts: the ranks meet on the first host, and \"me@localhost\" is another one on \"b\""},
           {{"--hosts", "LocalHost,b", "--", "true"}, "\"LocalHost\" is another one on \"b\""},
           {{"--hosts", "[0:0::1]:2,b", "--", "true"}, "\"0:0::1\" is another one on \"b\""},
           {{"-n", "2", "--secret-file", "/no/such", "--", "true"}, "No such file"},
           {{"-n", "2", "--", "/no/such/program"}, "/no/such/program: not found"},
           {{"-n", "2", "--", "no-such-program"}, "no-such-program: not found"},
           {{"-n", "2", "--", "/etc/passwd"}, "/etc/passwd: Permission denied"}}) {
    const Ended e = launch(arguments);
    CHECK_MESSAGE(e.code == 2, e.err);
    CHECK_MESSAGE(has(e.err, text), e.err);
    CHECK_MESSAGE(std::count(e.err.begin(), e.err.end(), '\n') == 1, e.err);
  }
  CHECK(launch({"--help"}).code == 0);
  CHECK(has(launch({"--help"}).out, "--hosts"));
  CHECK(launch({"-n2", "--tag", "--bind=none", "--", "echo", "-n"}).code == 0);
  CHECK(launch({"-n", "1", "echo", "--tag", "--", "-n", "2"}).out == "--tag -- -n 2\n");
}

TEST_CASE("the first rank that fails is named, and ends the job") {
  const auto begin = Clock::now();
  Ended e = launch({"-n", "4", "--", "sh", "-c", "test $GCCL_RANK = 2 && exit 7; exec sleep 77"});
  CHECK(e.code == 7);
  CHECK(has(e.err, "rank 2 exited with code 7; ending the others"));
  e = launch({"-n", "4", "--", "sh", "-c", "test $GCCL_RANK = 2 && exec no-such-program; exec sleep 77"});
  CHECK(e.code == 127);
  CHECK(has(e.err, "was not found"));
  e = launch({"-n", "3", "--", "sh", "-c", "test $GCCL_RANK = 1 && kill -9 $$; exec sleep 77"});
  CHECK(e.code == 137);
  CHECK(has(e.err, "rank 1 was killed by signal 9 (Killed)"));
  CHECK(seconds_since(begin) < 30);
}

TEST_CASE("with --keep-going the others go on, and the first failure is still the job's") {
  // Rank 1 fails; the others notice, work on, and fail in turn.
  Folder folder;
  const std::string sign = (folder.path / "sign").string();
  Ended e = launch({"-n", "3", "--keep-going", "--", "sh", "-c",
                    "if test $GCCL_RANK = 1; then touch " + sign + "; exit 7; fi; while ! test -e " + sign +
                        "; do sleep 0.05; done; sleep 0.7; echo survivor $GCCL_RANK; exit 9"});
  CHECK(e.code == 7);
  CHECK(e.lines() == std::set<std::string>{"survivor 0", "survivor 2"});
  CHECK(has(e.err, "rank 1 exited with code 7; the others go on"));
  CHECK(has(e.err, "rank 0 exited with code 9\n"));
  CHECK(has(e.err, "rank 2 exited with code 9\n"));
  // Killed, and nobody else fails.
  e = launch({"-n", "3", "--keep-going", "--", "sh", "-c",
              "test $GCCL_RANK = 1 && kill -9 $$; sleep 0.5; echo survivor $GCCL_RANK"});
  CHECK(e.code == 137);
  CHECK(e.lines() == std::set<std::string>{"survivor 0", "survivor 2"});
  CHECK(has(e.err, "rank 1 was killed by signal 9 (Killed); the others go on"));
  // The limit holds, and so do signals.
  Folder ids_folder;
  Launch job(std::vector<std::string>{"-n", "2", "--keep-going", "--timeout", "0.7", "--grace", "0.3"} +
             sleeper(ids_folder.path, "trap '' TERM; test $GCCL_RANK = 1 && echo $$ $$ > " + ids_folder.path.string() +
                                          "/1 && exit 3; "));
  const auto ids = ids_in(ids_folder.path, 4);
  e = job.wait();
  CHECK(e.code == 3);
  CHECK(has(e.err, "not done within 0.7 s"));
  CHECK(all_gone_soon(ids));
  CHECK(launch({"-n", "2", "--keep-going", "--", "true"}).code == 0);
}

TEST_CASE("of failures that are found together a crash does not hide an error, a kill does") {
  // The launcher is stopped while both end.
  for (const auto& [signal, code] : {std::pair("SEGV", 5), std::pair("ABRT", 5), std::pair("KILL", 137)}) {
    Folder folder;
    const std::string at = folder.path.string();
    Launch job({"-n", "2", "--", "sh", "-c",
                "ulimit -c 0; echo $$ $$ > " + at + "/$GCCL_RANK; while ! test -e " + at +
                    "/go; do sleep 0.02; done; test $GCCL_RANK = 0 && exit 5; kill -" + signal + " $$"});
    const auto ids = ids_in(folder.path, 4);
    kill(job.pid(), SIGSTOP);
    std::ofstream(folder.path / "go").flush();
    CHECK(all_gone_soon(ids));
    kill(job.pid(), SIGCONT);
    const Ended e = job.wait();
    CHECK_MESSAGE(e.code == code, e.err);
    CHECK(has(e.err, code == 5 ? "rank 0 exited with code 5" : "rank 1 was killed by signal 9"));
  }
}

TEST_CASE("a rank killed from outside takes the others and their children with it") {
  Folder folder;
  Launch job(std::vector<std::string>{"-n", "3"} + sleeper(folder.path));
  const auto ids = ids_in(folder.path, 6);
  std::istringstream first(read_text(folder.path / "1"));
  pid_t one = 0;
  first >> one;
  kill(one, SIGKILL);
  const Ended e = job.wait();
  CHECK(e.code == 137);
  CHECK(has(e.err, "rank 1 was killed by signal 9"));
  CHECK(all_gone_soon(ids));
}

TEST_CASE("those who do not listen to SIGTERM are killed after the grace") {
  Folder folder;
  const auto begin = Clock::now();
  Launch job(std::vector<std::string>{"-n", "2", "--grace", "0.5", "--timeout", "0.7"} +
             sleeper(folder.path, "trap '' TERM; "));
  const auto ids = ids_in(folder.path, 4);
  const Ended e = job.wait();
  CHECK(e.code == 124);
  CHECK(has(e.err, "not done within 0.7 s"));
  CHECK(seconds_since(begin) > 1.1);
  CHECK(seconds_since(begin) < 30);
  CHECK(all_gone_soon(ids));
}

TEST_CASE("a program whose exec hangs holds up neither the limit of time nor a signal") {
  const auto before = ::signal(SIGIO, SIG_IGN);  // by which one who holds a lease learns that another waits
  for (const bool signalled : {false, true}) {
    CAPTURE(signalled);
    const Folder folder;
    const std::string ran = (folder.path / "ran").string();
    const std::string app = folder.write("app", "#!/bin/sh\n> " + ran + "\n", fs::perms(0700));
    // An exec waits until the lease is given up, or for 45 s.
    const gccl::Fd lease(open(app.c_str(), O_RDONLY | O_CLOEXEC));
    if (fcntl(lease.get(), F_SETLEASE, F_WRLCK) != 0) {
      MESSAGE("not tested: no leases here");
      break;
    }
    Launch job(std::vector<std::string>{"-n", "2", "--timeout", signalled ? "300" : "0.5", "--", app});
    for (int i = 0; i < 3000 && fcntl(lease.get(), F_GETLEASE) == F_WRLCK; ++i) pause_ms(10);
    if (signalled) kill(job.pid(), SIGTERM);
    const Ended e = job.wait();
    CHECK(e.code == (signalled ? 143 : 124));
    CHECK_MESSAGE(has(e.err, signalled ? "Terminated: ending all ranks" : "not done within 0.5 s"), e.err);
    CHECK(!fs::exists(ran));
  }
  ::signal(SIGIO, before);
}

TEST_CASE("a launcher that was stopped looks at the ranks before it looks at the time") {
  Folder folder;
  const auto begin = Clock::now();
  Launch job({"-n", "1", "--timeout", "4", "--", "sh", "-c",
              "echo $$ > " + folder.path.string() + "/id; while [ ! -e " + folder.path.string() +
                  "/stopped ]; do sleep 0.02; done"});
  const auto ids = ids_in(folder.path, 1);
  kill(job.pid(), SIGSTOP);
  folder.write("stopped", "");
  CHECK(all_gone_soon(ids));
  while (seconds_since(begin) < 5) pause_ms(50);
  kill(job.pid(), SIGCONT);
  const Ended e = job.wait();
  CHECK(e.code == 0);
  CHECK(e.err.empty());
}

TEST_CASE("signals are passed on, and leave no orphan") {
  for (const int signal : {SIGINT, SIGTERM}) {
    Folder folder;
    Launch job(std::vector<std::string>{"-n", "2"} +
               sleeper(folder.path, "trap 'echo got INT; exit 0' INT; trap 'echo got TERM; exit 0' TERM; "));
    const auto ids = ids_in(folder.path, 4);
    kill(job.pid(), signal);
    const Ended e = job.wait();
    CHECK(e.code == 128 + signal);
    const std::string line = signal == SIGINT ? "got INT\n" : "got TERM\n";
    CHECK(e.out == line + line);
    CHECK(all_gone_soon(ids));
  }
}

TEST_CASE("signals that are the program's are passed on, and end nothing") {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    const std::string name = sigabbrev_np(signal);
    const Folder folder;
    Launch job({"-n", "2", "--", "sh", "-c",
                fmt::format("trap 'echo got {}; got=1' {}; echo $$ > {}/$GCCL_RANK; until [ \"$got\" ]; do sleep 0.02; "
                            "done; exit 0",
                            name, name, folder.path.string())});
    ids_in(folder.path, 2);
    kill(job.pid(), signal);
    const Ended e = job.wait();
    CHECK_MESSAGE(e.code == 0, e.err);
    CHECK(e.out == fmt::format("got {}\ngot {}\n", name, name));
  }
}

TEST_CASE("a rank that is stopped since it uses the terminal is named, and one that SIGSTOP stops is not") {
  const gccl::Fd terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(grantpt(terminal.get()) == 0);
  REQUIRE(unlockpt(terminal.get()) == 0);
  const Folder folder;
  const std::string there = folder.path.string();
  Launch job(
      {"-n", "1", "--", "sh", "-c",
       "cd " + there + " && exec setsid -c -w " + GCCL_PROGRAM +
           " launch -n 2 -- sh -c 'echo $$ >now.$GCCL_RANK; mv now.$GCCL_RANK id.$GCCL_RANK; "
           "[ $GCCL_RANK = 0 ] || kill -STOP $$; until [ -e id.1 ] && grep -q State:.T /proc/$(cat id.1)/status; "
           "do sleep 0.02; done; read line </dev/tty' <" +
           ptsname(terminal.get()) + " 2>err"});
  const std::string stopped = "is stopped by signal 21 (Stopped (tty input)): ranks cannot use the terminal\n";
  for (int i = 0; i < 3000 && !has(read_text(folder.path / "err"), stopped); ++i) pause_ms(10);
  const pid_t id = std::stoi("0" + read_text(folder.path / "id.0"));
  REQUIRE(id > 0);
  kill(id, SIGKILL);
  CHECK(job.wait().code == 137);
  CHECK(read_text(folder.path / "err") ==
        "gccl launch: rank 0 " + stopped + "gccl launch: rank 0 was killed by signal 9 (Killed); ending the others\n");
}

TEST_CASE("a second signal does not wait for the grace") {
  Folder folder;
  Launch job(std::vector<std::string>{"-n", "2", "--grace", "60"} + sleeper(folder.path, "trap '' INT TERM; "));
  const auto ids = ids_in(folder.path, 4);
  const auto begin = Clock::now();
  kill(job.pid(), SIGINT);
  pause_ms(200);
  kill(job.pid(), SIGINT);
  CHECK(job.wait().code == 130);
  CHECK(seconds_since(begin) < 30);
  CHECK(all_gone_soon(ids));
}

TEST_CASE("a launcher that is killed leaves no orphan, not even a grandchild") {
  Folder folder;
  Launch job(std::vector<std::string>{"-n", "2"} + sleeper(folder.path, "trap '' INT TERM HUP USR1 USR2; "));
  const auto ids = ids_in(folder.path, 4);
  // What goes to all processes of a job, as scancel's may, goes to the launcher's guard, too.
  const std::string id = std::to_string(job.pid());
  std::istringstream children(read_text("/proc/" + id + "/task/" + id + "/children"));
  for (pid_t child; children >> child;)
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) kill(child, signal);
  kill(job.pid(), SIGKILL);
  CHECK(job.wait().code == 137);
  CHECK(all_gone_soon(ids));
}

TEST_CASE("ranks are bound to cores, in turns where there are more") {
  const std::vector<std::string> show{"--", "sh", "-c", "grep Cpus_allowed_list /proc/self/status"};
  cpu_set_t cores;
  REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
  const std::string all = launch(std::vector<std::string>{"-n", "1", "--bind", "none"} + show).out;
  const std::string n = std::to_string(CPU_COUNT(&cores));
  const Ended bound = launch(std::vector<std::string>{"-n", n} + show);
  CHECK(bound.lines().size() == std::size_t(CPU_COUNT(&cores)));  // each its own
  for (const std::string& line : bound.lines()) CHECK(line.find_first_of(",-") == line.npos);
  const std::vector<std::string> oversubscribed{"-n", std::to_string(2 * CPU_COUNT(&cores))};
  CHECK(launch(oversubscribed + show).lines() == bound.lines());
  CHECK(launch(oversubscribed + std::vector<std::string>{"--bind", "none"} + show).lines() ==
        std::set<std::string>{all.substr(0, all.size() - 1)});
}

TEST_CASE("standard input is rank 0's") {
  Folder folder;
  const std::string input = folder.write("input", "hello\n", fs::perms(0600));
  CHECK(launch({"-n", "2", "sh", "-c", "exec < /dev/null; true"}).code == 0);
  const Ended e =
      launch({"-n", "1", "--", "sh", "-c", std::string(GCCL_PROGRAM) + " launch -n 3 --tag -- cat < " + input});
  CHECK(e.out == "[0] hello\n");
}
