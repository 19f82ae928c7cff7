// A network for real ranks on one machine, to which faults can happen: a network namespace for each rank, with one TAP
// device, and a switch between them in this process.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/net/socket.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::real {

// What becomes of frames from one rank to another.
struct Passage {
  bool cut = false;
  // Probabilities of each frame. A damaged one fails TCP's and UDP's checksum, unless `past_checksums`.
  double loss = 0, duplication = 0, reordering = 0, corruption = 0;
  double agreement_loss = 0;  // of messages of the agreement
  bool resets = false;        // a lost frame with TCP payload is a reset to both ends instead
  bool past_checksums = false;
  Nanos latency = 0;        // added
  double bytes_per_ns = 0;  // 0: as fast as it goes
};

class Network {
 public:
  // Empty where this system lets this user make such networks; else why not.
  static std::string obstacle();

  // Leaves this thread in the last of the namespaces. Throws std::runtime_error. They and their devices end with this
  // process and those that enter them.
  Network(Rank ranks, std::uint64_t seed);

  // In a rank's process: it lives in its namespace from then on.
  void enter(Rank rank) const;
  static std::string address(Rank rank);

  int descriptor(Rank rank) const { return ports_[rank].tap.get(); }
  // What is there; and what was delayed and is due by now. `passage` is asked for each frame.
  void move(Rank from, Nanos now, const std::function<Passage(Rank, Rank)>& passage);
  void deliver(Nanos now);
  // When deliver() has something to do; kNever.
  Nanos due() const { return delayed_.empty() ? kNever : delayed_.top().due; }
  static constexpr Nanos kNever = INT64_MAX;

 private:
  struct Port {
    Fd space, tap;
  };
  struct Frame {
    Nanos due;
    std::uint64_t number;
    Rank to;
    std::vector<std::uint8_t> bytes;
    bool operator<(const Frame& other) const {  // the queue's top is the largest: the earliest
      return due != other.due ? due > other.due : number > other.number;
    }
  };
  bool chance(double p);
  void pass(Rank from, Rank to, std::vector<std::uint8_t> bytes, Nanos now, const Passage& p);
  void damage(std::vector<std::uint8_t>* frame, bool past_checksums);
  void reset(Rank from, Rank to, const std::vector<std::uint8_t>& frame);
  void give(Rank to, const std::vector<std::uint8_t>& bytes);

  std::vector<Port> ports_;
  std::priority_queue<Frame> delayed_;
  std::vector<Nanos> free_;  // of slow ways, by from * ranks + to
  std::uint64_t number_ = 0, random_;
};

}  // namespace gccl::real
