// Memory for the bookings of hundreds of thousands of timelines, in rooms with a number of 32 bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

struct Booking {
  Nanos begin = 0, end = 0;
};

// A room is for a power of two of bookings; it stays where it is until it is given back.
class Bookings {
 public:
  using Room = std::uint32_t;
  static constexpr Room kNone = 0;

  Booking* operator[](Room room) const { return chunks_[room >> kBits] + (room & (kChunk - 1)); }
  // Requires a power of two; what is in the room has no value. Throws std::bad_alloc at 64 GB.
  Room take(std::uint32_t bookings);
  // Requires that it was taken for so many.
  void give_back(Room room, std::uint32_t bookings);

 private:
  static constexpr unsigned kBits = 16;
  static constexpr std::uint32_t kChunk = 1u << kBits;  // 1 MiB

  std::vector<Booking*> chunks_;  // by the upper half of a room's number
  std::vector<std::unique_ptr<Booking[]>> memory_;
  std::uint32_t free_ = 0, end_ = 0;  // of the latest chunk: the numbers that nobody has had
  std::array<Room, 32> left_ = {};    // given back, by the logarithm of their size: the first; each has the next one
};

}  // namespace gccl::sim
