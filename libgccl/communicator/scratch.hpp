// Memory between the steps of a call, for each of its lanes; kept for later calls. Where peers read each other's memory
// it is such as they can map: they read it at the rate of a copy, and through the system at half of that, or with
// several readers at a tenth.
#pragma once

#include <array>
#include <cassert>
#include <memory>
#include <vector>

#include "libgccl/communicator/setting.hpp"
#include "libgccl/transports/fast_path.hpp"
#include "libgccl/transports/shared_memory.hpp"

namespace gccl {

class Scratch {
 public:
  std::byte* lane(std::size_t i) const { return lanes_[i].data.get(); }

  // So many elements for each lane, wherever they are then; `in_memory`: peers read them. Requires at most kLanesMax
  // lanes, and that nobody uses it.
  void reserve(const std::vector<Count>& elements, std::uint32_t element_bytes, bool in_memory) {
    assert(elements.size() <= lanes_.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::size_t bytes = elements[i] * element_bytes;
      Memory& m = lanes_[i];
      if (m.bytes >= bytes) continue;
      m = {};  // first, so that old and new never exist at once
      m.data = allocate(bytes, in_memory && bytes > kShortBytesMax);
      m.bytes = bytes;
    }
  }

 private:
  using Owner = std::unique_ptr<std::byte, void (*)(std::byte*)>;
  static void free_ordinary(std::byte* p) { delete[] p; }
  static void free_mapped(std::byte* p) { (void)free_shared(p); }
  static Owner allocate(std::size_t bytes, bool mapped) {
    if (void* p = nullptr; mapped && allocate_shared(bytes, &p).ok()) return {static_cast<std::byte*>(p), free_mapped};
    return {new std::byte[bytes], free_ordinary};
  }
  struct Memory {
    Owner data{nullptr, free_ordinary};
    std::size_t bytes = 0;
  };
  std::array<Memory, kLanesMax> lanes_;
};

}  // namespace gccl
