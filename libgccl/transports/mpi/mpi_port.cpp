#include "libgccl/transports/mpi/mpi_port.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>

namespace gccl::mpi {
namespace {

constexpr const char* kSecondThread =
    "a second thread needs an MPI that was initialised with MPI_THREAD_SERIALIZED (MPI_Init_thread), and GCCL's "
    "progress thread, or two at a time, one with MPI_THREAD_MULTIPLE";

// How long cancel() and the end wait for MPI to let go of memory.
constexpr std::chrono::milliseconds kLetGo{500};

}  // namespace

Port::~Port() {
  {
    std::lock_guard lock(Instance::mutex);
    std::erase(Instance::to_report, this);
  }
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (comm_ == MPI_COMM_NULL) return;
  const bool usable = !finalized && may_call_mpi();
  if (usable) {
    if (fault_to_send_.load()) send_fault();
    const auto until = Clock::now() + kLetGo;
    // First parts may still be on their way.
    try {
      while (requests_.size() > 1 && fault_.result == GCCL_SUCCESS && Clock::now() < until) test();
    } catch (const std::exception& error) {
      fail(GCCL_ERR_SYSTEM, rank_, error.what());
    }
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (!flights_[i].sends()) let_go(i, until);
  }
  // MPI may still read or write what it has not let go of.
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (requests_[i] != MPI_REQUEST_NULL) {
      (void)flights_[i].slot.release();
      (void)flights_[i].fragment.release();
      if (flights_[i].kind == Flight::Kind::fault) (void)received_fault_.release();
    }
  // After a fault, of whichever side, peers may never come to a collective call.
  if (usable && fault_.result == GCCL_SUCCESS && reported_.result == GCCL_SUCCESS) PMPI_Comm_free(&comm_);
}

bool Port::may_call_mpi() noexcept {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized) {
    fail(GCCL_ERR_INVALID_ARGUMENT, rank_, "MPI_Finalize has been called before GCCL_Finalize");
    return false;
  }
  return instance_.thread == std::thread::id{} || instance_.thread == std::this_thread::get_id();
}

// Any thread calls it, and one of the library's own, or another of the program's while this one waits in MPI, must not
// call MPI: then the thread that next uses a port does.
bool Port::abort_may_call_mpi() noexcept {
  return may_call_mpi() && (!instance_.one_at_a_time || Instance::used_by.load() == std::this_thread::get_id());
}

// This thread may call MPI, and so no other one does, or all may.
void Port::use_mpi() noexcept {
  Instance::used_by.store(std::this_thread::get_id(), std::memory_order_relaxed);
  if (!Instance::reports.load(std::memory_order_acquire)) return;
  std::vector<Port*> ports;
  {
    std::lock_guard lock(Instance::mutex);
    ports.swap(Instance::to_report);
    Instance::reports.store(false);
  }
  for (Port* const port : ports) port->send_fault();
}

int Port::begin(GCCL_Transfer* t, bool sends) noexcept {
  assert(t->peer < place_.size() && t->channel < channels_ && place_[t->peer] >= 0 && t->peer != rank_);
  t->backend[kMatched] = t->backend[kPosted] = t->backend[kIncomplete] = t->backend[kArrivals] = 0;
  if (fault_.result != GCCL_SUCCESS) return 0;
  if (!may_call_mpi()) {
    fail(GCCL_ERR_NOT_SUPPORTED, rank_, kSecondThread);
    return 0;
  }
  use_mpi();
  try {
    End& e = ends_[(std::size_t(place_[t->peer]) * channels_ + t->channel) * 2 + (sends ? 0 : 1)];
    if (e.first_parts == kFirstPartsPosted) {
      e.to_begin.push(t);
      return 0;
    }
    start(e, t);
    if (done_.size() > done_first_ && done_.back() == t) {  // nothing comes after it
      done_.pop_back();
      return 1;
    }
  } catch (const std::exception& error) {
    fail(GCCL_ERR_SYSTEM, rank_, error.what());
  }
  return 0;
}

void Port::start(End& e, GCCL_Transfer* t) {
  post_first_part(e, t);
  if (t->bytes <= kEagerBytes) return;
  e.to_post.push(t);
  post_clear(e, t);
}

// A receive that has not matched posts no fragments: where a longer message comes, Open MPI 4.1 writes past the end of
// the memory that was posted, although it reports MPI_ERR_TRUNCATE.
void Port::go_on(End& e) {
  while (!e.to_post.empty() && e.to_post.front()->backend[kMatched] && fault_.result == GCCL_SUCCESS &&
         post_fragments(e, e.to_post.front()))
    e.to_post.pop();
}

void Port::post_first_part(End& e, GCCL_Transfer* t) {
  Flight f{.kind = Flight::Kind::first_part, .transfer = t, .end = &e, .slot = slots_.take()};
  Slot& s = *f.slot;
  if (!e.sends) return post(&s.header, sizeof(Header) + kEagerBytes, std::move(f));
  const std::uint64_t bytes = t->bytes <= kEagerBytes ? t->bytes : 0;
  s.header = {t->signature, t->bytes};
  if (bytes) std::memcpy(s.data, t->data, bytes);
  f.transfer = nullptr;
  ++e.first_parts;
  post(&s.header, sizeof(Header) + bytes, std::move(f));
  if (t->bytes <= kEagerBytes) finish(t, GCCL_SUCCESS);
}

void Port::post_clear(End& e, GCCL_Transfer* t) {
  Flight f{.kind = Flight::Kind::clear, .transfer = e.sends ? t : nullptr, .end = &e, .slot = slots_.take()};
  Header& words = f.slot->header;
  words = {t->signature, t->bytes};
  post(&words, sizeof words, std::move(f));
}

bool Port::post_fragments(End& e, GCCL_Transfer* t) {
  std::uint64_t &posted = t->backend[kPosted], &incomplete = t->backend[kIncomplete];
  const std::uint64_t all = (t->bytes + kFragmentBytes - 1) / kFragmentBytes;
  for (; posted < all && incomplete < kFragmentsPosted && fault_.result == GCCL_SUCCESS; ++posted, ++incomplete) {
    Flight f{.kind = Flight::Kind::fragment, .transfer = t, .end = &e, .index = posted};
    const std::uint64_t from = posted * kFragmentBytes;
    void* at = static_cast<std::byte*>(t->data) + from;
    if (!e.sends && t->consume) {
      f.fragment = fragments_.take();
      at = f.fragment->bytes;
    }
    post(at, std::min(kFragmentBytes, t->bytes - from), std::move(f));
  }
  return posted == all;
}

void Port::post(void* data, std::uint64_t bytes, Flight flight) {
  // Room first: nothing may fail once MPI has the request.
  if (requests_.size() == requests_.capacity()) requests_.reserve(2 * requests_.size());
  flights_.push_back(std::move(flight));
  const Flight& f = flights_.back();
  MPI_Request request = MPI_REQUEST_NULL;
  // A tag for each kind: none ever meets the receive of another. That of faults is channels_.
  const int tag = f.end->tag + (f.kind == Flight::Kind::first_part ? 0
                                : f.kind == Flight::Kind::fragment ? int(channels_) + 1
                                                                   : 2 * int(channels_) + 1);
  const int code = f.sends() ? PMPI_Isend(data, int(bytes), MPI_BYTE, f.end->peer, tag, comm_, &request)
                             : PMPI_Irecv(data, int(bytes), MPI_BYTE, f.end->peer, tag, comm_, &request);
  if (failed(code, f.sends() ? "MPI_Isend" : "MPI_Irecv")) request = MPI_REQUEST_NULL;
  requests_.push_back(request);
}

void Port::finish(GCCL_Transfer* t, GCCL_Result result) {
  assert(result != GCCL_IN_PROGRESS);
  t->result = result;
  done_.push_back(t);
}

void Port::completed(Flight& f) {
  switch (f.kind) {
    case Flight::Kind::first_part:
      if (f.transfer) first_part_arrived(f);
      slots_.give(std::move(f.slot));
      if (f.sends()) first_part_sent(*f.end);
      return;
    case Flight::Kind::clear:
      if (f.transfer) cleared(f);
      return slots_.give(std::move(f.slot));
    case Flight::Kind::fragment:
      if (f.transfer) return fragment_done(f);
      return fragments_.give(std::move(f.fragment));
    case Flight::Kind::fault:
      received_fault_->text[sizeof received_fault_->text - 1] = 0;
      fail(received_fault_->result, received_fault_->peer, received_fault_->text);
  }
}

void Port::first_part_sent(End& e) {
  --e.first_parts;
  if (!e.to_begin.empty() && fault_.result == GCCL_SUCCESS) start(e, e.to_begin.pop());
}

void Port::first_part_arrived(Flight& f) {
  GCCL_Transfer* const t = f.transfer;
  const Slot& s = *f.slot;
  if (s.header.signature != t->signature || s.header.bytes != t->bytes) {
    t->signature_found = s.header.signature;
    t->bytes_found = s.header.bytes;
    forget(t);
    return finish(t, GCCL_ERR_MISMATCH);
  }
  if (t->bytes > kEagerBytes) {
    t->backend[kArrivals] = reinterpret_cast<std::uintptr_t>(new Arrivals);
    t->backend[kMatched] = 1;
    return go_on(*f.end);
  }
  if (t->bytes && t->consume) {
    t->consume(t, s.data, 0, t->bytes);
  } else if (t->bytes) {
    std::memcpy(t->data, s.data, t->bytes);
  }
  finish(t, GCCL_SUCCESS);
}

// A receiver that awaits another message finds so in the header, and says it.
void Port::cleared(Flight& f) {
  GCCL_Transfer* const t = f.transfer;
  const Header& awaited = f.slot->header;
  t->backend[kMatched] = awaited.signature == t->signature && awaited.bytes == t->bytes;
  test_fault();
  go_on(*f.end);
}

// Whether peers have failed already. One that was cleared long ago may have nobody to receive it any more: cancel()
// would wait for it in vain.
void Port::test_fault() {
  int received = 0;
  if (flights_[0].kind == Flight::Kind::fault && requests_[0] != MPI_REQUEST_NULL &&
      !failed(PMPI_Test(&requests_[0], &received, MPI_STATUS_IGNORE), "MPI_Test") && received)
    completed(flights_[0]);
}

void Port::fragment_done(Flight& f) {
  GCCL_Transfer* const t = f.transfer;
  if (!f.end->sends) {
    Arrivals* const a = arrivals(t);
    a->arrived[f.index % kFragmentsPosted] = true;
    a->buffers[f.index % kFragmentsPosted] = std::move(f.fragment);
    return consume(*f.end, t);
  }
  --t->backend[kIncomplete];
  if (t->backend[kPosted] * kFragmentBytes < t->bytes) return go_on(*f.end);  // it is its end's first: more to post
  if (t->backend[kIncomplete] == 0) finish(t, GCCL_SUCCESS);
}

// What has arrived of a long receive, in order.
void Port::consume(End& e, GCCL_Transfer* t) {
  Arrivals* const a = arrivals(t);
  for (; a->arrived[a->consumed % kFragmentsPosted]; ++a->consumed, --t->backend[kIncomplete]) {
    const std::size_t i = a->consumed % kFragmentsPosted;
    const std::uint64_t from = a->consumed * kFragmentBytes;
    if (t->consume) t->consume(t, a->buffers[i]->bytes, from, std::min(kFragmentBytes, t->bytes - from));
    a->arrived[i] = false;
    fragments_.give(std::move(a->buffers[i]));
  }
  if (t->backend[kPosted] * kFragmentBytes < t->bytes) return go_on(e);  // as above
  if (t->backend[kIncomplete] > 0) return;
  drop_arrivals(t);
  finish(t, GCCL_SUCCESS);
}

// Handles what is complete.
void Port::test() {
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int code = PMPI_Testsome(int(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data());
  const bool some_failed = code == MPI_ERR_IN_STATUS;
  if (code != MPI_SUCCESS && !some_failed) return void(failed(code, "MPI_Testsome"));
  if (count <= 0) return;
  finished_.clear();
  int cause = MPI_SUCCESS;
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    Flight& f = flights_[std::size_t(indices_[i])];
    if (some_failed && statuses_[i].MPI_ERROR != MPI_SUCCESS) {
      cause = statuses_[i].MPI_ERROR;
    } else {
      finished_.push_back(std::move(f));
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    if (kept != i) flights_[kept] = std::move(flights_[i]);
    ++kept;
  }
  requests_.resize(kept);
  flights_.resize(kept);
  // Only now: these may begin others.
  for (Flight& f : finished_) completed(f);
  finished_.clear();
  failed(cause, "MPI_Testsome");
}

int Port::poll(GCCL_Transfer** done, int max) noexcept {
  if (fault_.result == GCCL_SUCCESS && may_call_mpi()) {
    use_mpi();
    try {
      test();
    } catch (const std::exception& error) {
      fail(GCCL_ERR_SYSTEM, rank_, error.what());
    }
  } else if (requests_.size() > 1) {  // another thread looks at a port that is in use; one that is not may wait
    fail(GCCL_ERR_NOT_SUPPORTED, rank_, kSecondThread);
  }
  int n = 0;
  while (n < max && done_first_ < done_.size()) done[n++] = done_[done_first_++];
  if (done_first_ == done_.size()) {
    done_.clear();
    done_first_ = 0;
    if (n == 0 && fault_.result != GCCL_SUCCESS) return -1;
  }
  return n;
}

bool Port::failed(int code, const char* call) {
  if (code == MPI_SUCCESS) return false;
  char text[MPI_MAX_ERROR_STRING] = "", line[GCCL_BACKEND_TEXT_BYTES];
  int length = 0;
  PMPI_Error_string(code, text, &length);
  std::snprintf(line, sizeof line, "%s: %.200s", call, text);
  fail(GCCL_ERR_SYSTEM, rank_, line);
  return true;
}

// The first fault stays.
void Port::fail(int result, std::uint32_t peer, const char* text) noexcept {
  if (fault_.result != GCCL_SUCCESS) return;
  fault_.result = result;
  fault_.peer = peer;
  std::snprintf(fault_.text, sizeof fault_.text, "%s", text);
}

void Port::abort(const GCCL_Fault& fault) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (reported_.result == GCCL_SUCCESS) {
      reported_ = fault;
      fault_to_send_.store(true, std::memory_order_release);
    }
  }
  if (abort_may_call_mpi()) return send_fault();
  try {
    std::lock_guard lock(Instance::mutex);
    Instance::to_report.push_back(this);
    Instance::reports.store(true, std::memory_order_release);
  } catch (const std::exception&) {  // reported when the port is closed
  }
}

// Nobody waits for these messages to be sent, so their memory lives as long as the process. Where it is short, the
// peers notice when this rank leaves.
void Port::send_fault() noexcept {
  if (!fault_to_send_.exchange(false) || comm_ == MPI_COMM_NULL) return;
  static std::mutex mutex;
  try {
    static std::deque<GCCL_Fault> kept;
    std::lock_guard lock(mutex);
    const GCCL_Fault& words = kept.emplace_back(reported_);
    for (const int place : place_)
      if (MPI_Request request = MPI_REQUEST_NULL;
          place >= 0 && place != place_[rank_] &&
          PMPI_Isend(&words, int(sizeof words), MPI_BYTE, place, int(channels_), comm_, &request) == MPI_SUCCESS)
        PMPI_Request_free(&request);
  } catch (const std::exception&) {
  }
}

void Port::forget(GCCL_Transfer* t) noexcept {
  for (End& e : ends_)
    if (e.to_begin.remove(t) || e.to_post.remove(t)) return;
}

// Nothing of it is posted any more, and what is on its way does not touch its memory, as far as MPI can be made to.
void Port::cancel(GCCL_Transfer* t) noexcept {
  forget(t);
  if (cancel_until_ == Clock::time_point()) cancel_until_ = Clock::now() + kLetGo;
  bool left = false;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].transfer != t) continue;
    flights_[i].transfer = nullptr;
    // Buffers of the port's own stay until MPI is through with them.
    const bool in_callers_memory = flights_[i].in_callers_memory();
    if (may_call_mpi()) let_go(i, in_callers_memory ? cancel_until_ : Clock::time_point());
    left |= in_callers_memory && requests_[i] != MPI_REQUEST_NULL;
  }
  if (left && !warned_) {
    warned_ = true;
    instance_.log(1, "the mpi backend: MPI does not give up a message in flight, and may still use its memory");
  }
  drop_arrivals(t);
}

// A receive that nothing has come for is cancelled at once; what is arriving arrives first. A send cannot be cancelled:
// one that its receiver has begun to read gets its time to end (Open MPI 4.1 copies from the sender's memory where it
// could not read it), one that nobody receives never ends.
void Port::let_go(std::size_t i, Clock::time_point until) noexcept {
  if (requests_[i] == MPI_REQUEST_NULL) return;
  if (!flights_[i].sends()) PMPI_Cancel(&requests_[i]);
  int done = 0;
  while (PMPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // the peers need the processors
}

}  // namespace gccl::mpi
