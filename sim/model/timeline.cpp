#include "sim/model/timeline.hpp"

#include <algorithm>

namespace gccl::sim {

void Timeline::Earlier::make_room() {
  const std::size_t used = all_ ? std::size_t(last() - first()) : 0, size_now = all_ ? std::size_t(size()) : 0;
  if (all_ && 2 * used < size_now) {
    std::copy(begin(), end(), &all_[kNumbers]);
  } else {
    const std::size_t more = std::max<std::size_t>(8, 2 * size_now);
    const Bookings::Room room = rooms_.take(std::uint32_t(more));
    Booking* const all = rooms_[room];
    if (all_) {
      std::copy(begin(), end(), &all[kNumbers]);
      rooms_.give_back(room_, std::uint32_t(size_now));
    }
    room_ = room;
    all_ = all;
    size() = std::int64_t(more);
  }
  first() = kNumbers;
  last() = std::int64_t(kNumbers + used);
}

void Timeline::Earlier::insert(Booking* before, Booking b) {
  const std::ptrdiff_t place = before - begin();
  if (last() == size()) make_room();
  std::copy_backward(begin() + place, end(), end() + 1);
  begin()[place] = b;
  ++last();
}

void Timeline::Earlier::erase(Booking* from, Booking* to) const {
  std::copy(to, end(), from);
  last() -= to - from;
}

// The message fills each gap from where it begins to where it ends, so it and what it touches become one stretch.
Timeline::Passage Timeline::squeeze_in(Nanos head, Nanos length, Nanos now, Bookings& room) {
  Earlier earlier(room, earlier_);
  earlier.push(last_, now);
  Booking* const touched = std::ranges::lower_bound(earlier.begin(), earlier.end(), head, {}, &Booking::end);
  Booking* next = touched;
  Booking whole{head, head};
  if (next->begin <= head) whole = *next++;  // there is one: head < last_.begin
  const Nanos first = whole.end;
  Nanos left = length;
  while (next != earlier.end() && left >= next->begin - whole.end && left > 0) {
    left -= next->begin - whole.end;
    whole.end = next++->end;
  }
  // Where nothing is left, the message has ended at the beginning of the last stretch that it touched.
  const Nanos tail = left > 0 || length == 0 ? whole.end + left : std::prev(next)->begin;
  whole.end += left;
  if (length > 0) {
    if (next == touched)
      earlier.insert(touched, whole);
    else
      earlier.erase(touched + 1, next), *touched = whole;
  }
  last_ = earlier.pop();
  return {first, tail};
}

}  // namespace gccl::sim
