#include "libgccl/communicator/communicator.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <list>

#include "libgccl/communicator/completions.hpp"

namespace gccl {
namespace {

std::mutex registry_mutex;
std::list<Communicator*>& registry() {
  static auto* const list = new std::list<Communicator*>;
  return *list;
}

}  // namespace

const char Communicator::kMagic[] = "gccl communicator";

bool progress_all_but(Communicator* mine) {
  bool moved = false;
  if (std::unique_lock lock(registry_mutex, std::try_to_lock); lock)
    for (Communicator* c : registry())
      if (c != mine && c->busy()) moved |= c->progress();
  return completions::run() || moved;
}

Status Communicator::create(std::shared_ptr<World> world, Members members, Exchange& exchange,
                            std::unique_ptr<Communicator>* out) {
  std::unique_ptr<Communicator> c(new Communicator);
  c->world_ = std::move(world);
  c->members_ = std::move(members);
  c->layout_ = Layout::of(c->members_.node);
  c->timeout_ms_ = c->world_->start.timeout_ms;
  const GCCL_Port_spec spec{.struct_bytes = sizeof spec,
                            .rank = c->rank(),
                            .size = c->size(),
                            .channels = kChannels,
                            .communicator = c->members_.id,
                            .node = c->members_.node.data(),
                            .world_rank = c->members_.world_rank.data(),
                            // The others wait for this rank's word on it no longer than the start may take.
                            .connect_timeout_ms = c->world_->start.start_timeout_ms / 4 * 3};
  // Before the ranks exchange anything: who has come out of it may ask one that has not.
  c->record_ = c->world_->watch->join(c->members_.id, c->rank(), c->members_.world_rank);
  const Status s = Ports::connect(*c->world_->wires, spec, exchange, c->world_->start.start_timeout_ms, &c->ports_);
  if (!s.ok()) return s;
  c->fast_ = c->ports_->fast_path();
  c->setting_.in_memory = c->ports_->in_memory();
  c->setting_.cost_model = c->ports_->cost_model();
  c->setting_.use(c->layout_, c->rank());
  c->scratch_.resize(kLanesMax);
  c->scratch_bytes_.resize(kLanesMax);
  std::lock_guard lock(registry_mutex);
  registry().push_back(c.get());
  *out = std::move(c);
  return {};
}

Communicator::~Communicator() {
  {
    std::lock_guard lock(registry_mutex);
    registry().remove(this);
  }
  if (record_) world_->watch->leave(*record_);
  {
    std::lock_guard lock(lock_);
    const Operation* const dropped = !queue_.empty()       ? queue_.front()
                                     : !transfers_.empty() ? transfers_.front()
                                                           : nullptr;
    if (dropped && ports_ && broken_.ok()) {
      // The others are told who did it.
      GCCL_Fault f{.result = GCCL_ERR_REMOTE, .peer = rank(), .text = {}};
      std::snprintf(f.text, sizeof f.text, "%s freed the communicator while this operation was in flight: %s",
                    who(rank()).c_str(), dropped->work.what.text().c_str());
      tell(f);
    }
    if (!left_ || !broken_.ok()) world_->uneven = true;
    // Functions that are due find a communicator that takes nothing more.
    break_down(Status::error(dropped ? "the communicator was freed while operations were in flight"
                                     : "the communicator was freed",
                             GCCL_ERR_INVALID_USAGE),
               rank(), false);
  }
  completions::settle(this);
}

bool Communicator::under_way() {
  std::lock_guard lock(lock_);
  return !(queue_.empty() && transfers_.empty() && self_sends_.empty() && self_recvs_.empty());
}

Status Communicator::begin_to_leave(Operation** out, const Others* others) {
  *out = nullptr;
  completions::run();
  {
    std::lock_guard lock(lock_);
    if (!broken_.ok()) return std::exchange(told_, true) ? Status() : broken_;
  }
  if (under_way()) return Status::error("operations are under way: wait for them first", GCCL_ERR_INVALID_USAGE);
  // Nobody has all digests before everybody has come.
  auto op = std::make_unique<Operation>(*this);
  std::vector<std::uint64_t> mine = {record_->history.digest(), record_->lengths_sum};
  if (others)
    mine.insert(mine.end(), {others->sum, others->failed, others->code, std::uint64_t(world_->uneven.load())});
  compare_over(op.get(), Operation::Checks::digests, std::move(mine));
  return start(std::move(op), out);
}

Status Communicator::leave() {
  Operation* op = nullptr;
  Status s = begin_to_leave(&op);
  if (op) wait(op, -1, &s);
  left_ = s.ok();
  return s;
}

Status Communicator::left() {
  std::lock_guard lock(lock_);
  if (broken_.ok()) look_around();
  if (const Status s = world_->watch->found(*record_); !s.ok()) break_down(s, rank(), true);
  for (const World::Failed& f : world_->failed)
    if (f.communicator == members_.id)
      break_down(Status::error("world rank " + std::to_string(f.rank) + " had an error on a communicator of " +
                                   std::to_string(size()) +
                                   " ranks that this rank had not heard of before GCCL_Finalize; its own call tells it",
                               f.code),
                 rank(), false);
  if (broken_.ok()) return {};
  return std::exchange(told_, true) ? Status() : broken_;
}

void Communicator::abort(int code) {
  abort_code_ = code;
  abort_asked_ = true;
  // The others are told at once; whoever waits here finds out in its next look.
  GCCL_Fault f{.result = GCCL_ERR_ABORTED, .peer = rank(), .text = {}};
  std::snprintf(f.text, sizeof f.text, "GCCL_Abort was called on rank %u with code %d", unsigned(rank()), code);
  for (Ports::Port& port : ports_->all())
    if (port.state) port.backend->abort(port.state, &f);
  if (std::unique_lock lock(lock_, std::try_to_lock); lock) move();
}

void Communicator::metrics(GCCL_Metrics* out) {
  std::lock_guard lock(lock_);
  const std::size_t bytes = std::min(out->struct_bytes, sizeof metrics_);
  std::memcpy(out, &metrics_, bytes);
  out->struct_bytes = bytes;
  for (std::size_t k = 0; k < GCCL_METRICS_KINDS; ++k) {
    const bool known = k < collective_names().size() || k >= kSendKind;
    out->calls[k].name = known ? kind_name(std::uint8_t(k)).data() : nullptr;
  }
}

}  // namespace gccl
