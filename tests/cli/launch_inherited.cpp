// `gccl launch` under a starter that ignores signals: daemons, nohup, a shell's background commands.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/launch_job.hpp"

using namespace gccl::test;

namespace {

// With this signal ignored from its start on.
std::unique_ptr<Program> program_ignoring(int signal, std::vector<std::string> arguments) {
  const auto before = ::signal(signal, SIG_IGN);
  auto program = std::make_unique<Program>(std::move(arguments));
  ::signal(signal, before);
  return program;
}

// Killed when it has not ended after 30 s.
Ended ended(Program& program) {
  siginfo_t info{};
  for (int i = 0; i < 3000 && info.si_pid == 0; ++i, pause_ms(10))
    if (waitid(P_PID, id_t(program.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
  if (info.si_pid == 0) kill(program.pid(), SIGKILL);
  return program.wait();
}

}  // namespace

TEST_CASE("a launcher whose starter ignores SIGCHLD learns how its ranks end") {
  for (const int code : {0, 3}) {
    CAPTURE(code);
    const auto job = program_ignoring(SIGCHLD, {"launch", "-n", "2", "--", "sh", "-c", "exit " + std::to_string(code)});
    const Ended e = ended(*job);
    CHECK_MESSAGE(e.code == code, e.err);
  }
}

TEST_CASE("a signal that is ignored where the launcher starts does not end the job") {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const Folder folder;
    const auto job = program_ignoring(
        signal, {"launch", "-n", "2", "--", "sh", "-c",
                 "cd " + folder.path.string() + "; >here.$GCCL_RANK; until [ -e go ]; do sleep 0.02; done; echo done"});
    for (const char* rank : {"here.0", "here.1"})
      for (int i = 0; i < 3000 && !fs::exists(folder.path / rank); ++i) pause_ms(10);
    kill(job->pid(), signal);
    pause_ms(200);
    folder.write("go", "");
    const Ended e = ended(*job);
    CHECK_MESSAGE(e.code == 0, e.err);
    CHECK(e.out == "done\ndone\n");
    CHECK_MESSAGE(e.err.empty(), e.err);
  }
}

TEST_CASE("gccl bench measures the launcher's ranks, also where MPI has started the launcher's shell") {
  for (const char* inherited : {"MPI_LOCALNRANKS=1", "OMPI_COMM_WORLD_SIZE=1"}) {
    CAPTURE(inherited);
    const Ended e = launch({"-n", "2", "--", GCCL_PROGRAM, "bench", "--max-bytes", "8"}, {inherited});
    CHECK_MESSAGE(e.code == 0, e.err);
    CHECK_MESSAGE(has(e.out, "# gccl bench: shm,tcp, 2 ranks on 1 node"), e.out);
  }
}
