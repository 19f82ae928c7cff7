// Cuts a stream of bytes into a link's frames: for wires whose pieces end anywhere.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "libgccl/fault/link_frame.hpp"

namespace gccl::fault {

class LinkReader {
 public:
  // Calls frame(span) for each one that is complete. False: no frame begins where one should, and nothing that follows
  // can be read; or frame() returned false.
  template <class F>
  bool read(std::span<const std::byte> bytes, F frame) {
    while (!bytes.empty()) {
      if (frame_bytes_ == 0 && !fill(kLinkHeaderBytes, &bytes)) return true;
      if (frame_bytes_ == 0) {
        LinkFrame f;
        if (decode(buffer_.data(), &f) != nullptr) return false;
        frame_bytes_ = kLinkHeaderBytes + f.bytes;
      }
      if (!fill(frame_bytes_, &bytes)) return true;
      frame_bytes_ = 0;
      const bool go_on = frame(std::span<const std::byte>(buffer_));
      buffer_.clear();
      if (!go_on) return false;
    }
    return true;
  }
  // Another stream begins.
  void restart() {
    buffer_.clear();
    frame_bytes_ = 0;
  }

 private:
  bool fill(std::size_t size, std::span<const std::byte>* bytes) {
    const std::size_t n = std::min(size - buffer_.size(), bytes->size());
    buffer_.insert(buffer_.end(), bytes->begin(), bytes->begin() + std::ptrdiff_t(n));
    *bytes = bytes->subspan(n);
    return buffer_.size() == size;
  }

  std::vector<std::byte> buffer_;
  std::size_t frame_bytes_ = 0;  // of the frame at hand; 0: its header is not complete
};

}  // namespace gccl::fault
