#include "libgccl/communicator/world.hpp"

#include <fmt/core.h>
#include <sys/random.h>

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

Status open_world(World* world) {
  Introduction& mine = world->introduction;
  if (::getrandom(&mine.id, sizeof mine.id, 0) != ssize_t(sizeof mine.id)) mine.id = std::uint64_t(now_ns());
  if (Status s = OpenTransports::open(world->bootstrap, &world->transports); !s.ok()) return s;
  world->recovery = Recovery::open(world->bootstrap);
  mine.contact = world->recovery->contact();
  mine.processors = processor_share();
  mine.plans = 0;
  mine.set_plans(world->bootstrap.size);
  return {};
}

// Introduces this rank to all others.
Status introduce(const World& world, Exchange& exchange, std::int64_t timeout_ms, std::vector<Introduction>* all) {
  const Introduction& mine = world.introduction;
  std::vector<std::byte> bytes;
  if (Status s = exchange.all_gather({reinterpret_cast<const std::byte*>(&mine), sizeof mine}, &bytes, timeout_ms);
      !s.ok())
    return s;
  assert(bytes.size() == sizeof mine * world.bootstrap.size);  // Exchange compares lengths
  all->resize(world.bootstrap.size);
  std::memcpy(static_cast<void*>(all->data()), bytes.data(), bytes.size());
  for (Introduction& i : *all) i.end_texts();
  return {};
}

// From what all ranks have said of themselves.
Status make_world(const std::shared_ptr<World>& world, const std::vector<Introduction>& ranks, Exchange& exchange,
                  std::unique_ptr<CommunicatorCore>* out) {
  const Bootstrap& bootstrap = world->bootstrap;
  if (Status s = compare(ranks, bootstrap.rank); !s.ok()) return s;
  Members members;
  members.rank = bootstrap.rank;
  members.world = true;
  members.id = world->id = ranks[0].id;
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
  if (Status s = world->grown ? Status() : fits_table(*world, members.node); !s.ok()) return s;
  std::vector<Contact> contacts;
  for (const Introduction& i : ranks) contacts.push_back(i.contact);
  world->recovery->meet(bootstrap.rank, std::move(contacts), members.id, bootstrap.secret);
  // Those that join hear by datagrams that they are members.
  if (const Status& s = world->recovery->usable(); (world->policy != GCCL_FAIL || world->grown) && !s.ok())
    return Status::error(
        world->grown ? s.text() : fmt::format("GCCL_ON_FAILURE is {}: {}", policy_name(world->policy), s.text()),
        s.code());
  std::vector<ProcessorShare> here;
  for (Rank r = 0; r < bootstrap.size; ++r)
    if (members.node[r] == members.node[bootstrap.rank]) here.push_back(ranks[r].processors);
  const Environment environment = process_environment();
  world->oversubscribed = read_flag(environment, "GCCL_OVERSUBSCRIBED", outnumber_processors(here));
  world->transports->oversubscribed = world->oversubscribed;
  world->watch = std::make_unique<Watch>(bootstrap.rank);
  if (Status s = CommunicatorCore::create(world, std::move(members), exchange, out); !s.ok()) return s;
  announce((*out)->team());
  return {};
}

}  // namespace

Status read_environment(World* world) {
  const Environment environment = process_environment();
  Status s = read_dump_settings(environment, &world->dumps);
  if (s.ok()) s = load_authorities(environment, &world->authorities);
  const std::string parameters = read_text(environment, "GCCL_PARAMETERS");
  std::string costs;
  if (s.ok() && !parameters.empty()) {
    s = load_transports(parameters, &world->measured, &costs);
    if (!s.ok()) s = Status::error(fmt::format("GCCL_PARAMETERS: {}", s.text()), s.code());
  }
  const std::string check = read_text(environment, "GCCL_CHECK");
  world->check = read_flag(environment, "GCCL_CHECK", false) ? std::max(std::atoi(check.c_str()), 1) : 0;
  for (const GCCL_Failure_policy p : {GCCL_FAIL, GCCL_SHRINK, GCCL_SPARE, GCCL_REJOIN})
    if (read_text(environment, "GCCL_ON_FAILURE") == policy_name(p)) world->policy = p;
  const long long link_lost_ms = std::atoll(read_text(environment, "GCCL_LINK_LOST_MS").c_str());
  world->mends = link_lost_ms > 0;
  world->link_slow = std::atoi(read_text(environment, "GCCL_LINK_SLOW").c_str());
  world->link_avoid = read_flag(environment, "GCCL_LINK_AVOID", true);
  if (s.ok() && world->link_slow == 1)
    s = invalid(
        "GCCL_LINK_SLOW is 1, expected 0 (no link is called slow), or 2 to 1000: a link is slow that reaches less "
        "than so many parts of what is expected");
  Introduction& mine = world->introduction;
  const RankSettings& settings = world->bootstrap;
  if (s.ok() && replaces(world->policy) && settings.store.empty())
    s = invalid(fmt::format("GCCL_ON_FAILURE is {}, and there is no store where processes could join: set GCCL_STORE",
                            policy_name(world->policy)));
  if (!s.ok()) return s;
  if (settings.host.size() >= sizeof mine.host)
    return Status::error(fmt::format("the host's name has {} characters: expected at most {}", settings.host.size(),
                                     sizeof mine.host - 1),
                         GCCL_ERR_INVALID_ARGUMENT);
  mine.set_host(settings.host);
  mine.set_settings({.authorities = world->authorities,
                     .check = world->check,
                     .on_failure = policy_name(world->policy),
                     .link_lost_ms = std::to_string(link_lost_ms),
                     .link_check = read_flag(environment, "GCCL_LINK_CHECK", false),
                     .link_slow = world->link_slow,
                     .link_avoid = world->link_avoid,
                     .backends = settings.backends,
                     .parameters = parameters,
                     .costs = costs});
  return {};
}

std::shared_ptr<World> world_like(const World& o, Rank rank, Rank size) {
  auto world = std::make_shared<World>();
  static_cast<RankSettings&>(world->bootstrap) = o.bootstrap;
  world->bootstrap.rank = rank;
  world->bootstrap.size = size;
  world->authorities = o.authorities;
  world->measured = o.measured;
  world->introduction = o.introduction;
  world->dumps = o.dumps;
  world->dumped = o.dumped;
  world->check = o.check;
  world->mends = o.mends;
  world->link_slow = o.link_slow;
  world->link_avoid = o.link_avoid;
  world->grown = true;
  return world;
}

Status connect_world(const std::shared_ptr<World>& world, Exchange& exchange, std::int64_t timeout_ms,
                     std::unique_ptr<CommunicatorCore>* out) {
  world->bootstrap.start_timeout_ms = std::min(world->bootstrap.start_timeout_ms, timeout_ms);
  if (Status s = open_world(world.get()); !s.ok()) return s;
  std::vector<Introduction> ranks;
  if (Status s = introduce(*world, exchange, timeout_ms, &ranks); !s.ok()) return s;
  return make_world(world, ranks, exchange, out);
}

Status create_world(const GCCL_Config* config, int rank, std::unique_ptr<CommunicatorCore>* out) {
  auto world = std::make_shared<World>();
  Status s = open_bootstrap(config, rank, &world->bootstrap);
  if (!s.ok()) return s;
  Bootstrap& bootstrap = world->bootstrap;

  // A rank that cannot start says so to the others, instead of letting them wait.
  s = bootstrap.wrong;
  if (s.ok()) s = read_environment(world.get());
  if (s.ok()) s = open_world(world.get());
  if (!s.ok()) world->introduction.set_error(s);
  std::vector<Introduction> ranks;
  const Status gathered =
      introduce(*world, *bootstrap.exchange,
                s.ok() ? bootstrap.start_timeout_ms : std::min(bootstrap.start_timeout_ms, kReportMs), &ranks);
  if (!s.ok()) return s;
  if (!gathered.ok()) return gathered;
  s = make_world(world, ranks, *bootstrap.exchange, out);
  bootstrap.exchange.reset();  // nobody needs to meet any more
  return s;
}

}  // namespace gccl
