#include "libgccl/communicator/joining.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "libgccl/base/environment.hpp"
#include "libgccl/bootstrap/applicant.hpp"
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

// To the launcher that has started this process to join (GCCL_JOIN_REPORT), which must know who works and who waits.
// Only where the descriptor is still what it was.
void report_joined() {
  const std::string where = read_text(process_environment(), "GCCL_JOIN_REPORT");
  int fd = -1;
  unsigned long long inode = 0;
  struct stat about {};
  if (std::sscanf(where.c_str(), "%d:%llu", &fd, &inode) != 2 || fd < 3 || ::fstat(fd, &about) != 0 ||
      !S_ISFIFO(about.st_mode) || about.st_ino != inode)
    return;
  (void)!::write(fd, "j", 1);
  ::close(fd);
}

}  // namespace

Status join_world(const GCCL_Config* config, std::unique_ptr<CommunicatorCore>* out) {
  World mine;
  Rank wish = kNobody;
  if (Status s = read_joining(config, &mine.bootstrap, &wish); !s.ok()) return s;
  if (Status s = read_environment(&mine); !s.ok()) return s;
  JoinPlace place;
  if (Status s = JoinPlace::parse(mine.bootstrap.store, mine.bootstrap.secret, mine.bootstrap.address, &place); !s.ok())
    return s;
  const Introduction door = at_the_door(mine);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&door);
  Applicant applicant(std::move(place), door.version, BytesOut().u32(wish).raw({bytes, sizeof door}).take(),
                      mine.bootstrap.join_timeout_ms);
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
      report_joined();
      *out = std::move(made);
      return {};
    }
    made.reset();
    applicant.drop(s);
  }
}

}  // namespace gccl
