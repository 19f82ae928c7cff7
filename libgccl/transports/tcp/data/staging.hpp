// Where payload lies for a moment on its way to a consumer: as large as fits beside the consumer's data in a core's
// second level cache. One for each port.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace gccl::tcp {

class Staging {
 public:
  static constexpr std::size_t kBytes = 128 << 10;
  static constexpr std::size_t kAlignment = 64;

  // At least kBytes and two grains, aligned; what it held is lost when it has to grow.
  std::byte* get(std::uint32_t grain) { return at_least(std::max(kBytes, 2 * std::size_t(grain) + kAlignment)); }
  std::byte* at_least(std::size_t bytes) {
    const std::size_t needed = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes_ < needed) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, needed)));
      if (!memory_) throw std::bad_alloc();
      bytes_ = needed;
    }
    return memory_.get();
  }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace gccl::tcp
