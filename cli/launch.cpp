#include "cli/launch.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>

#include "cli/launch_job.hpp"
#include "cli/launch_ssh.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/net/socket.hpp"
#include "sim/json/reader.hpp"

namespace gccl {
namespace {

constexpr int kRanksMax = 65536;

struct Options {
  int ranks = 0;  // 0: as many as the hosts have slots
  std::string hosts, secret_file, store, bind;
  std::vector<std::string> environment, program;
  int port = 0;
  double timeout_s = 0, grace_s = 2;
  bool tag = false;
};

[[noreturn]] void wrong(const std::string& text) { throw json::InputError("launch: " + text); }

// One entry for each rank: its host. "a:2,b" has two slots on a and one on b.
std::vector<std::string> parse_hosts(const std::string& text) {
  std::vector<std::string> slots;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string entry = text.substr(at, end - at);
    int count = 1;
    const std::size_t colon = entry.rfind(':');
    const bool v6 = std::count(entry.begin(), entry.end(), ':') > 1 && !entry.starts_with("[");
    if (colon != entry.npos && !v6 && !entry.ends_with(']')) {
      const auto [stop, error] = std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), count);
      if (error != std::errc() || stop != entry.data() + entry.size() || count < 1 || count > kRanksMax)
        wrong(fmt::format("--hosts: \"{}\": expected HOST or HOST:RANKS", entry));
      entry.resize(colon);
    }
    const bool plain = !entry.empty() && entry[0] != '-' && std::all_of(entry.begin(), entry.end(), [](unsigned char c) {
      return std::isalnum(c) || std::strchr("._-:@%[]", c);
    });
    if (!plain) wrong(fmt::format("--hosts: \"{}\": expected the name or address of a host", entry));
    if (slots.size() + std::size_t(count) > kRanksMax) wrong(fmt::format("--hosts: more than {} ranks", kRanksMax));
    slots.insert(slots.end(), std::size_t(count), entry);
    at = end + 1;
  }
  return slots;
}

// The cores that this process may use, in order.
std::vector<int> allowed_cores() {
  constexpr int kCoresMax = 65536;
  std::vector<int> cores;
  cpu_set_t* set = CPU_ALLOC(kCoresMax);
  const std::size_t bytes = CPU_ALLOC_SIZE(kCoresMax);
  CPU_ZERO_S(bytes, set);
  if (sched_getaffinity(0, bytes, set) == 0)
    for (int c = 0; c < kCoresMax; ++c)
      if (CPU_ISSET_S(std::size_t(c), bytes, set)) cores.push_back(c);
  CPU_FREE(set);
  return cores;
}

std::vector<std::pair<std::string, std::string>> parse_environment(const std::vector<std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& s : settings) {
    const std::size_t equals = s.find('=');
    const std::string name = s.substr(0, equals);
    const bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!plain || equals == s.npos) wrong(fmt::format("--env: \"{}\": expected NAME=VALUE", s));
    all.emplace_back(name, s.substr(equals + 1));
  }
  return all;
}

// A loopback port that stays reserved while the socket lives: it is bound and does not listen, so nobody gets this port by
// chance, and rank 0, which asks for it with SO_REUSEADDR, may still listen there, again and again.
Fd reserve_port(std::uint16_t* port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const SocketAddress any = SocketAddress::loopback(0);
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(fd.get(), any.data(), any.bytes()) != 0)
    throw std::runtime_error("launch: cannot reserve a loopback port: " + std::generic_category().message(errno));
  *port = SocketAddress::local_end(fd.get()).port();
  return fd;
}

// Below the ports that systems hand out by themselves.
std::uint16_t random_port() {
  std::random_device device;
  return std::uint16_t(std::uniform_int_distribution<>(20000, 32000)(device));
}

// The launcher's own GCCL_ settings, for hosts that do not inherit them.
void add_own_settings(std::vector<std::pair<std::string, std::string>>* all) {
  for (char** v = environ; *v; ++v) {
    const std::string text = *v;
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals != text.npos && name.starts_with("GCCL_") && name != "GCCL_SECRET" && name != "GCCL_SECRET_FILE" &&
        name != "GCCL_LAUNCH_SSH" && name != "GCCL_HOST" && name != "GCCL_ADDRESS")
      all->emplace_back(name, text.substr(equals + 1));
  }
}

int launch_job(const Options& o) {
  const bool local = o.hosts.empty();
  std::vector<std::string> hosts = local ? std::vector<std::string>(std::size_t(o.ranks)) : parse_hosts(o.hosts);
  if (local && o.ranks == 0) wrong("expected -n RANKS, or --hosts");
  if (std::size_t(o.ranks) > hosts.size())
    wrong(fmt::format("-n {}: --hosts has room for {} (HOST:RANKS gives a host more)", o.ranks, hosts.size()));
  if (o.ranks > 0) hosts.resize(std::size_t(o.ranks));
  if (!local && o.bind == "core") wrong("--bind core: only without --hosts");

  std::string secret = random_secret();
  if (!o.secret_file.empty())
    if (const Status s = read_secret_file(o.secret_file, &secret); !s.ok()) wrong("--secret-file: " + s.text());
  if (secret.find('\n') != secret.npos) wrong("--secret-file: expected a secret of one line");
  Fd reservation;
  std::string store = o.store;
  if (store.empty()) {
    std::uint16_t port = std::uint16_t(o.port);
    std::string host = "127.0.0.1";
    if (!local) host = hosts[0].substr(hosts[0].find('@') + 1);
    if (std::count(host.begin(), host.end(), ':') && !host.starts_with("[")) host = "[" + host + "]";
    if (port == 0 && local) reservation = reserve_port(&port);
    if (port == 0) port = random_port();
    store = fmt::format("tcp://{}:{}", host, port);
  }

  const std::vector<int> cores = allowed_cores();
  const bool bind = local && o.bind != "none" && (o.bind == "core" || hosts.size() <= cores.size()) && !cores.empty();
  std::vector<std::pair<std::string, std::string>> common;
  if (!local) add_own_settings(&common);
  for (auto& setting : parse_environment(o.environment)) common.push_back(std::move(setting));
  std::map<std::string, int> local_size, local_rank;
  for (const std::string& h : hosts) ++local_size[h];

  launch::Job job;
  job.tag = o.tag;
  job.timeout_ms = std::int64_t(o.timeout_s * 1000);
  job.grace_ms = std::int64_t(o.grace_s * 1000);
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    launch::Process p;
    p.command = o.program;
    p.environment = common;
    const auto add = [&](const char* name, std::string value) { p.environment.emplace_back(name, std::move(value)); };
    add("GCCL_RANK", std::to_string(r));
    add("GCCL_SIZE", std::to_string(hosts.size()));
    add("GCCL_LOCAL_RANK", std::to_string(local_rank[hosts[r]]++));
    add("GCCL_LOCAL_SIZE", std::to_string(local_size[hosts[r]]));
    add("GCCL_STORE", store);
    add("GCCL_SECRET", secret);
    if (bind) p.core = cores[r % cores.size()];
    for (const auto& [name, value] : p.environment)
      if (!local && value.find('\n') != value.npos) wrong(fmt::format("{}: a newline cannot travel to other hosts", name));
    job.ranks.push_back(local ? std::move(p) : launch::over_ssh(hosts[r], p));
  }
  return launch::run(job);
}

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* launch = app.add_subcommand("launch", "Start the ranks of a job, here or over ssh: gccl launch -n 4 -- ./app");
  launch->prefix_command();
  launch->allow_extras();  // what follows "--"
  launch->add_option("-n,--ranks", o->ranks, "Number of ranks")->check(CLI::Range(1, kRanksMax));
  launch->add_option("--hosts", o->hosts, "Run over ssh on these: HOST[:RANKS],...; rank 0 is on the first");
  launch->add_option("--secret-file", o->secret_file, "The job's secret (mode 600) instead of a random one");
  launch->add_option("--env", o->environment, "NAME=VALUE for every rank; may be repeated")->allow_extra_args(false);
  launch->add_option("--bind", o->bind, "core: rank i on core i; none. By default core when there are enough")
      ->check(CLI::IsMember({"core", "none"}));
  launch->add_option("--store", o->store, "Where the ranks meet, as GCCL_STORE, instead of a port of rank 0's host");
  launch->add_option("--port", o->port, "That port, instead of a free or random one")->check(CLI::Range(1, 65535));
  launch->add_option("--timeout", o->timeout_s, "Seconds the job may take")->check(CLI::Range(0.001, 1e9));
  launch->add_option("--grace", o->grace_s, "Seconds from SIGTERM to SIGKILL, 2 by default")->check(CLI::Range(0.0, 1e6));
  launch->add_flag("--tag", o->tag, "Begin each line of output with [RANK]");
  launch->callback([o, launch, &exit_code] {
    o->program = launch->remaining();
    if (!o->program.empty() && o->program[0] == "--") o->program.erase(o->program.begin());
    if (o->program.empty()) wrong("expected a program: gccl launch -n 4 -- PROGRAM [ARGUMENTS...]");
    if (o->program[0].empty()) wrong("the program's name is empty");
    exit_code = launch_job(*o);
  });
}

}  // namespace gccl
