// The ranks of a communicator, what connects them, and the record of their calls.
#pragma once

#include <memory>
#include <utility>

#include "libgccl/communicator/links/link_watch.hpp"
#include "libgccl/communicator/plans.hpp"
#include "libgccl/communicator/record/flight.hpp"
#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/watch/watch.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl {

// Any thread may read the world, unless processes take the places of ranks that fail: all else, and then that, too,
// with the communicator's lock held, or by the thread that makes calls there, as nobody else has a communicator made
// anew.
struct Team {
  std::shared_ptr<World> world;
  Members members;
  std::unique_ptr<Ports> ports;
  FastPath* fast = nullptr;  // of the ports, or null
  std::shared_ptr<Watch::Record> record;
  std::unique_ptr<Plans> plans;
  std::unique_ptr<LinkWatch> links;  // null: nobody looks for slow ones
  Flight flight;

  Rank size() const { return members.size(); }
  Rank rank() const { return members.rank; }

  // A communicator is made anew (survival.hpp).
  void swap(Team& o) noexcept {
    std::swap(world, o.world);
    std::swap(members, o.members);
    std::swap(ports, o.ports);
    std::swap(fast, o.fast);
    std::swap(record, o.record);
    std::swap(plans, o.plans);
    std::swap(links, o.links);
    std::swap(flight, o.flight);
  }
};

}  // namespace gccl
