// gccl: the one program. Exit codes: 0 all held, 1 an expectation or a check failed, 2 wrong input, 3 an internal
// error or what the machine refused, 130 interrupted.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <memory>

#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "libgccl/base/system_refused.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/scenario/run/pool.hpp"

namespace gccl {
namespace {

constexpr int kWrongInput = 2, kInternalError = 3;

int complain(int code, std::string_view what) {
  write_stderr(fmt::format("gccl: {}\n", printable(what)));
  return code;
}

// The texts of exceptions may span lines.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int run(int argc, char** argv) {
  share_catalogue();
  Command app("General Collective Communications Library: collectives, simulated and real", "gccl");
  app.add_version_flag();
  int exit_code = 0;
  add_commands(app, exit_code, argc > 1 ? argv[1] : "");
  if (argc <= 1) {
    write_stdout(app.help());
    return 0;
  }
  try {
    app.parse({argv + 1, argv + argc});
  } catch (const UsageError& e) {
    return complain(kWrongInput, one_line(e.what()));
  }
  if (app.asked() == Command::Asked::help) write_stdout(app.help());
  if (app.asked() == Command::Asked::version) write_stdout("gccl " GCCL_VERSION_TEXT "\n");
  return exit_code;
}

// A limit on the size of files makes a write fail, as a full disk does. By a handler, as programs that this one starts
// or becomes then have the default again.
void outlive_file_size_limit() {
  struct sigaction action {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

void add_help(Command& app, int&) {
  const auto verb = std::make_shared<std::string>();
  Command* help = app.add_subcommand("help", "Prints the help of a command");
  help->add_option("command", *verb, "The command; without it the list of all");
  help->callback([verb, &app] { write_stdout(verb->empty() ? app.help_of(app) : app.help_of(app.subcommand(*verb))); });
}

}  // namespace gccl

int main(int argc, char** argv) {
  gccl::reserve_standard_streams();
  gccl::outlive_file_size_limit();
  ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, as a daemon may hand on, nobody learns how a child has ended
  try {
    return gccl::run(argc, argv);
  } catch (const gccl::json::InputError& e) {
    return gccl::complain(gccl::kWrongInput, gccl::one_line(e.what()));
  } catch (const gccl::SystemRefused& e) {
    return gccl::complain(gccl::kInternalError, gccl::one_line(e.what()));
  } catch (const std::bad_alloc&) {
    return gccl::complain(gccl::kInternalError, "out of memory");
  } catch (const std::exception& e) {
    return gccl::complain(gccl::kInternalError, fmt::format("internal error: {}", gccl::one_line(e.what())));
  }
}
