#include "libgccl/transports/mpi/mpi_backend.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libgccl/elements/combine.hpp"

namespace gccl {

static_assert(Backend<MpiBackend>);

MpiBackend::MpiBackend(MPI_Comm comm, Dtype dtype, Reduction op, Buffers buffers, std::vector<LaneMemory>& memory,
                       std::size_t message_bytes_max)
    : comm_(comm),
      dtype_(dtype),
      op_(op),
      element_bytes_(size_of(dtype)),
      message_bytes_max_(message_bytes_max),
      buffers_(std::move(buffers)),
      memory_(memory),
      rest_(memory.size()) {}

std::byte* MpiBackend::address(std::uint32_t lane, const Region& r) const {
  const std::size_t at = r.offset * element_bytes_;
  switch (r.buffer) {
    case Buffer::none: return nullptr;
    // Schedules never write to the input; MPI's and our own receiving ends take one kind of pointer.
    case Buffer::input: return static_cast<std::byte*>(const_cast<void*>(buffers_.input)) + at;
    case Buffer::output: return static_cast<std::byte*>(buffers_.output) + at;
    case Buffer::scratch: return buffers_.scratch[lane] + at;
  }
  return nullptr;
}

bool MpiBackend::failed(int code, const char* call) {
  if (code == MPI_SUCCESS) return false;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  if (status_.ok()) status_ = Status::error(std::string(call) + ": " + std::string(text, std::size_t(length)));
  return true;
}

void MpiBackend::post(Lane<MpiBackend>& lane, Token token, const Step& step, std::byte* at) {
  const std::size_t bytes = step.count() * element_bytes_;
  std::size_t from = 0;
  do {  // a signal is one message without content
    const int part = int(std::min(bytes - from, message_bytes_max_));
    MPI_Request request;
    if (step.op == Op::send) {
      if (failed(MPI_Isend(at + from, part, MPI_BYTE, int(step.peer), int(lane.id()), comm_, &request), "MPI_Isend"))
        return;
    } else {
      if (failed(MPI_Irecv(at + from, part, MPI_BYTE, int(step.peer), int(lane.id()), comm_, &request), "MPI_Irecv"))
        return;
    }
    requests_.push_back(request);
    flights_.push_back({&lane, token, step.op == Op::send ? -1 : part});
    ++rest_[lane.id()][token];
    from += std::size_t(part);
  } while (from < bytes);
}

bool MpiBackend::start(Lane<MpiBackend>& lane, Token token, const Step& step) {
  if (!status_.ok()) return false;
  switch (step.op) {
    case Op::send: post(lane, token, step, address(lane.id(), step.from)); return false;
    case Op::recv: post(lane, token, step, address(lane.id(), step.to)); return false;
    case Op::recv_reduce:
      post(lane, token, step, memory_[lane.id()].staging[token].at_least(step.count() * element_bytes_));
      return false;
    case Op::copy:
      std::memmove(address(lane.id(), step.to), address(lane.id(), step.from), step.count() * element_bytes_);
      return true;
    case Op::reduce: {
      std::byte* const to = address(lane.id(), step.to);
      gccl::combine(dtype_, op_, to, to, address(lane.id(), step.from), step.count());
      return true;
    }
  }
  return false;
}

bool MpiBackend::combine(Lane<MpiBackend>& lane, Token token, const Step& step) {
  gccl::combine(dtype_, op_, address(lane.id(), step.to), address(lane.id(), step.from),
                memory_[lane.id()].staging[token].at_least(0), step.count());
  return true;
}

void MpiBackend::progress() {
  assert(in_flight());
  const int n = int(requests_.size());
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  // Waiting costs nothing: a lane moves on only when a message does, and combining happens between two waits.
  const int code = MPI_Waitsome(n, requests_.data(), &count, done_.data(), statuses_.data());
  if (code != MPI_SUCCESS) {
    int cause = code;
    if (code == MPI_ERR_IN_STATUS)
      for (int i = 0; i < count; ++i)
        if (statuses_[std::size_t(i)].MPI_ERROR != MPI_SUCCESS) cause = statuses_[std::size_t(i)].MPI_ERROR;
    failed(cause, "MPI_Waitsome");
    return;
  }

  finished_.clear();
  for (int i = 0; i < count; ++i) {
    const Flight& f = flights_[std::size_t(done_[std::size_t(i)])];
    if (f.receive_bytes >= 0) {
      int bytes = 0;
      if (failed(MPI_Get_count(&statuses_[std::size_t(i)], MPI_BYTE, &bytes), "MPI_Get_count")) return;
      if (bytes != f.receive_bytes) {
        status_ = Status::error("a message of " + std::to_string(bytes) + " bytes came where " +
                                std::to_string(f.receive_bytes) + " were due: the ranks' calls differ");
        return;
      }
    }
    if (--rest_[f.lane->id()][f.token] == 0) finished_.push_back(f);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    flights_[kept++] = flights_[i];
  }
  requests_.resize(kept);
  flights_.resize(kept);

  // Only now: what the lanes start next joins the lists above.
  for (const Flight& f : finished_) {
    if (f.lane->step(f.token).op == Op::recv_reduce) {
      f.lane->landed(f.token);
    } else {
      f.lane->complete(f.token);
    }
  }
}

void MpiBackend::abandon() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (flights_[i].receive_bytes >= 0) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  flights_.clear();
}

}  // namespace gccl
