// A set of the members of an epoch, by their place, that comes to hold all of them: a bit each in a message, and
// nothing once all are in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "libgccl/net/bytes.hpp"

namespace gccl::fault {

class MemberBits {
 public:
  MemberBits() = default;  // all of them, of however many
  explicit MemberBits(std::size_t members) : words_((members + 63) / 64), missing_(members) {}

  bool contains(std::size_t place) const { return words_.empty() || (words_[place / 64] >> place % 64 & 1) != 0; }
  void insert(std::size_t place) {
    if (contains(place)) return;
    words_[place / 64] |= std::uint64_t(1) << place % 64;
    if (--missing_ == 0) words_.clear();
  }
  // Of as many members, or of others: then nothing is done.
  void insert(const MemberBits& other) {
    if (other.words_.empty()) words_.clear();
    if (other.words_.size() != words_.size()) return;
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t more = other.words_[w] & ~words_[w]; more != 0; more &= more - 1) {
        const std::size_t place = w * 64 + std::size_t(std::countr_zero(more));
        insert(place);
        if (words_.empty()) return;
      }
  }

  friend void write(BytesOut& out, const MemberBits& set) {
    out.u32(std::uint32_t(set.words_.size()));
    for (const std::uint64_t word : set.words_) out.u64(word);
  }
  // False: these bytes are no set.
  friend bool read(BytesIn& in, MemberBits* set) {
    *set = {};
    const std::uint32_t words = in.u32();
    if (words > in.rest().size() / 8) return false;
    for (std::uint32_t w = 0; w < words; ++w) set->words_.push_back(in.u64());
    return in.ok();
  }
  friend bool operator==(const MemberBits&, const MemberBits&) = default;

 private:
  std::vector<std::uint64_t> words_;  // none: all are in
  std::size_t missing_ = 0;           // unknown in one that was read
};

}  // namespace gccl::fault
