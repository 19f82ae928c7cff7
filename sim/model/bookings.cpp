#include "sim/model/bookings.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace gccl::sim {

Bookings::Room Bookings::take(std::uint32_t bookings) {
  if (Room& left = left_[std::size_t(std::countr_zero(bookings))]; left != kNone)
    return std::exchange(left, Room((*this)[left]->begin));
  if (end_ - free_ < bookings) {  // what is left of the chunk stays empty: as much as the next room at most
    const std::size_t chunks = std::max<std::size_t>(bookings >> kBits, 1);
    if (chunks_.size() + chunks >= kChunk) throw std::bad_alloc();
    memory_.push_back(std::make_unique_for_overwrite<Booking[]>(chunks << kBits));
    free_ = std::uint32_t(chunks_.size()) << kBits;
    end_ = free_ + (std::uint32_t(chunks) << kBits);
    for (std::size_t i = 0; i < chunks; ++i) chunks_.push_back(memory_.back().get() + (i << kBits));
    if (free_ == kNone) free_ = bookings;  // no room has that number
    if (end_ - free_ < bookings) return take(bookings);
  }
  return std::exchange(free_, free_ + bookings);
}

void Bookings::give_back(Room room, std::uint32_t bookings) {
  Room& left = left_[std::size_t(std::countr_zero(bookings))];
  (*this)[room]->begin = Nanos(std::exchange(left, room));
}

}  // namespace gccl::sim
