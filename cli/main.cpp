// gccl: the one program. Exit codes: 0 all held, 1 an expectation or a check failed, 2 wrong input, 3 an internal
// error, 130 interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/bench.hpp"
#include "cli/launch.hpp"
#include "cli/list.hpp"
#include "cli/output.hpp"
#include "cli/run.hpp"
#include "cli/topology.hpp"
#include "cli/verify.hpp"
#include "sim/json/nearest.hpp"
#include "sim/json/reader.hpp"
#include "sim/scenario/pool.hpp"

namespace gccl {
namespace {

constexpr int kWrongInput = 2, kInternalError = 3;

int complain(int code, std::string_view what) {
  fmt::print(stderr, "gccl: {}\n", printable(std::string(what)));
  return code;
}

// Options as "--name" and subcommands, of the command that was being parsed.
std::string unexpected(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  const std::vector<std::string> rest = app.remaining(true);
  const std::string typed = rest.empty() ? "" : rest[0];
  std::vector<std::string> known;
  if (typed.starts_with("-")) {
    for (const CLI::Option* o : command->get_options())
      if (!o->get_lnames().empty()) known.push_back("--" + o->get_lnames()[0]);
  } else {
    for (const CLI::App* s : command->get_subcommands({})) known.push_back(s->get_name());
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view kind = typed.starts_with("-") ? "option" : known.empty() ? "argument" : "command";
  return fmt::format("unknown {} \"{}\"{}", kind, typed, suggestion(typed.substr(0, typed.find('=')), names));
}

// CLI11's own texts may span lines.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int run(int argc, char** argv) {
  CLI::App app{"General Collective Communications Library: collectives, simulated and real", "gccl"};
  app.set_version_flag("--version", "gccl " GCCL_VERSION_TEXT);
  app.get_formatter()->column_width(34);
  int exit_code = 0;
  add_run(app, exit_code);
  add_list(app, exit_code);
  add_topology(app, exit_code);
  add_verify(app, exit_code);
  add_bench(app, exit_code);
  // What follows `launch` is for it and for the program that it launches: CLI11 must not look at it.
  const int parsed = argc > 1 && std::string_view(argv[1]) == "launch" ? 2 : argc;
  add_launch(app, {argv + parsed, argv + argc}, exit_code);
  if (argc <= 1) {
    write_stdout(app.help());
    return 0;
  }
  try {
    app.parse(parsed, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ExtrasError&) {
    return complain(kWrongInput, unexpected(app));
  } catch (const CLI::ParseError& e) {
    return complain(kWrongInput, one_line(e.what()));
  }
  return exit_code;
}

}  // namespace
}  // namespace gccl

int main(int argc, char** argv) {
  try {
    return gccl::run(argc, argv);
  } catch (const gccl::json::InputError& e) {
    return gccl::complain(gccl::kWrongInput, gccl::one_line(e.what()));
  } catch (const std::bad_alloc&) {
    return gccl::complain(gccl::kInternalError, "internal error: out of memory");
  } catch (const std::exception& e) {
    return gccl::complain(gccl::kInternalError, "internal error: " + gccl::one_line(e.what()));
  }
}
