// `gccl launch`: starts the ranks of a job, here or over ssh, and ends them together.
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>

#include "cli/commands.hpp"
#include "cli/launch/job.hpp"
#include "cli/launch/options.hpp"
#include "cli/launch/port.hpp"
#include "cli/launch/ssh.hpp"
#include "cli/output.hpp"
#include "libgccl/bootstrap/join_report.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

[[noreturn]] void wrong(const std::string& text) { throw json::InputError(fmt::format("launch: {}", text)); }

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

// The same for all entries of one name, whose letters have no case (RFC 4343): users may differ.
std::string machine_of(const std::string& entry) {
  std::string name = launch::host_of(entry);
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Below the ports that systems hand out by themselves.
std::uint16_t random_port() {
  std::random_device device;
  return std::uint16_t(std::uniform_int_distribution<>(20000, 32000)(device));
}

// The launcher's own GCCL_ settings, for hosts that do not inherit them; but those of its host, and of a launcher that
// has started this one. What is no name for a shell cannot travel, nor is it any variable of GCCL's.
void add_own_settings(std::vector<std::pair<std::string, std::string>>* all) {
  for (char** v = environ; *v; ++v) {
    const std::string text = *v;
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals != text.npos && name.starts_with("GCCL_") && launch::is_variable_name(name) && name != "GCCL_SECRET" &&
        name != "GCCL_SECRET_FILE" && name != "GCCL_LAUNCH_SSH" && name != "GCCL_HOST" && name != "GCCL_ADDRESS" &&
        name != "GCCL_JOIN" && name != kJoinReport)
      all->emplace_back(name, text.substr(equals + 1));
  }
}

// Standard input holds something: a file that is not empty, or a pipe in which something has come.
bool input_given() {
  struct stat s {};
  if (fstat(STDIN_FILENO, &s) != 0) return false;
  pollfd p{STDIN_FILENO, POLLIN, 0};
  int bytes = 0;
  return S_ISREG(s.st_mode) ? s.st_size > 0
                            : S_ISFIFO(s.st_mode) && ::poll(&p, 1, 0) > 0 && (p.revents & POLLIN) &&
                                  ::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

int launch_job(const launch::Options& o) {
  std::string secret = random_secret();
  if (!o.secret_file.empty())
    if (const Status s = read_secret_file(o.secret_file, &secret); !s.ok())
      wrong(fmt::format("--secret-file: {}", s.text()));
  if (secret.find('\n') != secret.npos) wrong("--secret-file: expected a secret of one line");
  if (secret.find('\0') != secret.npos)  // no variable holds one: the secret would end there
    wrong("--secret-file: found a null byte, expected text, such as of openssl rand -hex 32");
  if (!o.local && input_given())
    write_stderr("gccl launch: standard input is not passed on with --hosts: rank 0's is empty\n");
  if (!o.local) {
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).string();
    if (error) wrong(fmt::format("--hosts: the current folder, in which ranks start: {}", error.message()));
    if (folder.find('\n') != folder.npos)
      wrong(
          "--hosts: the name of the current folder holds a newline, which cannot travel to other hosts: expected none");
  }
  Fd reservation;
  std::string store = o.store;
  if (store.empty()) {
    std::uint16_t port = std::uint16_t(o.port);
    std::string host = "127.0.0.1";
    if (!o.local) host = launch::host_of(o.hosts[0]);
    if (host.find(':') != host.npos) host = "[" + host + "]";
    if (port == 0 && o.local) reservation = launch::reserve_port(&port);
    if (port == 0) port = random_port();
    store = fmt::format("tcp://{}:{}", host, port);
  }

  const std::vector<int> cores = allowed_cores();
  // More ranks than cores too: else the scheduler puts four on two cores 3 and 1 at times, and all wait for the three.
  const bool bind = o.local && o.bind != "none" && !cores.empty();
  std::vector<std::pair<std::string, std::string>> common;
  if (!o.local) add_own_settings(&common);
  common.insert(common.end(), o.environment.begin(), o.environment.end());
  std::map<std::string, int> local_size, local_rank;
  for (const std::string& h : o.hosts) ++local_size[machine_of(h)];

  launch::Job job;
  job.tag = o.tag;
  job.keep_going = o.keep_going;
  job.timeout_ms = std::int64_t(o.timeout_s * 1000);
  job.grace_ms = std::int64_t(o.grace_s * 1000);
  for (std::size_t r = 0; r < o.hosts.size(); ++r) {
    launch::Process p;
    p.command = o.program;
    p.environment = common;
    const auto add = [&](const char* name, std::string value) { p.environment.emplace_back(name, std::move(value)); };
    add("GCCL_RANK", std::to_string(r));
    add("GCCL_SIZE", std::to_string(o.hosts.size()));
    add("GCCL_LOCAL_RANK", std::to_string(local_rank[machine_of(o.hosts[r])]++));
    add("GCCL_LOCAL_SIZE", std::to_string(local_size[machine_of(o.hosts[r])]));
    add("GCCL_STORE", store);
    add("GCCL_SECRET", secret);
    if (bind) p.core = cores[r % cores.size()];
    for (const auto& [name, value] : p.environment)
      if (!o.local && value.find('\n') != value.npos)
        wrong(fmt::format("{}: a newline cannot travel to other hosts", name));
    job.ranks.push_back(o.local ? std::move(p) : launch::over_ssh(o.hosts[r], p));
  }
  job.restarts = o.restarts;
  for (int i = 0; i < o.spares; ++i) {
    launch::Process p;
    p.command = o.program;
    p.environment = common;
    p.environment.emplace_back("GCCL_STORE", store);
    p.environment.emplace_back("GCCL_SECRET", secret);
    if (bind) p.core = cores[(o.hosts.size() + std::size_t(i)) % cores.size()];
    job.spares.push_back(std::move(p));
  }
  return launch::run(job);
}

}  // namespace

// Parses the words behind its name by itself. Sets exit_code to 0 where every rank ended well; 2 for wrong usage or an
// unknown program; 124 when the job took longer than --timeout; 130, 143 when interrupted; else that of the first rank
// that failed, 128 + N when signal N killed it, whatever the others did afterwards.
void add_launch(Command& app, int& exit_code) {
  Command* sub = app.add_subcommand("launch", "Starts the ranks of a job, here or over ssh");
  sub->parses_itself(launch::option_table);
  sub->callback([sub, &exit_code] {
    const auto parsed = launch::parse_options(sub->remaining());
    if (const auto* help = std::get_if<Help>(&parsed)) return write_stdout(help->text);
    if (const auto* bad = std::get_if<WrongOptions>(&parsed)) wrong(bad->text);
    exit_code = launch_job(std::get<launch::Options>(parsed));
  });
}

}  // namespace gccl
