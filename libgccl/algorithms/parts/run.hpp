// Runs: consecutive blocks of a ring of blocks, and the messages that carry them.
#pragma once

#include "libgccl/schedule/call.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// Blocks first .. first+length-1 of `ring` blocks, cyclically: block `ring` is block 0 again. Requires length <= ring
// and first < ring where length > 0. Dense blocks travel as one message, or as two where the run passes the end of the
// ring; slices (blocks that are apart) as one message each. All ranks cut a run alike when they know its ring.
struct Run {
  Blocks blocks;
  Count ring, first, length;

  Count messages() const {
    if (length == 0) return 0;
    if (!blocks.dense()) return length;
    return first + length > ring ? 2 : 1;
  }
  // How many of the run's blocks lie before message i, 0 <= i <= messages().
  Count before(Count i) const {
    if (!blocks.dense() || i == 0) return i;
    return i < messages() ? ring - first : length;
  }
  Region message(Count i) const {
    const Count at = first + before(i), size = before(i + 1) - before(i);
    return {blocks.buffer, blocks.offset + (at < ring ? at : at - ring) * blocks.stride, size * blocks.count};
  }
};

// A single region as a run of one block.
inline Run run_of(Region x) { return {{x.buffer(), x.offset(), x.count, x.count}, 1, 0, 1}; }

// n blocks of the share's size side by side at `offset` of the scratch memory.
inline Blocks packed(Blocks like, Count offset = 0) { return {Buffer::scratch, offset, like.count, like.count}; }

// Sends one run while receiving another, message by message in turns: neither waits for more than one message of the
// other side, so two steps in flight (or one buffered message) suffice.
Schedule exchange(Rank to, Run give, Rank from, Run take);
// Copies packed blocks onto a run, and a run onto packed blocks; `packed` is where the first block lies.
Schedule unpack(Region packed, Run to);
Schedule pack(Run from, Region packed);

}  // namespace gccl
