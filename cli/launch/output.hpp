// Lines of many ranks on one terminal, each with its rank before it, at the reader's pace.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "libgccl/net/socket.hpp"

namespace gccl::launch {

// Standard output or error. Writing never waits, so that signals and limits are looked at however slow the reader is:
// what it has not taken yet waits here.
class Output {
 public:
  explicit Output(int fd);

  // Writes what the reader takes now, and keeps the rest.
  void put(std::string_view text);
  void flush();
  std::size_t left() const { return pending_.size() - done_; }  // bytes that the reader has not taken
  bool waits() const { return left() > 0; }
  int descriptor() const { return fd_; }  // to be polled for room while it waits
  int error() const { return error_; }    // nothing is written any more; EPIPE: the reader has left

 private:
  Fd own_;
  int fd_;
  int error_ = 0;
  std::string pending_;
  std::size_t done_ = 0;  // bytes of it that are written
};

// Collects what arrives from one stream of one rank and writes whole lines.
class TaggedStream {
 public:
  static constexpr int kReadBytes = 16384;  // at a time

  TaggedStream(std::string tag, Output* to) : tag_(std::move(tag)), to_(to) {}
  // Reads what there is; false at the end of the stream, when the line that was begun is written as well, and where
  // lines cannot be written. Closing `from` then shows the rank what it would see if it wrote there by itself.
  bool drain(int from);
  // Writes the line that was begun, where the end of the stream does not come.
  void finish() { put_lines(true); }
  const Output& to() const { return *to_; }

 private:
  static constexpr std::size_t kLineBytesMax = 65536;  // what is longer is cut into several
  void put_lines(bool all);

  std::string tag_;
  Output* to_;
  std::string pending_;
};

}  // namespace gccl::launch
