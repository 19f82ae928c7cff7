#include "cli/launch_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "sim/json/nearest.hpp"

namespace gccl::launch {
namespace {

// One entry for each rank: its host. "a:2,b" has two slots on a and one on b.
// Returns what is wrong, or nothing.
std::string parse_hosts(const std::string& text, std::vector<std::string>* slots) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string entry = text.substr(at, end - at);
    int count = 1;
    const std::size_t colon = entry.rfind(':');
    const bool v6 = std::count(entry.begin(), entry.end(), ':') > 1 && !entry.starts_with("[");
    if (colon != entry.npos && !v6 && !entry.ends_with(']')) {
      const auto [stop, error] = std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), count);
      if (error != std::errc() || stop != entry.data() + entry.size() || count < 1 || count > kRanksMax)
        return fmt::format("--hosts: \"{}\": expected HOST or HOST:RANKS", entry);
      entry.resize(colon);
    }
    const bool plain = !entry.empty() && entry[0] != '-' &&
                       std::all_of(entry.begin(), entry.end(),
                                   [](unsigned char c) { return std::isalnum(c) || std::strchr("._-:@%[]", c); });
    if (!plain) return fmt::format("--hosts: \"{}\": expected the name or address of a host", entry);
    if (slots->size() + std::size_t(count) > kRanksMax) return fmt::format("--hosts: more than {} ranks", kRanksMax);
    slots->insert(slots->end(), std::size_t(count), entry);
    at = end + 1;
  }
  return {};
}

std::string parse_environment(const std::vector<std::string>& settings,
                              std::vector<std::pair<std::string, std::string>>* all) {
  for (const std::string& s : settings) {
    const std::size_t equals = s.find('=');
    const std::string name = s.substr(0, equals);
    const bool plain =
        !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!plain || equals == s.npos) return fmt::format("--env: \"{}\": expected NAME=VALUE", s);
    all->emplace_back(name, s.substr(equals + 1));
  }
  return {};
}

// As typed, before it is understood.
struct Typed {
  int ranks = 0;
  std::string hosts;
  std::vector<std::string> environment;
};

// Returns what is wrong, or nothing.
std::string resolve(const Typed& t, Options* o) {
  o->local = t.hosts.empty();
  if (o->local && t.ranks == 0) return "expected -n RANKS, or --hosts";
  o->hosts.resize(o->local ? std::size_t(t.ranks) : 0);
  if (!o->local)
    if (std::string bad = parse_hosts(t.hosts, &o->hosts); !bad.empty()) return bad;
  if (std::size_t(t.ranks) > o->hosts.size())
    return fmt::format("-n {}: --hosts has room for {} (HOST:RANKS gives a host more)", t.ranks, o->hosts.size());
  if (t.ranks > 0) o->hosts.resize(std::size_t(t.ranks));
  if (!o->local && o->bind == "core") return "--bind core: only without --hosts";
  if (o->program.empty() || o->program[0].empty())
    return "expected a program: gccl launch -n 4 -- PROGRAM [ARGUMENTS...]";
  return parse_environment(t.environment, &o->environment);
}

}  // namespace

std::variant<Options, Help, Wrong> parse_options(std::vector<std::string> args) {
  Options o;
  Typed t;
  CLI::App app{
      "Starts the ranks of a job, here or over ssh, and ends them together.\n"
      "gccl launch -n RANKS [OPTIONS] -- PROGRAM [ARGUMENTS...]",
      "gccl launch"};
  app.get_formatter()->column_width(34);
  app.prefix_command();
  app.add_option("-n,--ranks", t.ranks, "Number of ranks")->check(CLI::Range(1, kRanksMax));
  app.add_option("--hosts", t.hosts, "Run over ssh on these: HOST[:RANKS],...; rank 0 is on the first");
  app.add_option("--secret-file", o.secret_file, "The job's secret (a file of mode 600) instead of a random one");
  app.add_option("--env", t.environment, "NAME=VALUE for every rank; may be repeated")->allow_extra_args(false);
  app.add_option("--bind", o.bind, "core: rank i on core i, in turns where there are more ranks; none. By default core")
      ->check(CLI::IsMember({"core", "none"}));
  app.add_option("--store", o.store, "Where the ranks meet, as in GCCL_STORE, instead of a port of rank 0's host");
  app.add_option("--port", o.port, "That port, instead of a free or random one")->check(CLI::Range(1, 65535));
  app.add_option("--timeout", o.timeout_s, "Seconds the job may take")->check(CLI::Range(0.001, 1e9));
  app.add_option("--grace", o.grace_s, "Seconds from SIGTERM to SIGKILL (2)")->check(CLI::Range(0.0, 1e6));
  app.add_flag("--tag", o.tag, "Begin each line of output with [RANK]");
  app.add_flag("--keep-going", o.keep_going, "When a rank fails, let the others go on, so that they report the loss");

  // CLI11 has a meaning of its own for "--", and takes words last first.
  const auto end = std::find(args.begin(), args.end(), "--");
  std::vector<std::string> before(args.begin(), end);
  std::reverse(before.begin(), before.end());
  try {
    app.parse(before);
  } catch (const CLI::CallForHelp&) {
    return Help{app.help()};
  } catch (const CLI::ParseError& e) {
    return Wrong{e.what()};
  }
  o.program = app.remaining();
  if (!o.program.empty() && o.program[0].starts_with("-")) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) known.push_back("--" + option->get_lnames()[0]);
    const std::vector<std::string_view> names(known.begin(), known.end());
    const std::string& typed = o.program[0];
    return Wrong{fmt::format("unknown option \"{}\"{}", typed, suggestion(typed.substr(0, typed.find('=')), names))};
  }
  // With a program before it, "--" is the program's.
  o.program.insert(o.program.end(), end == args.end() || !o.program.empty() ? end : end + 1, args.end());
  if (std::string bad = resolve(t, &o); !bad.empty()) return Wrong{bad};
  return o;
}

}  // namespace gccl::launch
