#include "libgccl/bootstrap/bootstrap.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cassert>

#include "libgccl/base/limits.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/bootstrap/file_store.hpp"
#include "libgccl/bootstrap/host.hpp"
#include "libgccl/bootstrap/identity.hpp"
#include "libgccl/bootstrap/job_place.hpp"
#include "libgccl/bootstrap/settings.hpp"
#include "libgccl/bootstrap/store_url.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/bootstrap/variables.hpp"

namespace gccl {
namespace {

using Machines = Identity::Machines;

// A job of one rank.
class Alone : public Exchange {
 public:
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t) override {
    all->assign(mine.begin(), mine.end());
    return {};
  }
};

// torchrun's own store lives at MASTER_PORT: ours is next to it.
Status torchrun_store(const Environment& environment, Machines machines, HostPort* at) {
  const char* address = environment("MASTER_ADDR");
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (!environment(name))
      return invalid(fmt::format("{} is not set although RANK and WORLD_SIZE are: set it, or GCCL_STORE", name));
  std::int64_t port = 0;
  bool found = false;
  if (Status s = read_number(environment, "MASTER_PORT", 1, 65534, &port, &found); !s.ok()) return s;
  // On one machine loopback will do, which takes no secret.
  *at = {machines == Machines::one ? "127.0.0.1" : address, std::uint16_t(port + 1)};
  return {};
}

// Where to meet when no store is named.
Status default_store(const Environment& environment, const Identity& identity, std::string* url) {
  const Launcher* launcher = identity.launcher;
  const std::string ranks = fmt::format("the job has {} ranks", identity.size);
  if (!launcher || launcher->kind == Launcher::Kind::gccl)
    return invalid(fmt::format(
        "{} and no place to meet: set GCCL_STORE to \"tcp://HOST:PORT\" (rank 0 listens there) or \"file:///PATH\"",
        ranks));
  if (launcher->kind == Launcher::Kind::torchrun) {
    HostPort at;
    if (Status s = torchrun_store(environment, identity.machines, &at); !s.ok()) return s;
    *url = text_of(at);
    return {};
  }
  // srun tells what it starts which step it belongs to; a batch script has the allocation's size alone.
  if (launcher->kind == Launcher::Kind::slurm && !environment("SLURM_STEP_ID"))
    return invalid(fmt::format(
        "{} by SLURM's variables, and srun has not started this process (SLURM_STEP_ID is not set): expected "
        "srun before the program, or GCCL_RANK=0 and GCCL_SIZE=1 where it is to be alone",
        ranks));
  if (identity.machines == Machines::several)
    return invalid(
        fmt::format("{} on several machines, started by {}: set GCCL_STORE to \"tcp://HOST:PORT\" with the host of "
                    "rank 0, and GCCL_SECRET",
                    ranks, launcher->name));
  std::string prefix;
  if (Status s = job_prefix(environment, *launcher, &prefix); !s.ok()) return s;
  *url = "file://" + prefix;
  return {};
}

Status open_store(const std::string& url, const Bootstrap& bootstrap, std::unique_ptr<Exchange>* out) {
  StoreUrl store;
  if (Status s = parse_store(url, &store); !s.ok()) return s;
  if (store.at)
    return open_tcp_store({*store.at, bootstrap.rank, bootstrap.size, bootstrap.secret, bootstrap.start_timeout_ms},
                          out);
  return open_file_store({store.prefix, bootstrap.rank, bootstrap.size, bootstrap.secret}, out);
}

RankSettings resolved(RankSettings settings) {
  if (settings.host.empty()) settings.host = host_identity();
  return settings;
}

}  // namespace

Status CallersExchange::all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t) {
  all->assign(mine.size() * size_, std::byte());
  const int result = function_(mine.data(), all->data(), mine.size(), context_);
  if (result == 0) return {};
  return Status::error(fmt::format("the all-gather in GCCL_Config.allgather returned {}, expected 0", result),
                       GCCL_ERR_SYSTEM);
}

Status read_joining(const GCCL_Config* config, RankSettings* out, Rank* wish) {
  const GCCL_Config defaults = GCCL_CONFIG_INIT;
  std::int64_t rank = config && config->rank >= 0 ? config->rank : -1;
  const Environment environment = without_empty(process_environment());
  Settings settings;
  Status s = read_settings(config ? *config : defaults, environment, &settings);
  if (s.ok()) s = check_values(environment);
  bool found = false;
  if (s.ok() && rank < 0) s = read_number(environment, "GCCL_RANK", 0, kRanksMax - 1, &rank, &found);
  if (!s.ok()) return s;
  if (settings.store.empty())
    return invalid("a process that joins needs the job's store: set GCCL_STORE as the members have it");
  StoreUrl url;
  if (s = parse_store(settings.store, &url); !s.ok()) return s;
  *out = resolved(settings);
  *wish = rank < 0 ? kNobody : Rank(rank);
  return {};
}

Status open_bootstrap(const GCCL_Config* config, int rank, Bootstrap* out) {
  const GCCL_Config defaults = GCCL_CONFIG_INIT;
  const GCCL_Config& c = config ? *config : defaults;
  const Environment environment = without_empty(process_environment());
  Settings settings;
  Status wrong = read_settings(c, environment, &settings);
  if (Status s = check_values(environment); !s.ok()) wrong = s;
  if (!wrong.ok() && !settings.can_meet) return wrong;
  Identity identity;
  if (Status s = identify(environment, rank >= 0 ? rank : c.rank, c.size, &identity); !s.ok()) return s;
  if (!identity.wrong.ok()) wrong = identity.wrong;
  const bool stated = c.rank != -1 || c.size != -1 || rank >= 0 || identity.launcher;
  if (!stated && (!settings.store.empty() || c.allgather))
    return invalid(fmt::format("{} is given, but not which rank this is and of how many: set GCCL_RANK and GCCL_SIZE",
                               c.allgather ? "an all-gather" : "a store"));

  static std::atomic<bool> warned{false};
  if (identity.rank == 0 && !warned.exchange(true))
    for (const std::string& text : unknown_variables(environ)) log_line(kLogWarnings, text);

  Bootstrap bootstrap;
  static_cast<RankSettings&>(bootstrap) = resolved(settings);
  bootstrap.rank = identity.rank;
  bootstrap.size = identity.size;
  bootstrap.wrong = wrong;
  if (c.allgather) {
    bootstrap.exchange = std::make_unique<CallersExchange>(c.allgather, c.allgather_context, bootstrap.size);
  } else if (bootstrap.size == 1) {
    bootstrap.exchange = std::make_unique<Alone>();
  } else {
    std::string& url = bootstrap.store;
    if (url.empty())
      if (Status s = default_store(environment, identity, &url); !s.ok()) return s;
    if (Status s = open_store(url, bootstrap, &bootstrap.exchange); !s.ok()) return s;
  }
  assert(bootstrap.rank < bootstrap.size && bootstrap.exchange);
  *out = std::move(bootstrap);
  return {};
}

}  // namespace gccl
