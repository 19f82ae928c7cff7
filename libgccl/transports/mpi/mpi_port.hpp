// One communicator's messages over MPI, on a communicator of MPI's own: a channel has a tag for first parts, one for
// fragments and one for clears.
//
// A message begins with a first part: a header and, up to kEagerBytes, the data, in a buffer of the port's. Longer data
// follow in fragments from and to the caller's memory, a few of them posted at a time, so that a receiver combines one
// while the next arrives. MPI keeps the order of messages with one tag between two ranks; so a transfer posts no
// fragment before all of the previous one are posted.
//
// MPI cannot take a send back, and may read its memory whenever the receive is posted. So no fragment is sent before
// its receiver has begun the receive, which it says in a clear: the header of the message that it awaits.
//
//    sender                     receiver
//    begin: first part   ---->            does the header match? then post receives of fragments
//                        <----  begin: clear
//    does it match? then
//    fragments           ---->
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/transports/transfer_queue.hpp"

namespace gccl::mpi {

inline constexpr std::uint64_t kEagerBytes = 8 * 1024;
inline constexpr std::uint64_t kFragmentBytes = 1024 * 1024;
inline constexpr std::uint32_t kFragmentsPosted = 4;  // of one transfer at a time
// Sent and not complete, of one channel to one peer: a rank that runs ahead of its peer takes no more memory.
inline constexpr std::uint32_t kFirstPartsPosted = 64;

class Port;

// What the ports of one rank share.
struct Instance {
  // The only thread that may call MPI; none where all of them may.
  std::thread::id thread;
  bool one_at_a_time = false;  // MPI_THREAD_SERIALIZED: the program sees to that for its own calls
  void (*log)(int level, const char* text) = nullptr;
  // Of all instances of the process, as its threads take turns at one MPI: which thread used a port last.
  static inline std::atomic<std::thread::id> used_by{};
  // Ports whose abort() could not tell the peers: the thread that next uses any port does.
  static inline std::mutex mutex;
  static inline std::vector<Port*> to_report;
  static inline std::atomic<bool> reports{false};
};

class Port {
 public:
  Port(const Instance& instance, const GCCL_Port_spec& spec, void* address);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Collective over the ranks that have an address. False: the fault says why.
  bool connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches);
  // As in GCCL_Backend. What goes wrong in them, and an exception too, is a fault that poll() reports.
  int send(GCCL_Transfer* t) noexcept { return begin(t, true); }
  int receive(GCCL_Transfer* t) noexcept { return begin(t, false); }
  int poll(GCCL_Transfer** done, int max) noexcept;
  void cancel(GCCL_Transfer* t) noexcept;
  void abort(const GCCL_Fault& fault) noexcept;
  const GCCL_Fault& fault() const { return fault_; }

 private:
  struct Header {
    std::uint64_t signature, bytes;
  };
  // Where a first part lies. Consumers want their data at a multiple of 64 bytes.
  struct alignas(64) Slot {
    std::byte unused[64 - sizeof(Header)];
    Header header;
    std::byte data[kEagerBytes];
  };
  struct alignas(64) Fragment {
    std::byte bytes[kFragmentBytes];
  };
  // Buffers that go round.
  template <class Buffer>
  struct Pool {
    std::vector<std::unique_ptr<Buffer>> free;
    std::unique_ptr<Buffer> take() {
      if (free.empty()) return std::unique_ptr<Buffer>(new Buffer);  // not zeroed
      std::unique_ptr<Buffer> b = std::move(free.back());
      free.pop_back();
      return b;
    }
    void give(std::unique_ptr<Buffer> b) {
      if (b) free.push_back(std::move(b));
    }
  };
  // One direction of one channel with one peer.
  struct End {
    int peer = 0, tag = 0;  // MPI's
    bool sends = false;
    std::uint32_t first_parts = 0;  // of sends: posted and not complete
    TransferQueue to_begin;         // sends that wait for one of those
    TransferQueue to_post;          // long transfers that have not posted all of their fragments
  };
  using Clock = std::chrono::steady_clock;
  // A request of MPI's. Between `requests_` and this, the same index.
  struct Flight {
    enum class Kind : std::uint8_t { first_part, clear, fragment, fault } kind;
    GCCL_Transfer* transfer = nullptr;  // null where it is complete already, cancelled, or does not wait for this
    End* end = nullptr;
    std::unique_ptr<Slot> slot{};
    std::unique_ptr<Fragment> fragment{};
    std::uint64_t index = 0;  // of the fragment
    bool sends() const { return end && end->sends != (kind == Kind::clear); }
    bool in_callers_memory() const { return kind == Kind::fragment && !fragment; }
  };
  // A long receive: fragments may complete in any order, and are consumed in theirs.
  struct Arrivals {
    std::uint64_t consumed = 0;  // fragments
    std::array<std::unique_ptr<Fragment>, kFragmentsPosted> buffers;
    std::array<bool, kFragmentsPosted> arrived{};
  };
  // What GCCL_Transfer::backend holds of a long transfer.
  enum Word {
    kMatched,     // 1: the other side's header or clear is here and matches, so fragments may go
    kPosted,      // fragments posted
    kIncomplete,  // of these, not complete
    kArrivals,    // of a receive that has matched: arrivals(), which the transfer owns
  };
  static Arrivals* arrivals(const GCCL_Transfer* t) { return reinterpret_cast<Arrivals*>(t->backend[kArrivals]); }
  static void drop_arrivals(GCCL_Transfer* t) {
    delete arrivals(t);
    t->backend[kArrivals] = 0;
  }

  bool may_call_mpi() noexcept;
  bool abort_may_call_mpi() noexcept;
  void use_mpi() noexcept;
  int begin(GCCL_Transfer* t, bool sends) noexcept;
  void start(End& e, GCCL_Transfer* t);
  void go_on(End& e);
  void post_first_part(End& e, GCCL_Transfer* t);
  void post_clear(End& e, GCCL_Transfer* t);
  bool post_fragments(End& e, GCCL_Transfer* t);
  void post(void* data, std::uint64_t bytes, Flight flight);
  void completed(Flight& f);
  void first_part_sent(End& e);
  void first_part_arrived(Flight& f);
  void cleared(Flight& f);
  void test_fault();
  void fragment_done(Flight& f);
  void consume(End& e, GCCL_Transfer* t);
  void forget(GCCL_Transfer* t) noexcept;
  void finish(GCCL_Transfer* t, GCCL_Result result);
  void test();
  bool failed(int code, const char* call);
  void fail(int result, std::uint32_t peer, const char* text) noexcept;
  void send_fault() noexcept;
  void let_go(std::size_t i, Clock::time_point until) noexcept;

  const Instance& instance_;
  const std::uint32_t rank_, channels_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<int> place_;  // by rank: its rank in comm_, or -1
  std::vector<End> ends_;   // by place, channel, direction
  std::vector<MPI_Request> requests_;
  std::vector<Flight> flights_;
  std::vector<GCCL_Transfer*> done_;
  std::size_t done_first_ = 0;  // of done_, not yet returned
  Pool<Slot> slots_;
  Pool<Fragment> fragments_;
  GCCL_Fault fault_{};
  std::unique_ptr<GCCL_Fault> received_fault_ = std::make_unique<GCCL_Fault>();  // MPI may write to it after the port
  Clock::time_point cancel_until_{};  // so long cancelled transfers are waited for, all together
  bool warned_ = false;
  // What abort() has for the peers.
  std::mutex mutex_;
  GCCL_Fault reported_{};
  std::atomic<bool> fault_to_send_{false};
  // test()'s own, kept to spare allocations.
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<Flight> finished_;
};

}  // namespace gccl::mpi
