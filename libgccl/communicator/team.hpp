// The ranks of a communicator, what connects them, and the record of their calls. It is swapped as a whole where a
// communicator is made anew (survival.hpp).
#pragma once

#include <memory>

#include "libgccl/communicator/flight.hpp"
#include "libgccl/communicator/members.hpp"
#include "libgccl/communicator/plans.hpp"
#include "libgccl/communicator/watch.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl {

struct Team {
  std::shared_ptr<World> world;  // the same for all of a rank's
  Members members;
  std::unique_ptr<Ports> ports;
  FastPath* fast = nullptr;  // of the ports, or null
  std::shared_ptr<Watch::Record> record;
  std::unique_ptr<Plans> plans;
  Flight flight;

  Rank size() const { return members.size(); }
  Rank rank() const { return members.rank; }
};

}  // namespace gccl
