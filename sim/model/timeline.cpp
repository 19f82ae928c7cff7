#include "sim/model/timeline.hpp"

#include <algorithm>

namespace gccl::sim {

void Timeline::remember(Booking b, Nanos now) {
  std::vector<Booking>& all = earlier_;
  if (all.size() == all.capacity()) {  // only now is it read, which would cost a cache miss every time
    all.erase(all.begin(), std::ranges::find_if(all, [&](const Booking& e) { return e.end > now; }));
    if (2 * all.size() > all.capacity()) all.reserve(2 * all.capacity());
  }
  all.push_back(b);
}

// The message fills each gap from where it begins to where it ends, so it and what it touches become one stretch.
Timeline::Passage Timeline::squeeze_in(Nanos head, Nanos length, Nanos now) {
  remember(last_, now);
  std::vector<Booking>& all = earlier_;
  const auto touched = std::ranges::lower_bound(all, head, {}, &Booking::end);
  auto next = touched;
  Booking whole{head, head};
  if (next->begin <= head) whole = *next++;  // there is one: head < last_.begin
  const Nanos first = whole.end;
  Nanos left = length;
  while (next != all.end() && left >= next->begin - whole.end && left > 0) {
    left -= next->begin - whole.end;
    whole.end = next++->end;
  }
  // Where nothing is left, the message has ended at the beginning of the last stretch that it touched.
  const Nanos tail = left > 0 || length == 0 ? whole.end + left : std::prev(next)->begin;
  whole.end += left;
  if (length > 0) {
    if (next == touched)
      all.insert(touched, whole);
    else
      all.erase(touched + 1, next), *touched = whole;
  }
  last_ = all.back();
  all.pop_back();
  return {first, tail};
}

}  // namespace gccl::sim
