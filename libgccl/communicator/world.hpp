// From a configuration to the communicator of all ranks, and what the communicators of one rank share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "libgccl/base/ticks.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/communicator/introduction.hpp"
#include "libgccl/communicator/record/dump.hpp"
#include "libgccl/communicator/recovery/policy.hpp"
#include "libgccl/communicator/recovery/recovery.hpp"
#include "libgccl/communicator/watch/comparison.hpp"
#include "libgccl/communicator/watch/watch.hpp"
#include "libgccl/select/authorities.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

class CommunicatorCore;

// Communicators that had failed, and how: the latest ones. Any thread.
class FailedBefore {
 public:
  void add(FailedHere f) noexcept {
    const std::lock_guard lock(lock_);
    kept_[count_++ % kKept] = f;
  }
  std::vector<FailedHere> all() const {
    const std::lock_guard lock(lock_);
    return {kept_.begin(), kept_.begin() + std::ptrdiff_t(std::min(count_, kKept))};
  }

 private:
  static constexpr std::size_t kKept = 256;  // there from the start, as ending must not fail
  mutable std::mutex lock_;
  std::size_t count_ = 0;
  std::array<FailedHere, kKept> kept_;
};

// What the communicators of one rank share.
struct World {
  std::uint64_t id = 0;  // the same on all ranks; once processes have joined it is another world
  Bootstrap bootstrap;
  std::unique_ptr<OpenTransports> transports;
  std::unique_ptr<Watch> watch;
  std::unique_ptr<Recovery> recovery;
  Authorities authorities;                          // GCCL_ALGORITHM, GCCL_ALGO, GCCL_TUNING_FILE
  std::shared_ptr<const TransportModels> measured;  // GCCL_PARAMETERS; null: plans go by what is compiled in
  const TransportModels& models() const { return measured ? *measured : transport_models(); }
  Introduction introduction;  // of this rank to the others
  // Where processes have joined: the ranks of GCCL_Comm_get_joined; and by rank, on those that were members, which rank
  // of the communicator that grew that was, or kNobody.
  bool grown = false;
  std::vector<Rank> joined, was;
  std::vector<Rank> started_as;  // rejoin: the rank that each was when there were as many as there should be
  DumpSettings dumps;
  TickClock clock;  // of the communicators' flight recorders
  // Because of a failure: of any of this process's worlds, as the ranks of all write files of the same names.
  std::shared_ptr<std::atomic<bool>> dumped = std::make_shared<std::atomic<bool>>(false);
  std::atomic<std::uint64_t> dumped_ticks{0};       // when the latest of these was written in this world; 0: none was
  std::atomic<std::uint32_t> asked{dumps_asked()};  // of dumps_asked(), those that have been written
  int check = 0;           // GCCL_CHECK: 1: compare all ranks' calls before each, 2: and results after it
  bool mends = false;      // GCCL_LINK_LOST_MS is not 0: what was sent may have to be sent again
  int link_slow = 0;       // GCCL_LINK_SLOW: a link with less than so many parts of its due is; 0: none is
  bool link_avoid = true;  // GCCL_LINK_AVOID: calls are planned around those
  GCCL_Failure_policy policy = GCCL_FAIL;  // GCCL_ON_FAILURE: of the world's communicator
  // The one that goes on without failed ranks by itself, or null. With two, ranks that have failed calls on one and
  // others that are a call further, on the other, would wait for each other.
  std::atomic<const CommunicatorCore*> shrinker{nullptr};
  bool oversubscribed = false;  // more ranks than processors on this machine
  // Some communicator ended here without the others' word, so that they may still have it.
  std::atomic<bool> uneven{false};
  // Those that had failed before they ended here: a rank that still has one may not have heard that.
  FailedBefore failed_before;
  // Known from GCCL_Finalize on: communicators that failed on some rank, and how.
  struct Failed {
    std::uint64_t communicator;
    Rank rank;
    std::int32_t code;
  };
  std::vector<Failed> failed;
};

// A world of the same process, with its settings, as that rank of so many. It has nothing in common with `o` but these.
std::shared_ptr<World> world_like(const World& o, Rank rank, Rank size);

// The last part of making one: opens what it needs, introduces this rank to the others and connects them. Collective
// over the ranks that `exchange` connects; gives up after timeout_ms in each exchange.
Status connect_world(const std::shared_ptr<World>& world, Exchange& exchange, std::int64_t timeout_ms,
                     std::unique_ptr<CommunicatorCore>* out);

// Makes this process rank `rank` of the job (negative: as the configuration or the environment says). Collective over
// all ranks.
Status create_world(const GCCL_Config* config, int rank, std::unique_ptr<CommunicatorCore>* out);

// What the environment says, and what of it must be the same on all ranks. Needs the bootstrap's settings.
Status read_environment(World* world);

}  // namespace gccl
