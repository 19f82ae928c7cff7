// Lines of many ranks on one terminal, each with its rank before it.
#pragma once

#include <string>

namespace gccl::launch {

// Collects what arrives from one stream of one rank and writes whole lines.
class TaggedStream {
 public:
  static constexpr int kReadBytes = 16384;  // at a time

  TaggedStream(std::string tag, int to) : tag_(std::move(tag)), to_(to) {}
  // Reads what there is; false at the end of the stream, when the line that was begun is written as well, and where
  // lines cannot be written. Closing `from` then tells the rank what it would see if it wrote there by itself.
  bool drain(int from);
  // Writes the line that was begun, where the end of the stream does not come.
  void finish() { put_lines(true); }
  int error() const { return error_; }  // of writing; EPIPE: the reader has left

 private:
  static constexpr std::size_t kLineBytesMax = 65536;  // what is longer is cut into several
  void put_lines(bool all);

  std::string tag_;
  int to_;
  int error_ = 0;
  std::string pending_;
};

}  // namespace gccl::launch
