#include "libgccl/communicator/world.hpp"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gccl {
namespace {

// What each rank tells about itself first.
struct Card {
  std::uint64_t id;  // rank 0's names the communicator
  std::uint32_t version;
  char host[244];
};

bool flag(const char* name) {
  const char* value = std::getenv(name);
  return value && *value && std::strcmp(value, "0") != 0;
}

}  // namespace

Status create_world(const GCCL_Config* config, int rank, std::unique_ptr<Communicator>* out) {
  auto world = std::make_shared<World>();
  Status s = begin(config, rank, &world->start);
  if (!s.ok()) return s;
  Start& start = world->start;
  const char* const algorithms = std::getenv("GCCL_ALGORITHM");
  if (s = Overrides::parse(algorithms ? algorithms : "", &world->overrides); !s.ok()) return s;
  world->check = flag("GCCL_CHECK");

  Card card{};
  card.version = GCCL_VERSION_CODE;
  if (::getrandom(&card.id, sizeof card.id, 0) != ssize_t(sizeof card.id)) card.id = std::uint64_t(now_ns());
  if (start.host.size() >= sizeof card.host)
    return Status::error("the host's name has " + std::to_string(start.host.size()) + " characters: expected at most " +
                             std::to_string(sizeof card.host - 1),
                         GCCL_ERR_INVALID_ARGUMENT);
  std::memcpy(card.host, start.host.data(), start.host.size());
  std::vector<std::byte> all;
  s = start.exchange->all_gather({reinterpret_cast<const std::byte*>(&card), sizeof card}, &all,
                                 start.start_timeout_ms);
  if (!s.ok()) return s;

  Communicator::Members members;
  members.rank = start.rank;
  members.world = true;
  std::vector<Card> cards(start.size);
  std::memcpy(cards.data(), all.data(), sizeof card * start.size);
  members.id = cards[0].id;
  std::vector<Rank> first;  // of each node, its lowest rank
  for (Rank r = 0; r < start.size; ++r) {
    if (cards[r].version != card.version)
      return Status::error("rank " + std::to_string(r) + " runs GCCL " + std::to_string(cards[r].version) + ", rank " +
                               std::to_string(start.rank) + " runs " + std::to_string(card.version) +
                               ": all ranks need the same",
                           GCCL_ERR_INVALID_USAGE);
    auto it = std::find_if(first.begin(), first.end(), [&](Rank f) {
      return std::memcmp(cards[f].host, cards[r].host, sizeof cards[r].host) == 0;
    });
    if (it == first.end()) it = first.insert(first.end(), r);
    members.world_rank.push_back(r);
    members.node.push_back(Rank(it - first.begin()));
  }
  const auto here = std::count(members.node.begin(), members.node.end(), members.node[start.rank]);
  world->crowded = here > ::sysconf(_SC_NPROCESSORS_ONLN) || flag("GCCL_CROWDED");
  if (s = Wires::open(start, &world->wires); !s.ok()) return s;
  Exchange& exchange = *start.exchange;
  s = Communicator::create(world, std::move(members), exchange, out);
  world->start.exchange.reset();  // nobody needs to meet any more
  if (s.ok()) (*out)->announce();
  return s;
}

}  // namespace gccl
