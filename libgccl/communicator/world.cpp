#include "libgccl/communicator/world.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include "libgccl/base/environment.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/introduction.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kReportMs = 5000;  // a rank that cannot start waits so long for the others, to say so

bool flag(const Environment& environment, const char* name) {
  const std::string value = read_text(environment, name);
  return !value.empty() && value != "0";
}

// The same on every rank, as the table is.
Status fits_table(const World& world, const std::vector<Rank>& node) {
  if (!world.authorities.table) return {};
  std::vector<Rank> ranks;  // by node
  for (const Rank n : node) {
    ranks.resize(std::max<std::size_t>(ranks.size(), n + 1));
    ++ranks[n];
  }
  const Status s = check_machine(*world.authorities.table, {.nodes = Rank(ranks.size()),
                                                            .ranks_per_node = *std::ranges::max_element(ranks),
                                                            .backends = world.bootstrap.backends});
  return s.ok() ? s : Status::error(fmt::format("GCCL_TUNING_FILE: {}", s.text()), s.code());
}

}  // namespace

Status create_world(const GCCL_Config* config, int rank, std::unique_ptr<CommunicatorCore>* out) {
  auto world = std::make_shared<World>();
  Status s = open_bootstrap(config, rank, &world->bootstrap);
  if (!s.ok()) return s;
  Bootstrap& bootstrap = world->bootstrap;

  // A rank that cannot start says so to the others, instead of letting them wait.
  s = bootstrap.wrong;
  const Environment environment = process_environment();
  if (s.ok()) s = read_dump_settings(environment, &world->dumps);
  if (s.ok()) s = load_authorities(environment, &world->authorities);
  const std::string parameters = read_text(environment, "GCCL_PARAMETERS");
  std::string costs;
  if (s.ok() && !parameters.empty()) {
    s = load_transports(parameters, &world->measured, &costs);
    if (!s.ok()) s = Status::error(fmt::format("GCCL_PARAMETERS: {}", s.text()), s.code());
  }
  const std::string check = read_text(environment, "GCCL_CHECK");
  world->check = flag(environment, "GCCL_CHECK") ? std::max(std::atoi(check.c_str()), 1) : 0;
  world->shrinks = read_text(environment, "GCCL_ON_FAILURE") == "shrink";
  const long long link_lost_ms = std::atoll(read_text(environment, "GCCL_LINK_LOST_MS").c_str());
  world->mends = link_lost_ms > 0;
  Introduction mine;
  mine.version = GCCL_VERSION_CODE;
  if (::getrandom(&mine.id, sizeof mine.id, 0) != ssize_t(sizeof mine.id)) mine.id = std::uint64_t(now_ns());
  if (s.ok() && bootstrap.host.size() >= sizeof mine.host)
    s = Status::error(fmt::format("the host's name has {} characters: expected at most {}", bootstrap.host.size(),
                                  sizeof mine.host - 1),
                      GCCL_ERR_INVALID_ARGUMENT);
  if (s.ok()) s = OpenTransports::open(bootstrap, &world->transports);
  if (s.ok()) {
    world->recovery = Recovery::open(bootstrap);
    std::memcpy(mine.host, bootstrap.host.data(), bootstrap.host.size());
    mine.contact = world->recovery->contact();
    mine.set_plans(bootstrap.size);
    mine.set_settings(world->authorities, world->check, world->shrinks ? "shrink" : "fail",
                      std::to_string(link_lost_ms), bootstrap.backends, parameters, costs);
  } else {
    mine.set_error(s);
  }
  std::vector<std::byte> all;
  const Status gathered = bootstrap.exchange->all_gather(
      {reinterpret_cast<const std::byte*>(&mine), sizeof mine}, &all,
      s.ok() ? bootstrap.start_timeout_ms : std::min(bootstrap.start_timeout_ms, kReportMs));
  if (!s.ok()) return s;
  if (!gathered.ok()) return gathered;
  assert(all.size() == sizeof mine * bootstrap.size);  // Exchange compares lengths

  Members members;
  members.rank = bootstrap.rank;
  members.world = true;
  std::vector<Introduction> ranks(bootstrap.size);
  std::memcpy(static_cast<void*>(ranks.data()), all.data(), sizeof mine * bootstrap.size);
  for (Introduction& i : ranks) i.end_texts();
  members.id = ranks[0].id;
  if (s = compare(ranks, bootstrap.rank); !s.ok()) return s;
  std::vector<Rank> first;  // of each node, its lowest rank
  for (Rank r = 0; r < bootstrap.size; ++r) {
    auto it = std::find_if(first.begin(), first.end(), [&](Rank f) {
      return std::memcmp(ranks[f].host, ranks[r].host, sizeof ranks[r].host) == 0;
    });
    if (it == first.end()) it = first.insert(first.end(), r);
    members.world_rank.push_back(r);
    members.node.push_back(Rank(it - first.begin()));
  }
  assert(members.node.size() == bootstrap.size && first.size() <= bootstrap.size);
  if (s = fits_table(*world, members.node); !s.ok()) return s;
  std::vector<Contact> contacts;
  for (const Introduction& i : ranks) contacts.push_back(i.contact);
  world->recovery->meet(bootstrap.rank, std::move(contacts), members.id, bootstrap.secret);
  if (s = world->recovery->usable(); world->shrinks && !s.ok())
    return Status::error(fmt::format("GCCL_ON_FAILURE is shrink: {}", s.text()), s.code());
  const auto here = std::count(members.node.begin(), members.node.end(), members.node[bootstrap.rank]);
  world->oversubscribed = here > ::sysconf(_SC_NPROCESSORS_ONLN) || flag(environment, "GCCL_OVERSUBSCRIBED");
  Exchange& exchange = *bootstrap.exchange;
  world->watch = std::make_unique<Watch>(bootstrap.rank);
  s = CommunicatorCore::create(world, std::move(members), exchange, out);
  world->bootstrap.exchange.reset();  // nobody needs to meet any more
  if (s.ok()) announce((*out)->team());
  return s;
}

}  // namespace gccl
