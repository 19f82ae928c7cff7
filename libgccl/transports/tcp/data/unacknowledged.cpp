#include "libgccl/transports/tcp/data/unacknowledged.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace gccl::tcp {

Unacknowledged::Memory Unacknowledged::take(std::size_t bytes) {
  if (bytes <= kBlockBytes && spares_ > 0) return std::move(spare_[--spares_]);
  return Memory(new std::byte[std::max(kBlockBytes, bytes)]);
}

void Unacknowledged::give_back(Memory memory, bool block) {
  if (block && memory.use_count() == 1 && spares_ < kSpareMax) spare_[spares_++] = std::move(memory);
}

std::byte* Unacknowledged::prepare(std::size_t copied, GCCL_Transfer* transfer, const std::byte* payload) {
  assert(!behind());
  if (copied > 0) {
    if (stretches_.empty()) filled_ = 0;
    if (filled_ + copied > block_bytes_) {
      Memory next = take(copied);
      give_back(std::exchange(block_, std::move(next)), block_bytes_ == kBlockBytes);
      block_bytes_ = std::max(kBlockBytes, copied);
      filled_ = 0;
    }
    std::byte* const at = block_.get() + filled_;
    if (stretches_.empty() || stretches_.back().memory != block_ ||
        stretches_.back().data + stretches_.back().bytes != at)
      stretches_.push_back({.data = at, .memory = block_, .block = block_bytes_ == kBlockBytes});
  }
  if (transfer && (copied > 0 || stretches_.empty() || stretches_.back().transfer != transfer ||
                   stretches_.back().data + stretches_.back().bytes != payload))
    stretches_.push_back({.data = payload});
  return block_.get() + filled_;
}

void Unacknowledged::wrote(std::size_t copied, std::uint64_t referred, GCCL_Transfer* transfer,
                           const std::byte* payload) {
  if (referred > 0) {
    Stretch& s = stretches_.back();
    assert(s.data + s.bytes == payload);
    if (!s.transfer) s.transfer = transfer, ++transfer->backend[kPending];
    s.bytes += referred;
  } else if (!stretches_.empty() && stretches_.back().bytes == 0 && !stretches_.back().memory) {
    stretches_.pop_back();
  }
  if (copied > 0) {
    Stretch& s = stretches_[stretches_.size() - (referred > 0 ? 2 : 1)];
    assert(s.data + s.bytes == block_.get() + filled_);
    s.bytes += copied;
    filled_ += copied;
  } else if (!stretches_.empty() && stretches_.back().bytes == 0) {
    stretches_.pop_back();
  }
  sent_ = end_ += copied + referred;
}

// Up to so many bytes of the first stretch. Returns its transfer where that is needed no more.
GCCL_Transfer* Unacknowledged::drop(std::uint64_t bytes) {
  Stretch& s = stretches_.front();
  const std::uint64_t n = std::min(s.bytes, bytes);
  s.data += n;
  s.bytes -= n;
  begin_ += n;
  if (s.bytes > 0) return nullptr;
  if (stretches_.size() == 1 && s.memory && s.memory == block_) {
    // The next copy goes there again: where each message is acknowledged before the next one, nothing else moves.
    s.data = block_.get();
    filled_ = 0;
    return nullptr;
  }
  GCCL_Transfer* const t = s.transfer;
  give_back(std::move(s.memory), s.block);
  stretches_.pop_front();
  return t && --t->backend[kPending] == 0 ? t : nullptr;
}

GCCL_Transfer* Unacknowledged::copy_end(std::size_t index, std::uint64_t bytes_max) {
  const std::uint64_t bytes = std::min(bytes_max, stretches_[index].bytes);
  const bool block = bytes > kBlockBytes / 4 && bytes <= kBlockBytes;
  const Memory memory = block ? take(bytes) : Memory(new std::byte[bytes]);
  std::memcpy(memory.get(), stretches_[index].data + (stretches_[index].bytes - bytes), bytes);
  const Stretch end{.data = memory.get(), .bytes = bytes, .memory = memory, .block = block};
  if (bytes < stretches_[index].bytes) {
    stretches_.insert(stretches_.begin() + std::ptrdiff_t(index) + 1, end);
    stretches_[index].bytes -= bytes;
    return nullptr;
  }
  GCCL_Transfer* const t = std::exchange(stretches_[index], end).transfer;
  return --t->backend[kPending] == 0 ? t : nullptr;
}

int Unacknowledged::unsent(std::span<iovec> pieces, std::uint64_t bytes_max) const {
  std::size_t n = 0;
  std::uint64_t at = begin_, left = bytes_max;
  for (auto s = stretches_.begin(); s != stretches_.end() && n < pieces.size() && left > 0; at += s->bytes, ++s) {
    if (at + s->bytes <= sent_) continue;
    const std::uint64_t skip = sent_ > at ? sent_ - at : 0, bytes = std::min(s->bytes - skip, left);
    pieces[n++] = {const_cast<std::byte*>(s->data) + skip, bytes};
    left -= bytes;
  }
  return int(n);
}

std::uint64_t Unacknowledged::referred(const GCCL_Transfer* transfer) const {
  std::uint64_t bytes = 0;
  for (const Stretch& s : stretches_)
    if (s.transfer == transfer) bytes += s.bytes;
  return bytes;
}

}  // namespace gccl::tcp
