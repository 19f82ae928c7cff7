#include "libgccl/communicator/leaving.hpp"

#include <fmt/core.h>

#include <mutex>
#include <utility>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

Others Leaving::failed_before() const { return {.failed = team_.world->failed_before.all()}; }

Status Leaving::begin(Operation** out, const Others* others) {
  *out = nullptr;
  completions::run();
  {
    std::lock_guard lock(lock_);
    if (!operations_.failure().none()) return operations_.failure().unless_said();
  }
  if (c_.pending()) return Status::error("operations are in flight: wait for them first", GCCL_ERR_INVALID_USAGE);
  // Nobody has all digests before everybody has come.
  auto op = std::make_unique<Operation>(c_);
  const Watch::Record& record = *team_.record;
  // Where the world is freed alone, another rank may leave it by GCCL_Finalize, which says more.
  const Others unsaid = failed_before();
  const bool alone = team_.members.world && !others;
  op->compare(
      Comparison::of_digests(team_.members, record.history.digest(), record.lengths_sum,
                             record.messages.sum(team_.rank()), alone ? &unsaid : others, alone || team_.world->uneven),
      team_.members);
  std::lock_guard lock(lock_);
  return operations_.start(std::move(op), out);
}

// Rank 0 counts against all the others.
void Leaving::sum_up(Others* others) {
  std::lock_guard lock(lock_);
  if (!operations_.failure().none()) {
    others->failed.push_back({team_.members.id, std::uint64_t(operations_.failure().why().code())});
    return;
  }
  const std::uint64_t calls = splitmix::hash(team_.members.id ^ team_.record->history.digest());
  others->sum += team_.rank() == 0 ? calls * (1 - std::uint64_t(team_.size())) : calls;
  others->sum += team_.record->lengths_sum + team_.record->messages.sum(team_.rank());
}

Status Leaving::leave() {
  Operation* op = nullptr;
  Status s = begin(&op);
  if (op) CommunicatorCore::wait(op, -1, &s);
  {
    std::lock_guard lock(lock_);
    done_ = s.ok() && operations_.failure().none();  // what a call has said is no success
  }
  if (done_) team_.world->recovery->forget(team_.members);
  return s;
}

Status Leaving::found() {
  std::lock_guard lock(lock_);
  if (operations_.failure().none()) supervisor_.check();
  if (Watch::Difference d = team_.world->watch->found(*team_.record); !d.what.ok())
    operations_.break_down(std::move(d.what), d.rank, true, std::move(d.ranks));
  for (const World::Failed& f : team_.world->failed)
    if (f.communicator == team_.members.id)
      operations_.break_down(
          Status::error(fmt::format("world rank {} had an error on a communicator of {} ranks that this rank "
                                    "had not heard of before GCCL_Finalize; its own call says it",
                                    f.rank, team_.size()),
                        f.code),
          team_.rank(), false);
  return operations_.failure().unless_said();
}

}  // namespace gccl
