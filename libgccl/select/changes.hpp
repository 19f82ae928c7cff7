// Where a choice changes as calls get longer.
#pragma once

#include <algorithm>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// The first count, to within `resolution`, at which a choice that holds at `low` and not at `high` holds no more;
// one of them where it comes and goes between them.
template <class Holds>
Count first_change(Count low, Count high, Count resolution, Holds holds) {
  while (high - low > resolution) {
    const Count middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return high;
}

// found(count, choice) where choose(count) differs from the choice that holds before it, which is `now` for 1 element:
// looked for between sizes that double up to `most` and those to look at besides, one change at a time.
template <class Choice, class Choose, class Same, class Found>
void each_change(Choice now, Count most, std::vector<Count> besides, Choose choose, Same same, Found found) {
  std::erase_if(besides, [&](Count c) { return c <= 1 || c >= most; });
  std::sort(besides.begin(), besides.end());
  auto beside = besides.begin();
  for (Count last = 1; last < most;) {
    Count next = last > most / 2 ? most : last * 2;
    while (beside != besides.end() && *beside <= last) ++beside;
    if (beside != besides.end()) next = std::min(next, *beside);
    for (const Choice far = choose(next); !same(now, far);) {
      last = first_change(last, next, 1, [&](Count c) { return same(choose(c), now); });
      now = choose(last);
      found(last, now);
    }
    last = next;
  }
}

}  // namespace gccl
