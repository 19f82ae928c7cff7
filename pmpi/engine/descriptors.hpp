// File descriptors and memory maps, of which a process may have few: a communicator that could be left without one, or
// leave the program without, is not connected.
#pragma once

#include <string>

namespace gccl::pmpi {

// What a connected communicator may still open, as a connection is made when data first go that way; and what it has
// mapped. Counted as long as this lives.
class Promised {
 public:
  Promised() = default;
  Promised(int descriptors, int maps);
  ~Promised();
  Promised(Promised&& other) noexcept;
  Promised& operator=(Promised&& other) noexcept;

 private:
  int descriptors_ = 0, maps_ = 0;
};

// What one communicator needs, from before it is connected to after that.
class Needs {
 public:
  // One that shares nothing with others: its file in shared memory, and of tcp a listener, an inbox, two of its thread,
  // and a spare one. Of each peer, its file or a connection.
  static Needs of_own(int ranks) { return {6 + ranks - 1, ranks + 1}; }
  // One that shares what MPI_COMM_WORLD has opened, with so many ranks that are not reached by memory.
  static Needs within_world(int ranks, int connections) { return {connections, ranks - connections + 1}; }
  // False where a quarter of the descriptors, or half of the maps, that the process may have would not be left to the
  // program and to MPI. *why says so the first time.
  bool met(std::string* why) const;
  // Once connected, where it is known to need that: all of it but what has been opened meanwhile.
  Promised promised(const Needs& known) const;

 private:
  Needs(int descriptors, int maps) : descriptors_(descriptors), maps_(maps), open_before_(open_here()) {}
  static int open_here();

  int descriptors_, maps_, open_before_;
};

}  // namespace gccl::pmpi
