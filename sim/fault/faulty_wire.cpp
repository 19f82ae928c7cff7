#include "sim/fault/faulty_wire.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gccl::sim {
namespace {

constexpr Nanos kRetry = 200'000;  // of a dial, and of bytes that a cut holds up

std::vector<std::byte> joined(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::vector<std::byte> all;
  all.reserve(a.size() + b.size());
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

void Wire::damage(std::vector<std::byte>* bytes) {
  for (std::uint64_t bits = chance_.from(1, 4); bits > 0; --bits)
    (*bytes)[chance_.next() % bytes->size()] ^= std::byte(1u << chance_.from(0, 7));
}

void DatagramWire::write(unsigned side, std::span<const std::byte> header, std::span<const std::byte> payload) {
  const WireFaults& f = faults[side];
  for (int copies = chance_.with(f.duplication) ? 2 : 1; copies > 0; --copies) {
    if (f.cut || chance_.with(f.loss)) continue;
    std::vector<std::byte> bytes = joined(header, payload);
    if (chance_.with(f.corruption)) {
      damage(&bytes);
      if (chance_.with(0.2)) bytes.resize(chance_.next() % bytes.size());
    }
    const Nanos late = chance_.with(f.reordering) ? Nanos(chance_.from(1, 10)) : 1;
    const Nanos takes = late * delay(side, bytes.size());  // before the bytes are moved into the event
    time_->after(takes, [this, side, bytes = std::move(bytes)] { ends_[1 - side]->arrived(bytes); });
  }
}

void StreamWire::write(unsigned side, std::span<const std::byte> header, std::span<const std::byte> payload) {
  assert(takes(side));
  std::vector<std::byte> bytes = joined(header, payload);
  on_their_way_[side] += bytes.size();
  if (broken_) return;  // the side does not know yet
  if (const std::size_t at = chance_.next() % bytes.size(); at > 0 && chance_.with(0.5)) {
    send_piece(side, {bytes.begin(), bytes.begin() + std::ptrdiff_t(at)});
    bytes.erase(bytes.begin(), bytes.begin() + std::ptrdiff_t(at));
  }
  send_piece(side, std::move(bytes));
}

void StreamWire::send_piece(unsigned side, std::vector<std::byte> bytes) {
  if (broken_) return;
  const WireFaults& f = faults[side];
  if (chance_.with(f.loss)) return break_now();
  if (chance_.with(f.corruption)) damage(&bytes);
  last_arrival_[side] = std::max(last_arrival_[side], time_->now() + delay(side, bytes.size()));
  pieces_[side].push_back(std::move(bytes));
  time_->at(last_arrival_[side], [this, side, c = connection_] { deliver(side, c); });
}

void StreamWire::deliver(unsigned side, std::uint64_t connection) {
  if (connection != connection_ || !open_[1 - side]) return;
  if (faults[side].cut) return time_->after(kRetry, [=, this] { deliver(side, connection); });
  const std::vector<std::byte> bytes = std::move(pieces_[side].front());
  pieces_[side].pop_front();
  const bool was_full = !takes(side);
  on_their_way_[side] -= bytes.size();
  ends_[1 - side]->arrived(bytes);
  if (was_full && takes(side)) ends_[side]->writable();
}

void StreamWire::break_now() {
  if (std::exchange(broken_, true)) return;
  for (const unsigned side : {0u, 1u})
    time_->after(Nanos(chance_.from(0, 3)) * delay(1 - side, 0), [this, side, c = connection_] { notice(side, c); });
}

void StreamWire::notice(unsigned side, std::uint64_t connection) {
  if (connection != connection_ || !std::exchange(open_[side], false)) return;
  ends_[side]->broken();
  if (!open_[1 - side]) dial();
}

void StreamWire::dial() {
  time_->after(kRetry + delay(0, 0) + delay(1, 0), [this] {
    if (faults[0].cut || faults[1].cut) return dial();
    ++connection_;
    broken_ = false;
    pieces_ = {};
    on_their_way_ = {};
    last_arrival_ = {};
    open_ = {true, true};
    for (WireEnd* end : ends_) end->connected();
  });
}

}  // namespace gccl::sim
