#include "libgccl/transports/shm/shm_port.hpp"

#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "libgccl/base/counted.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/transports/shm/memory_of_peer.hpp"

namespace gccl::shm {
namespace {

// What a port's peers must know of it.
struct Address {
  std::uint32_t present;
  std::uint32_t pid;
  std::uint64_t probe;  // the address of probe_value, to try reading memory on
  std::uint64_t probe_value;
  std::uint64_t offset, id;  // of the segment
  char file[64];
  std::int32_t descriptor;  // of that file, there
  std::uint64_t pids;       // pid_namespace()
};
static_assert(sizeof(Address) <= GCCL_BACKEND_ADDRESS_BYTES);

// Which processes numbers mean here; 0: unknown.
std::uint64_t pid_namespace() {
  struct stat s;
  return ::stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

constexpr std::size_t kLeastOfPipe = sizeof(Pipe::cells) + kBeginningBytes;

}  // namespace

Status Port::open(Instance& instance, const GCCL_Port_spec& spec, std::unique_ptr<Port>* out, void* address) {
  assert(spec.rank < spec.size && spec.channels > 0);
  auto p = std::make_unique<Port>();
  p->instance_ = &instance;
  p->rank_ = spec.rank;
  p->size_ = spec.size;
  p->channels_ = spec.channels;
  p->pid_ = ::getpid();
  p->place_.assign(spec.size, kNowhere);
  for (Rank r = 0; r < spec.size; ++r) {
    if (spec.node[r] != spec.node[spec.rank]) continue;
    if (r == spec.rank) p->my_place_ = p->node_ranks_;
    ++p->node_ranks_;
    if (r == spec.rank) continue;
    p->place_[r] = std::uint32_t(p->neighbours_.size());
    p->neighbours_.push_back({.rank = r});
  }
  for (std::uint32_t most = instance.node_ranks; most < p->node_ranks_;)
    if (instance.node_ranks.compare_exchange_weak(most, p->node_ranks_)) break;
  if (p->neighbours_.empty()) {
    *out = std::move(p);
    return {};
  }
  if (::getrandom(&p->probe_value_, sizeof p->probe_value_, 0) != ssize_t(sizeof p->probe_value_))
    return Status::error(fmt::format("no random numbers: {}", std::strerror(errno)), GCCL_ERR_SYSTEM);
  if (const Status s = instance.files.mine(&p->file_); !s.ok()) return s;
  Status s = Segment::create(p->file_, p->node_ranks_ * p->channels_, &p->segment_);
  if (s.ok()) s = p->take_least();
  if (!s.ok()) {  // another transport may serve the ranks; others of their communicators may find room
    p.reset();
    instance.files.drop_unused();
    return s;
  }
  p->file_->announced = true;
  Address a{};
  a.present = 1;
  a.pid = std::uint32_t(p->pid_);
  a.probe = reinterpret_cast<std::uint64_t>(&p->probe_value_);
  a.probe_value = p->probe_value_;
  a.offset = p->segment_->offset();
  a.id = p->segment_->id();
  std::snprintf(a.file, sizeof a.file, "%s", p->file_->name().c_str());
  a.descriptor = p->file_->descriptor();
  a.pids = pid_namespace();
  std::memcpy(address, &a, sizeof a);
  *out = std::move(p);
  return {};
}

// What this rank's pipes on the first and the last channel, those of schedules and of messages between two, cannot do
// without. Where there is plenty, pipes take it as they are used, and until then it is promised: of all communicators
// together no more than the eighth of shared memory that others leave free. Otherwise they take it now, when another
// transport can still serve the communicator: later none can. Each rank of the node is taken to promise and to take as
// much as this one, in the same communicator or in one beside it.
Status Port::take_least() {
  const std::size_t ranks = instance_->node_ranks;
  const std::size_t mine = (node_ranks_ - 1) * std::min(channels_, 2u) * kLeastOfPipe, all = ranks * mine;
  const std::size_t promised = ranks * file_->promised;
  Space now;
  int error = segment_->space(&now);
  if (error == 0 && now.leaves(all, now.all / kHalf) && promised + all <= now.all / kEighth) {
    file_->promised += promised_ = mine;
    return {};
  }
  if (error == 0 && !now.leaves(all, promised)) error = ENOSPC;
  for (std::uint32_t place = 0; place < node_ranks_ && error == 0; ++place)
    for (const std::uint32_t channel : {0u, channels_ - 1})
      if (place != my_place_ && error == 0)
        error = segment_->reserve_pipe(place * channels_ + channel, kReservedOneBeginning);
  if (error)
    return Status::error(fmt::format("rank {} has no shared memory for messages to {} on its node: {}", rank_,
                                     counted(node_ranks_ - 1, "rank"), text_of_error(error)),
                         GCCL_ERR_SYSTEM);
  least_reserved_ = true;
  return {};
}

// This pipe has its least now.
void Port::keep_promise(const End& e) {
  const std::uint32_t channel = e.index % channels_;
  if (promised_ == 0 || (channel != 0 && channel != channels_ - 1)) return;
  promised_ -= kLeastOfPipe;
  file_->promised -= kLeastOfPipe;
}

Status Port::connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches) {
  assert(spec.rank == rank_ && spec.size == size_ && spec.channels == channels_);  // those of open()
  assert(ends_.empty());                                                           // once
  const std::uint64_t pids = pid_namespace();
  std::uint32_t place = 0;
  ends_.resize(neighbours_.size() * channels_ * 2);
  active_.reserve(ends_.size());  // transfers need no memory
  for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
    Neighbour& n = neighbours_[i];
    if (place == my_place_) ++place;
    Address a;
    std::memcpy(&a, static_cast<const std::byte*>(addresses) + std::size_t(n.rank) * GCCL_BACKEND_ADDRESS_BYTES,
                sizeof a);
    a.file[sizeof a.file - 1] = 0;
    if (!a.present) {
      place_[n.rank] = kNowhere;
      ++place;
      continue;
    }
    if (const Status s = instance_->files.of(a.file, &n.file); !s.ok()) return s;
    if (const Status s = Segment::open(n.file, a.offset, a.id, node_ranks_ * channels_, &n.segment); !s.ok()) return s;
    n.pid = a.pid;
    if (instance_->zero_copy) {
      // In another process-id namespace the number is nobody's, or somebody else's.
      std::uint64_t seen = 0;
      const int error = read_memory_of(a.pid, a.probe, &seen, sizeof seen) ? ESRCH : errno;
      if (seen == a.probe_value) n.ways |= kBySystem;
      // A rank of the same number here may have the same file open: this one itself.
      const bool same_pids = a.pids == pids;
      if (same_pids && is_descriptor_of(a.pid, a.descriptor, n.file->descriptor())) n.ways |= kMapped;
      if (!(n.ways & kBySystem))
        log_refusal(n, same_pids ? std::strerror(error) : "it is in another process-id namespace");
    }
    for (std::uint32_t c = 0; c < channels_; ++c) {
      End& out = ends_[(i * channels_ + c) * 2];
      out.peer = n.rank;
      out.index = place * channels_ + c;
      out.writer = Writer(segment_->control(out.index), segment_->pipe(out.index));
      if (least_reserved_ && (c == 0 || c == channels_ - 1)) out.writer.opened(kReservedOneBeginning);
      End& in = ends_[(i * channels_ + c) * 2 + 1];
      in.peer = n.rank;
      in.receives = true;
      in.index = my_place_ * channels_ + c;
      in.reader = Reader(n.segment->control(in.index), n.segment->pipe(in.index), n.segment->common());
      n.segment->control(in.index)->ways.store(n.ways, std::memory_order_release);
    }
    reaches[n.rank] = 1;
    ++place;
  }
  piece_.reset(static_cast<std::byte*>(::operator new(kFetchBytes, kPieceAlignment)));
  return {};
}

void Port::log_refusal(const Neighbour& n, const char* why) {
  if (log_level() < kLogInfo || instance_->has_said.exchange(true)) return;
  log_line(kLogInfo,
           fmt::format("ranks cannot read each other's memory: rank {} that of rank {}: {}; long messages "
                       "are copied twice{}",
                       rank_, n.rank, why, n.ways & kMapped ? ", but for those in memory of GCCL_Mem_alloc" : ""));
}

// Once all ranks of the node have each other's files open, nobody needs their names.
void Port::connected() {
  const bool all = std::ranges::all_of(neighbours_, [](const Neighbour& n) { return n.segment != nullptr; });
  if (file_ && all && node_ranks_ == instance_->node_ranks) file_->unlink();
}

Port::~Port() {
  if (file_) file_->promised -= promised_;
  // A child that the rank forked has a copy of this object, and nothing to say for the rank.
  if (segment_ && ::getpid() == pid_) segment_->header().closed.store(1, std::memory_order_release);
}

std::byte* Port::staging(std::size_t bytes) {
  if (bytes == 0 || bytes > sizeof(Staging) || !segment_) return nullptr;
  if (bytes > staged_) {
    if (segment_->reserve_staging(bytes) != 0) return nullptr;
    staged_ = bytes;
    segment_->header().staging.store(std::uint32_t(bytes), std::memory_order_release);
  }
  return segment_->staging();
}

End* Port::awaited(std::span<End* const> ends, std::uint32_t bytes, std::optional<Rank> of) const {
  const auto looked_for = [&](const End* e) { return !of || e->peer == *of; };
  End* reader = nullptr;
  bool one_is_free = false;
  for (const Common& common : commons_) {
    if (common.reserved < bytes) continue;
    bool is_free = true;
    for (const auto& [e, cells] : common.readers) {
      if (e->writer.has_read(cells)) continue;
      is_free = false;
      if (!reader && looked_for(e)) reader = e;
    }
    one_is_free |= is_free;
  }
  if (reader && !one_is_free) return reader;
  for (End* const e : ends)
    if (looked_for(e) && e->writer.full()) return e;
  return nullptr;
}

void Port::fail(int result, Rank peer, const std::string& text) {
  assert(is_error(result) && peer < size_);
  if (failed_) return;
  failed_ = true;
  fault_.result = result;
  fault_.peer = peer;
  std::snprintf(fault_.text, sizeof fault_.text, "%s", text.c_str());
}

// True when the neighbour has aborted and said why; then this port has failed for the same reason.
bool Port::fail_if_aborted(Neighbour& n) {
  Header& h = n.segment->header();
  if (h.fault_state.load(std::memory_order_acquire) != 2) return false;
  GCCL_Fault said = h.fault;
  said.text[sizeof said.text - 1] = 0;
  if (!is_error(said.result) || said.peer >= size_) {
    fail(GCCL_ERR_REMOTE, n.rank, fmt::format("rank {} has given up; its reason is damaged", n.rank));
    return true;
  }
  if (failed_) return true;
  fault_ = said;
  failed_ = true;
  return true;
}

bool Port::healthy(std::span<End* const> waiting, std::uint32_t joint_bytes) {
  for (Neighbour& n : neighbours_) {
    if (!n.segment || failed_) continue;
    Header& h = n.segment->header();
    if (fail_if_aborted(n)) return false;
    const auto missing = [&n](End& e) {
      if (e.peer != n.rank) return false;
      if (e.receives) return e.reader.peek() == nullptr;
      if (!e.transfers.empty() || e.zero_copy.empty()) return true;
      return !e.writer.read_up_to(e.zero_copy.back()->backend[kCellsToRead]);  // read by now: not missing
    };
    const auto missed = [&] {
      // A rank that died while it said why it gave up cannot be read from any more, whatever lies in its pipes.
      const auto is_missing = [&](End* e) { return missing(*e); };
      if (h.fault_state.load(std::memory_order_acquire) != 0 || std::ranges::any_of(active_, is_missing)) return true;
      if (joint_bytes == 0) return std::ranges::any_of(waiting, is_missing);
      return awaited(waiting, joint_bytes, n.rank) != nullptr;
    };
    if (!missed()) continue;
    const bool closed = h.closed.load(std::memory_order_acquire) != 0;
    if (!closed && n.file->alive()) continue;
    // A rank that has left may have written all that is due before: only a pipe with nothing in it is a loss.
    if (fail_if_aborted(n)) return false;
    if (missed())
      fail(GCCL_ERR_PEER_LOST, n.rank,
           closed ? "it has freed the communicator or ended" : fmt::format("its process ({}) has died", n.pid));
  }
  return !failed_;
}

void Port::abort(const GCCL_Fault& fault) {
  if (!segment_) return;
  Header& h = segment_->header();
  std::uint32_t none = 0;
  const bool first = h.fault_state.compare_exchange_strong(none, 1);  // the first one counts
  // What the caller writes from now on into memory that peers still read comes after the 1: readable() has the other
  // half. Processors other than x86 would let it overtake.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!first) return;
  h.fault = fault;
  h.fault_state.store(2, std::memory_order_release);
}

}  // namespace gccl::shm
