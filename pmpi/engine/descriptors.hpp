// File descriptors, of which a process may have few: a communicator that could be left without one is not connected.
#pragma once

#include <string>

namespace gccl::pmpi {

// What a connected communicator may still open: a connection is made when data first go that way. Counted as long as
// this lives.
class PromisedDescriptors {
 public:
  PromisedDescriptors() = default;
  explicit PromisedDescriptors(int n);
  ~PromisedDescriptors();
  PromisedDescriptors(PromisedDescriptors&& other) noexcept;
  PromisedDescriptors& operator=(PromisedDescriptors&& other) noexcept;

 private:
  int n_ = 0;
};

// One connection, from before it to after it.
class DescriptorCount {
 public:
  explicit DescriptorCount(int needed) : needed_(needed), open_before_(open_here()) {}
  // What a communicator of so many ranks needs that shares nothing with others.
  static int of_ranks(int ranks) { return kOwn + ranks - 1; }
  // False where a quarter of what the process may have open would not be left to the program and to MPI. *why says so
  // the first time.
  bool enough(std::string* why) const;
  // Once connected, where it is known to need so many: what has not been opened so far.
  PromisedDescriptors promised(int needed) const;

 private:
  // Its file in shared memory, and of tcp a listener, an inbox, two of its thread, and a spare one. Of each peer, its
  // file or a connection.
  static constexpr int kOwn = 6;
  static int open_here();  // 0 where /proc does not say

  const int needed_, open_before_;
};

}  // namespace gccl::pmpi
