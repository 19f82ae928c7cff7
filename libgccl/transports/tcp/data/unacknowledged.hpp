// What has been written to a stream and not acknowledged: what its next connection sends again.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "gccl/backend.h"
#include "libgccl/transports/tcp/data/zero_copy.hpp"

namespace gccl::tcp {

// A stream's bytes are numbered from its first connection on; those from begin() to end() have been written and are
// kept. Headers and short payloads are copied; others stay where their transfers have them, which are complete
// only when these bytes are acknowledged, or copied after all. For each such stretch a transfer's backend[kPending] is
// one higher.
//
//      acknowledged        kept                               to be written
//   ---------------------|----------------|-----------------|------------------>
//                        begin()          sent()            end()
//
// sent() < end() only after a connection broke: these bytes are sent again first.
class Unacknowledged {
 public:
  static constexpr int kPending = ZeroCopy::kPending;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t size() const { return end_ - begin_; }
  bool behind() const { return sent_ < end_; }

  // Before a write of at most `copied` bytes that are to be copied and then, where there is a transfer, some of its
  // memory from `payload` on: takes all the memory that wrote() needs. Returns the place of the copies.
  std::byte* prepare(std::size_t copied, GCCL_Transfer* transfer, const std::byte* payload);
  // So many of each were written. The first are at the place that prepare() returned.
  void wrote(std::size_t copied, std::uint64_t referred, GCCL_Transfer* transfer, const std::byte* payload);

  // The peer has all bytes before `position`. Calls done(transfer) for each whose last stretch this was. False: it
  // cannot have them, as they have not been sent.
  template <class Done>
  bool acknowledge(std::uint64_t position, Done done) {
    if (position > sent_) return false;
    while (begin_ < position)
      if (GCCL_Transfer* const t = drop(position - begin_)) done(t);
    return true;
  }
  // Copies some of what is kept in the memory of the first transfer for which whole(transfer) holds: the last bytes, as
  // acknowledgements come for the first ones. done() as above. False: there is none.
  template <class Whole, class Done>
  bool copy_some(std::uint64_t bytes_max, Whole whole, Done done) {
    std::size_t last = stretches_.size();
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      GCCL_Transfer* const t = stretches_[i].transfer;
      if (t && (last < stretches_.size() ? t == stretches_[last].transfer : whole(t))) last = i;
    }
    if (last == stretches_.size()) return false;
    if (GCCL_Transfer* const t = copy_end(last, bytes_max)) done(t);
    return true;
  }

  // A new connection on which the peer has all before `position`: the rest is sent again. False: there is no such.
  template <class Done>
  bool go_on_at(std::uint64_t position, Done done) {
    if (position < begin_ || position > end_) return false;
    sent_ = end_;
    acknowledge(position, done);
    sent_ = position;
    return true;
  }
  // The bytes from sent() on, in at most so many pieces; and that so many of them have been written.
  int unsent(std::span<iovec> pieces, std::uint64_t bytes_max) const;
  void sent(std::uint64_t bytes) { sent_ += bytes; }

  // How much is kept in the transfer's memory.
  std::uint64_t referred(const GCCL_Transfer* transfer) const;

 private:
  static constexpr std::size_t kBlockBytes = 64 << 10;
  static constexpr std::size_t kSpareMax = 4;
  using Memory = std::shared_ptr<std::byte[]>;

  struct Stretch {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    GCCL_Transfer* transfer = nullptr;  // whose memory it is
    Memory memory{};
    bool block = false;  // it has kBlockBytes
  };
  Memory take(std::size_t bytes);
  void give_back(Memory memory, bool block);
  GCCL_Transfer* drop(std::uint64_t bytes);
  GCCL_Transfer* copy_end(std::size_t index, std::uint64_t bytes_max);

  std::deque<Stretch> stretches_;
  std::uint64_t begin_ = 0, sent_ = 0, end_ = 0;
  Memory block_;  // where copies go
  std::size_t block_bytes_ = 0, filled_ = 0;
  // Used again: memory that comes from the system costs a page fault for each 4 KiB, more than the copy does.
  std::array<Memory, kSpareMax> spare_;
  std::size_t spares_ = 0;
};

}  // namespace gccl::tcp
