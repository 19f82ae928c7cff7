// Regions name memory without owning any: a buffer of the call, an offset and a count, in elements.
#pragma once

#include <algorithm>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// `none` is a message without content (a barrier's token). `scratch` is private to one lane of one rank.
enum class Buffer : std::uint8_t { none, input, output, scratch };

// The buffer and the offset share a word: simulations hold millions of regions.
class Region {
 public:
  static constexpr Count kEndMax = (Count(1) << 62) - 1;  // of offset + count
  Count count;

  constexpr Region() : count(0), place_(0) {}
  constexpr Region(Buffer buffer, Count offset, Count elements)
      : count(elements), place_(offset << 2 | Count(buffer)) {}
  constexpr Buffer buffer() const { return Buffer(place_ & 3); }
  constexpr Count offset() const { return place_ >> 2; }

  // The i-th of n near-equal parts: the first count % n parts hold one element more. Requires i < n.
  // Inlined always: as a call it would return by memory what the next lines read.
  [[gnu::always_inline]] Region part(Count i, Count n) const {
    if (((count | n) >> 32) == 0) {  // 32-bit division is several times cheaper
      const std::uint32_t q = std::uint32_t(count) / std::uint32_t(n), r = std::uint32_t(count) % std::uint32_t(n);
      return {buffer(), offset() + i * q + std::min<Count>(i, r), q + (i < r)};
    }
    const Count q = count / n, r = count % n;
    return {buffer(), offset() + i * q + std::min(i, r), q + (i < r)};
  }
  // The parts first .. first+length-1 of n, which lie next to each other. Requires first + length <= n.
  Region parts(Count first, Count length, Count n) const {
    if (length == 0) return {buffer(), offset(), 0};
    const Region a = part(first, n), b = part(first + length - 1, n);
    return {buffer(), a.offset(), b.offset() + b.count - a.offset()};
  }
  Region sub(Count from, Count length) const { return {buffer(), offset() + from, length}; }

  friend bool operator==(const Region&, const Region&) = default;
  // True when the two share at least one element.
  [[gnu::always_inline]] friend bool overlap(const Region& a, const Region& b) {
    return ((a.place_ ^ b.place_) & 3) == 0 && a.place_ < b.place_ + (b.count << 2) &&
           b.place_ < a.place_ + (a.count << 2) && a.buffer() != Buffer::none;
  }

 private:
  Count place_;
};

// n blocks of one buffer, one for each rank: block i starts at offset + i * stride. With shares a block is a slice of
// the rank's whole block, so blocks are apart (stride > count) and only `dense` blocks may be sent in one message.
struct Blocks {
  Buffer buffer = Buffer::none;
  Count offset = 0, stride = 0, count = 0;

  Region operator[](Count i) const { return {buffer, offset + i * stride, count}; }
  bool dense() const { return stride == count; }
  // Blocks first .. first+length-1 as one region. Requires dense().
  Region run(Count first, Count length) const { return {buffer, offset + first * stride, length * stride}; }
};

}  // namespace gccl
