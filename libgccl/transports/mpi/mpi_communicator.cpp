#include "libgccl/transports/mpi/mpi_communicator.hpp"

#include <algorithm>
#include <cassert>
#include <climits>
#include <functional>
#include <new>

#include "libgccl/elements/combine.hpp"

namespace gccl {
namespace {

Status status_of(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::error(std::string(call) + ": " + std::string(text, std::size_t(length)));
}

// node_of[r]: the lowest rank that shares memory with rank r.
Status find_nodes(MPI_Comm comm, Rank rank, std::vector<Rank>* node_of) {
  MPI_Comm node = MPI_COMM_NULL;
  Status s = status_of(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, int(rank), MPI_INFO_NULL, &node),
                       "MPI_Comm_split_type");
  if (!s.ok()) return s;
  Rank lowest = rank;
  s = status_of(MPI_Bcast(&lowest, 1, MPI_UINT32_T, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  if (!s.ok()) return s;
  return status_of(MPI_Allgather(&lowest, 1, MPI_UINT32_T, node_of->data(), 1, MPI_UINT32_T, comm), "MPI_Allgather");
}

}  // namespace

Status MpiCommunicator::create(MPI_Comm parent, std::unique_ptr<MpiCommunicator>* out) {
  std::unique_ptr<MpiCommunicator> c(new MpiCommunicator);
  Status s = status_of(MPI_Comm_dup(parent, &c->comm_), "MPI_Comm_dup");
  if (!s.ok()) return s;
  MPI_Comm_set_errhandler(c->comm_, MPI_ERRORS_RETURN);

  int size = 0, rank = 0, found = 0;
  MPI_Comm_size(c->comm_, &size);
  MPI_Comm_rank(c->comm_, &rank);
  c->rank_ = Rank(rank);
  void* tag_max = nullptr;
  MPI_Comm_get_attr(c->comm_, MPI_TAG_UB, &tag_max, &found);
  c->tag_max_ = found ? *static_cast<int*>(tag_max) : 32767;  // the least that MPI grants

  std::vector<Rank> node_of(std::size_t(size), 0);
  s = find_nodes(c->comm_, c->rank_, &node_of);
  if (!s.ok()) return s;
  c->layout_ = Layout::of(node_of);
  *out = std::move(c);
  return {};
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (comm_ == MPI_COMM_NULL || finalized) return;
  if (broken_.ok()) {
    MPI_Comm_free(&comm_);
  } else {
    // Messages may still be under way into this memory, and peers may never come to a collective MPI_Comm_free.
    new std::vector<LaneMemory>(std::move(memory_));
  }
}

void MpiCommunicator::use_layout(Layout layout) {
  assert(layout.ranks() == size());
  layout_ = std::move(layout);
}

void MpiCommunicator::use_message_bytes_max(std::size_t bytes) {
  assert(bytes >= 1 && bytes <= INT_MAX);
  message_bytes_max_ = bytes;
}

Status MpiCommunicator::check(const Algorithm& a, const Call& c, Dtype dtype, const void* input, const void* output,
                              const Slicing& s) const {
  const std::string who = std::string(name(c.kind)) + " " + std::string(a.name) + ": ";
  if (a.kind != c.kind) return Status::error(who + "the algorithm is for " + std::string(name(a.kind)));
  if (c.root >= size())
    return Status::error(who + "root " + std::to_string(c.root) + " of " + std::to_string(size()) + " ranks");
  if (s.shares < 1 || s.lanes < 1) return Status::error(who + "shares and lanes must be at least 1");
  if (std::min(s.shares, s.lanes) - 1 > Count(tag_max_))
    return Status::error(who + "more lanes than MPI has tags (" + std::to_string(tag_max_) + ")");
  if (s.window < 2 || s.window > kWindowMax)
    return Status::error(who + "window must be 2 to " + std::to_string(kWindowMax));
  if (has_counts(c.kind) && !c.counts) return Status::error(who + "no counts");
  if (c.count > Count(PTRDIFF_MAX) / size_of(dtype) / size()) return Status::error(who + "count is too large");
  if (!a.can(c, view())) return Status::error(who + "cannot serve this call on these ranks");

  const std::size_t in = input_count(c, size(), rank_) * size_of(dtype);
  const std::size_t out = output_count(c, size(), rank_) * size_of(dtype);
  if (in && !input) return Status::error(who + "no input buffer");
  if (out && !output) return Status::error(who + "no output buffer");
  const std::less<const std::byte*> before;
  const auto* i = static_cast<const std::byte*>(input);
  const auto* o = static_cast<const std::byte*>(output);
  if (in && out && before(i, o + out) && before(o, i + in))
    return Status::error(who + "input and output overlap; set in_place and pass one of them");
  return {};
}

Status MpiCommunicator::run(const Algorithm& a, const Call& call, Dtype dtype, Reduction op, const void* input,
                            void* output, Slicing s) {
  if (!broken_.ok()) return broken_;
  if (Status bad = check(a, call, dtype, input, output, s); !bad.ok()) return bad;

  const View v = view();
  const Count lanes_used = std::min(s.lanes, s.shares);
  try {
    if (memory_.size() < lanes_used) memory_.resize(lanes_used);
    MpiBackend::Buffers buffers{input, output, std::vector<std::byte*>(lanes_used)};
    for (Count l = 0; l < lanes_used; ++l) {
      const Count scratch = a.scratch_count(call, v, s.shares, l, lanes_used);
      buffers.scratch[l] = memory_[l].scratch.at_least(scratch * size_of(dtype));
    }

    MpiBackend backend(comm_, dtype, op, std::move(buffers), memory_, message_bytes_max_);
    std::vector<Lane<MpiBackend>> lanes;
    lanes.reserve(lanes_used);  // requests keep pointers to lanes
    for (Count l = 0; l < lanes_used; ++l)
      lanes.emplace_back(backend, std::uint32_t(l), sliced(&a, call, v, s.shares, l, lanes_used), s.window);
    try {
      for (Lane<MpiBackend>& lane : lanes) lane.pump();
      while (backend.status().ok() && backend.in_flight()) backend.progress();
    } catch (const std::exception& e) {
      broken_ = Status::error(std::string(a.name) + ": " + e.what());
    }
    if (broken_.ok() && !backend.status().ok()) broken_ = backend.status();
    if (!broken_.ok()) {
      backend.abandon();
      return broken_;
    }
    for (const Lane<MpiBackend>& lane : lanes) assert(lane.done());
  } catch (const std::bad_alloc&) {
    return Status::error(std::string(a.name) + ": out of memory");
  }

  if (op == Reduction::avg && reduces(call.kind)) {
    const Region mine = output_of(call, size(), rank_);
    void* const buffer = mine.buffer == Buffer::input ? const_cast<void*>(input) : output;
    divide(dtype, static_cast<std::byte*>(buffer) + mine.offset * size_of(dtype), mine.count, size());
  }
  return {};
}

}  // namespace gccl
