// Where a choice changes as calls get longer.
#pragma once

#include <algorithm>

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
// looked for between sizes that double up to `most` and `asked`, one change at a time.
template <class Choice, class Choose, class Same, class Found>
void each_change(Choice now, Count most, Count asked, Choose choose, Same same, Found found) {
  for (Count last = 1; last < most;) {
    const Count doubled = last > most / 2 ? most : last * 2, next = last < asked ? std::min(asked, doubled) : doubled;
    for (const Choice far = choose(next); !same(now, far);) {
      last = first_change(last, next, 1, [&](Count c) { return same(choose(c), now); });
      now = choose(last);
      found(last, now);
    }
    last = next;
  }
}

}  // namespace gccl
