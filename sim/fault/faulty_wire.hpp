// Wires between two ends in virtual time, with faults: datagrams that are lost, doubled, damaged, late and out of
// order; connections that break and are dialled again. Deterministic by seed.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/fault/virtual_time.hpp"

namespace gccl::sim {

// The faults of one direction of a wire.
struct WireFaults {
  double loss = 0, duplication = 0, corruption = 0;  // probability for each piece that is sent
  double reordering = 0;                             // likewise: it takes up to ten times as long
  Nanos delay_min = 1000, delay_max = 1000;
  bool cut = false;  // a partition: nothing that is sent arrives
};

class WireEnd {
 public:
  virtual ~WireEnd() = default;
  virtual void arrived(std::span<const std::byte> bytes) = 0;
  // Connections only.
  virtual void connected() {}
  virtual void broken() {}
  // The wire takes bytes again.
  virtual void writable() {}
};

class Wire {
 public:
  Wire(VirtualTime* time, std::uint64_t seed) : time_(time), chance_(seed) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;

  void attach(unsigned side, WireEnd* end) { ends_[side] = end; }
  virtual bool takes(unsigned side) const = 0;
  // Requires takes(side).
  virtual void write(unsigned side, std::span<const std::byte> header, std::span<const std::byte> payload) = 0;
  // What is on its way from `side`; may be changed at any time.
  std::array<WireFaults, 2> faults;
  // How long so many bytes from `side` take that are sent now; empty: as `faults` say.
  std::function<Nanos(unsigned side, std::size_t bytes)> passage;

 protected:
  Nanos delay(unsigned side, std::size_t bytes) {
    const WireFaults& f = faults[side];
    return passage ? passage(side, bytes) : Nanos(chance_.from(std::uint64_t(f.delay_min), std::uint64_t(f.delay_max)));
  }
  void damage(std::vector<std::byte>* bytes);

  VirtualTime* const time_;
  Chance chance_;
  std::array<WireEnd*, 2> ends_{};
};

// Each write is a datagram.
class DatagramWire : public Wire {
 public:
  using Wire::Wire;
  bool takes(unsigned) const override { return true; }
  void write(unsigned side, std::span<const std::byte> header, std::span<const std::byte> payload) override;
};

// A connection: bytes keep their order, in pieces that end anywhere. A cut stalls them, as losses stall TCP; damage is
// what TCP's own checksum misses. It breaks when it is asked to, or with `loss` per piece; what is on its way is lost
// then, but for a beginning, each side notices at a time of its own, and once both have it is dialled again.
class StreamWire : public Wire {
 public:
  static constexpr std::size_t kBytesMax = 64 << 10;  // on their way in one direction

  StreamWire(VirtualTime* time, std::uint64_t seed) : Wire(time, seed) { dial(); }
  bool takes(unsigned side) const override { return open_[side] && on_their_way_[side] < kBytesMax; }
  void write(unsigned side, std::span<const std::byte> header, std::span<const std::byte> payload) override;
  // By the network, or by one side because nothing it reads makes sense.
  void break_now();

 private:
  void dial();
  void send_piece(unsigned side, std::vector<std::byte> bytes);
  void deliver(unsigned side, std::uint64_t connection);
  void notice(unsigned side, std::uint64_t connection);

  std::uint64_t connection_ = 0;  // number
  bool broken_ = true;
  std::array<bool, 2> open_{};                                // as the side knows
  std::array<std::deque<std::vector<std::byte>>, 2> pieces_;  // that each delivery takes the first of
  std::array<std::size_t, 2> on_their_way_{};                 // bytes
  std::array<Nanos, 2> last_arrival_{};
};

}  // namespace gccl::sim
