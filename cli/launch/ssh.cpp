#include "cli/launch/ssh.hpp"

#include <filesystem>
#include <sstream>

#include "cli/output.hpp"
#include "libgccl/base/environment.hpp"

namespace gccl::launch {
namespace {

// Runs "$@" in a session of its own, and at the same time, in another one, a shell that passes signals on and kills it
// when nobody is left to send any. The rank is no background command: for those a shell ignores SIGINT and SIGQUIT, and
// what it starts cannot undo that (POSIX, 2.11). Its first argument is this text itself, as kScript hands all on. One
// line, as some login shells know no newlines within quotes.
constexpr const char* kRank =
    "shift; setsid sh -c \"while IFS= read -r name; do kill -s \\\"\\$name\\\" -- -$$; done; kill -s KILL -- -$$\" "
    "<&3 3<&- 4>&- >/dev/null 2>&1 & echo $$ $!; exec \"$@\" </dev/null 3<&- >&4 4>&-";
// What it reads goes to the program, so that none of its own variables may have a name that a user chooses.
constexpr const char* kScript =
    "while IFS= read -r GCCL_LAUNCH_LINE && [ \"$GCCL_LAUNCH_LINE\" != . ]; do eval \"export $GCCL_LAUNCH_LINE\"; "
    "done; "
    "[ \"$GCCL_LAUNCH_LINE\" = . ] || exit 125; "
    "cd \"$GCCL_LAUNCH_FOLDER\" || exit 125; unset GCCL_LAUNCH_LINE GCCL_LAUNCH_FOLDER; "
    "exec 3<&0 4>&1; ids=$(setsid sh -c \"$1\" gccl-rank \"$@\"); code=$?; "
    "kill -s KILL -- ${ids#* } -${ids% *} 2>/dev/null; exit $code";

}  // namespace

Process over_ssh(const std::string& host, const Process& rank) {
  Process ssh;
  const std::string command = read_text(process_environment(), "GCCL_LAUNCH_SSH");
  std::istringstream words(command.empty() ? "ssh" : command);
  for (std::string word; words >> word;) ssh.command.push_back(word);
  std::string remote = "exec sh -c " + shell_quoted(kScript) + " gccl-launch " + shell_quoted(kRank);
  for (const std::string& word : rank.command) remote += " " + shell_quoted(word);
  ssh.command.insert(ssh.command.end(), {"-o", "BatchMode=yes", host, remote});
  ssh.remote = true;
  for (const auto& [name, value] : rank.environment) ssh.input += name + "=" + shell_quoted(value) + "\n";
  ssh.input += "GCCL_LAUNCH_FOLDER=" + shell_quoted(std::filesystem::current_path().string()) + "\n.\n";
  return ssh;
}

}  // namespace gccl::launch
