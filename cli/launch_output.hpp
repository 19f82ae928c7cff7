// Lines of many ranks on one terminal, each with its rank before it.
#pragma once

#include <string>

namespace gccl::launch {

// Collects what arrives from one stream of one rank and writes whole lines.
class TaggedStream {
 public:
  TaggedStream(std::string tag, int to) : tag_(std::move(tag)), to_(to) {}
  // Reads what there is; false at the end of the stream, when the line that was begun is written as well.
  bool drain(int from);

 private:
  static constexpr std::size_t kLineBytesMax = 65536;  // what is longer is cut into several
  void put_lines(bool all);

  std::string tag_;
  int to_;
  std::string pending_;
};

}  // namespace gccl::launch
