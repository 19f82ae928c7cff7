// A schedule in flight over any transports: lanes whose messages are transfers of the ports that reach their peers.
#pragma once

#include <array>
#include <exception>
#include <string_view>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/elements/elements.hpp"
#include "libgccl/schedule/lane.hpp"
#include "libgccl/transports/fast_path.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

// The Backend of the lanes of one call on one rank. Lane i uses channel i.
class Flow {
 public:
  struct Work {
    std::uint64_t signature = 0;
    Buffers memory;                      // base[scratch] unused
    std::vector<std::byte*> scratch;     // by lane
    const Elements* elements = nullptr;  // must live as long as the flow
    std::uint32_t hints = 0;             // of its transfers
  };
  Flow(Ports& ports, Work work);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Before begin(): one more lane.
  void add(Schedule schedule, unsigned window);
  void begin();
  bool done() const;

  bool start(Lane<Flow>& lane, Token token, const Step& step);
  bool combine(Lane<Flow>& lane, Token token, const Step& step);
  // In this machine's memory a message stays with its sender until it is read, so there is nothing to gain: for the
  // copy and its fresh pages a reduce-scatter of 8 MiB on 8 ranks took three times as long.
  bool sets_aside(const Step& step) const { return !ports_.to(step.peer).in_memory; }

  // A port has returned a transfer whose owner is this flow: completed() follows, unless the flow ends before.
  void returned(const GCCL_Transfer& t) { tracks_[t.cookie >> 32]->in_flight &= ~(1u << Token(t.cookie)); }
  // It is complete. False on failure: see status().
  bool completed(GCCL_Transfer* t);
  // What became ready without a transfer: call now and then, and before waiting. False as above.
  bool settle();
  // After a failure: the ports forget this flow's transfers.
  void cancel();

  const Status& status() const { return status_; }
  // With GCCL_ERR_MISMATCH.
  const Difference& difference() const { return difference_; }
  // What has been sent and received so far.
  const Traffic& traffic() const { return traffic_; }
  // A peer that is waited for, and what for, in words, of that algorithm; false when none is.
  bool awaited(std::string_view algorithm, Rank* peer, std::string* what, bool* receiving) const;

 private:
  struct Track {
    Lane<Flow> lane;
    std::array<GCCL_Transfer, kWindowMax> transfers;
    std::array<std::unique_ptr<std::byte[]>, kWindowMax> staging;
    std::array<std::size_t, kWindowMax> staging_bytes{};
    std::array<std::uint64_t, kWindowMax> number{};  // of the step in that place, from 1 on
    std::uint64_t steps = 0;
    std::uint32_t in_flight = 0;  // transfers, by token
    std::uint32_t landed = 0;     // complete inside start; lanes hear of it later
  };
  static void consume(GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes);
  std::byte* at(std::uint32_t lane, const Region& r) const;
  bool right(const GCCL_Transfer& t);  // it counts then

  Ports& ports_;
  Work work_;
  Status status_;
  Difference difference_;
  Traffic traffic_;
  std::vector<std::unique_ptr<Track>> tracks_;
  std::uint32_t unsettled_ = 0;
  std::exception_ptr thrown_;  // by the program's reduction, while a transport handed it a piece: no exception for it
};

}  // namespace gccl
