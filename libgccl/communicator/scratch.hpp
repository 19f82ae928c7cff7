// Memory between the steps of a call, for each of its lanes; kept for later calls.
#pragma once

#include <array>
#include <cassert>
#include <memory>
#include <vector>

#include "libgccl/communicator/setting.hpp"

namespace gccl {

class Scratch {
 public:
  std::byte* lane(std::size_t i) const { return lanes_[i].data.get(); }

  // So many elements for each lane, wherever they are then. Requires at most kLanesMax lanes, and that nobody uses it.
  void reserve(const std::vector<Count>& elements, std::uint32_t element_bytes) {
    assert(elements.size() <= lanes_.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::size_t bytes = elements[i] * element_bytes;
      Memory& m = lanes_[i];
      if (m.bytes >= bytes) continue;
      m = {};  // first, so that old and new never exist at once
      m.data = std::make_unique_for_overwrite<std::byte[]>(bytes);
      m.bytes = bytes;
    }
  }

 private:
  struct Memory {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };
  std::array<Memory, kLanesMax> lanes_;
};

}  // namespace gccl
