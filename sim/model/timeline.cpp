#include "sim/model/timeline.hpp"

#include <algorithm>

namespace gccl::sim {

void Timeline::remember(Booking b, Nanos now) {
  if (!earlier_) earlier_ = std::make_unique<std::vector<Booking>>();
  const auto past = std::find_if(earlier_->begin(), earlier_->end(), [&](const Booking& e) { return e.end > now; });
  earlier_->erase(earlier_->begin(), past);
  earlier_->push_back(b);
}

Timeline::Passage Timeline::squeeze_in(Nanos head, Nanos length, Nanos now) {
  // All stretches, the new message's pieces among them, then merged where they touch.
  std::vector<Booking> all;
  if (earlier_) all.swap(*earlier_);
  all.push_back(last_);
  std::vector<Booking> merged;
  const auto add = [&](Booking b) {
    if (b.end <= now || b.begin == b.end) return;
    if (!merged.empty() && merged.back().end == b.begin)
      merged.back().end = b.end;
    else
      merged.push_back(b);
  };
  Nanos at = head, left = length, first = -1;
  for (const Booking& b : all) {
    if (at < b.begin && (left > 0 || first < 0)) {
      if (first < 0) first = at;
      const Nanos piece = std::min(left, b.begin - at);
      add({at, at + piece});
      left -= piece;
      if (left == 0) at += piece;
    }
    add(b);
    if (left > 0 || first < 0) at = std::max(at, b.end);
  }
  if (first < 0) first = at;
  if (left > 0) {
    add({at, at + left});
    at += left;
  }
  if (merged.empty()) return {first, at};  // nothing is booked from now on: only a message without length gets here
  last_ = merged.back();
  merged.pop_back();
  if (!merged.empty() && !earlier_) earlier_ = std::make_unique<std::vector<Booking>>();
  if (earlier_) *earlier_ = std::move(merged);
  return {first, at};
}

}  // namespace gccl::sim
