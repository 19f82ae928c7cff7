#include "libgccl/communicator/joining.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/bootstrap/applicant.hpp"
#include "libgccl/bootstrap/join_report.hpp"
#include "libgccl/communicator/communicator_core.hpp"

namespace gccl {

Introduction at_the_door(const World& world) {
  constexpr Rank kRanks = 16;
  Introduction i = world.introduction;
  i.plans = 0;
  i.set_plans(kRanks);
  return i;
}

namespace {

// Another thread, GCCL's own, may go through the communicators again and again, each time for microseconds.
bool look_at_each(const std::function<void(CommunicatorCore&)>& f) {
  constexpr std::int64_t kLongestNs = 1000000000;
  return for_each_communicator(f, now_ns() + kLongestNs);
}

bool has_communicators() {
  bool any = false;
  return !look_at_each([&](CommunicatorCore&) { any = true; }) || any;
}

// What the launcher of this process hears of its joining.
class Joining {
 public:
  Joining() : waits_(one_thread() || !has_communicators()) {
    if (waits_) (void)report_join(process_environment(), JoinState::waits);
  }
  ~Joining() {
    if (waits_) (void)report_join(process_environment(), JoinState::gave_up);
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;
  void joined() {
    waits_ = false;
    if (const Status s = report_join(process_environment(), JoinState::joined); !s.ok())
      log_line(kLogWarnings,
               fmt::format("{}: it does not know that this process has joined, and may end it", s.text()));
  }

 private:
  bool waits_;  // and has nothing else to do
};

// Of the same job, whose ranks wait for this process, where nobody can call what they do.
Status no_rank_yet(const World& mine) {
  Status found;
  if (!one_thread()) return found;
  look_at_each([&](CommunicatorCore& c) {
    if (!found.ok() || !c.members().world || c.world().bootstrap.store != mine.bootstrap.store || !c.why().ok()) return;
    found = Status::error(
        fmt::format("this process is {} of {} of the job at {} already, and its one thread cannot be another rank as "
                    "well: call GCCL_Finalize before, or free that communicator",
                    c.members().name(c.rank()), c.size(), mine.bootstrap.store),
        GCCL_ERR_INVALID_USAGE);
  });
  return found;
}

}  // namespace

Status join_world(const GCCL_Config* config, std::unique_ptr<CommunicatorCore>* out) {
  World mine;
  Rank wish = kNobody;
  if (Status s = read_joining(config, &mine.bootstrap, &wish); !s.ok()) return s;
  if (Status s = read_environment(&mine); !s.ok()) return s;
  if (Status s = no_rank_yet(mine); !s.ok()) return s;
  if (const std::unique_ptr<Recovery> ears = Recovery::open(mine.bootstrap); !ears->usable().ok())
    return Status::error(
        fmt::format("a process that joins must be able to receive datagrams: {}", ears->usable().text()),
        GCCL_ERR_NOT_SUPPORTED);
  JoinPlace place;
  if (Status s = JoinPlace::parse(mine.bootstrap.store, mine.bootstrap.secret, mine.bootstrap.address, &place); !s.ok())
    return s;
  const Introduction door = at_the_door(mine);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&door);
  Applicant applicant(std::move(place), door.version, BytesOut().u32(wish).raw({bytes, sizeof door}).take(),
                      mine.bootstrap.join_timeout_ms);
  Joining joining;
  for (;;) {
    Applicant::Admitted admitted;
    if (Status s = applicant.ask(&admitted); !s.ok()) return s;
    const std::shared_ptr<World> world = world_like(mine, admitted.rank, admitted.size);
    world->joined = admitted.joined;
    std::ranges::sort(world->joined);
    std::unique_ptr<CommunicatorCore> made;
    Status s = connect_world(world, applicant, kConnectMs, &made);
    std::vector<std::byte> word;
    if (s.ok()) s = world->recovery->await_admission(made->members(), admitted.joined, applicant, &word);
    if (s.ok()) {
      if (Survival::Joined joined; Survival::Joined::parse(word, &joined)) made->survival().go_on_as(joined);
      joining.joined();
      *out = std::move(made);
      return {};
    }
    made.reset();
    applicant.drop(s);
    if (!world->recovery) return s;  // it could not open what it needs, and would ask again in vain
  }
}

}  // namespace gccl
