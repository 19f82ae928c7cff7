#include "cli/launch/options.hpp"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>

#include "libgccl/bootstrap/join_report.hpp"
#include "libgccl/bootstrap/store_url.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl::launch {
namespace {

// One entry for each rank: its host, an IPv6 address without brackets, as ssh takes it. "a:2,b" has two slots on a and
// one on b.
// Returns what is wrong, or nothing.
std::string parse_hosts(const std::string& text, std::vector<std::string>* slots) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string entry = text.substr(at, end - at);
    int count = 1;
    const std::size_t colon = entry.rfind(':'), host = entry.find('@') + 1;  // 0 behind the last
    const bool bracket = entry.substr(host).starts_with("[");
    const bool v6 = std::count(entry.begin(), entry.end(), ':') > 1 && !bracket;
    if (colon != entry.npos && !v6 && !entry.ends_with(']')) {
      const auto [stop, error] = std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), count);
      if (error != std::errc() || stop != entry.data() + entry.size() || count < 1 || count > kRanksMax)
        return fmt::format("--hosts: \"{}\": expected HOST or HOST:RANKS", entry);
      entry.resize(colon);
    }
    if (bracket && entry.ends_with(']'))
      entry = entry.substr(0, host) + entry.substr(host + 1, entry.size() - host - 2);
    const bool plain = !entry.empty() && entry[0] != '-' &&
                       std::all_of(entry.begin(), entry.end(),
                                   [](unsigned char c) { return std::isalnum(c) || std::strchr("._-:@%", c); });
    if (!plain) return fmt::format("--hosts: \"{}\": expected the name or address of a host", entry);
    if (slots->size() + std::size_t(count) > kRanksMax) return fmt::format("--hosts: more than {} ranks", kRanksMax);
    slots->insert(slots->end(), std::size_t(count), entry);
    at = end + 1;
  }
  return {};
}

// Each host's own.
bool is_loopback(const std::string& entry) {
  const std::string host = host_of(entry);
  return strcasecmp(host.c_str(), "localhost") == 0 || SocketAddress::numeric(host, 0).is_loopback();
}

// How to say what the launcher's own variables hold; null for other names.
const char* said_otherwise(std::string_view name) {
  if (name == "GCCL_STORE") return "--store URL";
  if (name == "GCCL_SECRET" || name == "GCCL_SECRET_FILE") return "--secret-file FILE";
  if (name == "GCCL_RANK" || name == "GCCL_SIZE" || name == "GCCL_LOCAL_RANK" || name == "GCCL_LOCAL_SIZE")
    return "-n RANKS, or --hosts";
  if (name == "GCCL_JOIN" || name == kJoinReport) return "--spares N, or --restart N";
  return nullptr;
}

std::string parse_environment(const std::vector<std::string>& settings,
                              std::vector<std::pair<std::string, std::string>>* all) {
  for (const std::string& s : settings) {
    const std::size_t equals = s.find('=');
    const std::string name = s.substr(0, equals);
    if (!is_variable_name(name) || equals == s.npos) return fmt::format("--env: \"{}\": expected NAME=VALUE", s);
    if (const char* instead = said_otherwise(name))
      return fmt::format("--env {}: the launcher sets it by itself: use {}", name, instead);
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
  if (o->port != 0 && !o->store.empty())
    return fmt::format("--port {}: only without --store, which says where the ranks meet", o->port);
  if (!o->local && o->store.empty() && is_loopback(o->hosts[0]))
    if (const auto other = std::ranges::find_if_not(o->hosts, is_loopback); other != o->hosts.end())
      return fmt::format(
          "--hosts: the ranks meet on the first host, and \"{}\" is another one on \"{}\": expected its name or "
          "address there, or --store",
          o->hosts[0], *other);
  StoreUrl store;
  if (!o->store.empty())
    if (const Status s = parse_store(o->store, &store); !s.ok()) return fmt::format("--store: {}", s.text());
  if (!o->local && o->spares + o->restarts > 0)
    return fmt::format(
        "{}: only without --hosts; elsewhere start such processes with GCCL_JOIN=1 and the job's store and "
        "secret",
        o->spares > 0 ? "--spares" : "--restart");
  if (!o->local && o->bind == "core") return "--bind core: only without --hosts";
  if (o->program.empty() || o->program[0].empty())
    return "expected a program: gccl launch -n 4 -- PROGRAM [ARGUMENTS...]";
  return parse_environment(t.environment, &o->environment);
}

// Options that write to `o` and `t` when they are parsed.
Command table(Options& o, Typed& t) {
  Command app("Starts the ranks of a job, here or over ssh, and ends them together.", "gccl launch");
  app.prefix_command();
  app.add_option("-n,--ranks", t.ranks, "Number of ranks")->check(Range{1, kRanksMax});
  app.add_option("--hosts", t.hosts, "Run over ssh on these; rank 0 is on the first")->value("HOST[:RANKS],...");
  app.add_option("--secret-file", o.secret_file, "The job's secret (a file of mode 600) instead of a random one")
      ->value("FILE");
  app.add_option("--env", t.environment, "For every rank; may be repeated")->value("NAME=VALUE");
  app.add_option(
         "--bind", o.bind,
         "core: rank i on core i, in turns where there are more ranks; none. By default core, and none with --hosts")
      ->check(OneOf{"core", "none"});
  app.add_option("--store", o.store, "Where the ranks meet, as in GCCL_STORE, instead of a port of rank 0's host")
      ->value("URL");
  app.add_option("--port", o.port, "That port, instead of a free or random one; without --store")
      ->check(Range{1, 65535});
  app.add_option("--timeout", o.timeout_s, "Seconds the job may take")->check(Range{0.001L, 1e9L});
  app.add_option("--grace", o.grace_s, "Seconds from SIGTERM to SIGKILL")->check(Range{0, 1e6L})->capture_default_str();
  app.add_flag("--tag", o.tag, "Begin each line of output with [RANK]");
  app.add_flag("--keep-going", o.keep_going, "When a rank fails, let the others go on, so that they report the loss");
  app.add_option(
         "--spares", o.spares,
         "Start so many processes more, which wait to take the place of ranks that fail (GCCL_Comm_grow). So many "
         "ranks may fail; the others go on")
      ->value("N")
      ->check(Range{1, 1024});
  app.add_option("--restart", o.restarts,
                 "Start a rank that fails again, at most so many in all; it waits to be admitted, as a spare does")
      ->value("N")
      ->check(Range{1, 1024});
  app.takes_program();
  app.examples({"gccl launch -n 4 -- ./app --its-own-option", "gccl launch --hosts node1:8,node2:8 -- ./app"});
  return app;
}

}  // namespace

bool is_variable_name(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string host_of(const std::string& entry) { return entry.substr(entry.find('@') + 1); }

Command option_table() {
  Options o;
  Typed t;
  return table(o, t);  // to be looked at, not to be parsed with
}

Parsed<Options> parse_options(std::vector<std::string> args) {
  Options o;
  Typed t;
  Command app = table(o, t);

  // With a program before it, "--" is the program's.
  const auto end = std::find(args.begin(), args.end(), "--");
  return parse_with(app, {args.begin(), end}, o, [&] {
    o.program = app.remaining();
    if (!o.program.empty() && o.program[0].starts_with("-")) return app.unknown_option(o.program[0]);
    o.program.insert(o.program.end(), end == args.end() || !o.program.empty() ? end : end + 1, args.end());
    return resolve(t, &o);
  });
}

}  // namespace gccl::launch
