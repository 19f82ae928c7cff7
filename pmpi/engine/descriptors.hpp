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
  explicit DescriptorCount(int ranks);
  // False where a quarter of what the process may have open would not be left to the program and to MPI. *why says so
  // the first time.
  bool enough(std::string* why) const;
  // Once connected: what has not been opened so far.
  PromisedDescriptors promised() const;

 private:
  int needed_, open_before_;
};

}  // namespace gccl::pmpi
