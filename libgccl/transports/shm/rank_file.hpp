// The file in /dev/shm that belongs to one rank of a job for as long as it takes part: the segments of its
// communicators lie in it, and its lock says whether the rank's process lives.
//
//   create, lock, mark  ->  named  ->  every neighbour has it open  ->  without a name until the end
//
// Why so. The kernel drops the lock when the process ends, however that ends: every thread has to be gone, a child that
// the rank forked does not hold it (a POSIX lock belongs to the process; flock and OFD locks belong to the open file,
// which the child has too), and a process in another process-id namespace sees it as any other does. Neither a process
// id nor its start time in /proc says as much. The name is there until all ranks of the node have met in a
// communicator, which is the first one unless some had no room for it: later ones lie in the same file. What is killed
// meanwhile leaves a file that nobody has locked, and the next rank of this user that starts removes it. Files without
// any name would need /proc/PID/fd, which leads nowhere in another process-id namespace, or a socket, which needs the
// same network namespace.
//
// A POSIX lock goes when its process closes any descriptor of the file: a process never opens its own files twice. A
// program that closes descriptors which it has not opened (closefrom(3) without a fork before) is lost to its peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libgccl/base/status.hpp"

namespace gccl::shm {

class RankFile {
 public:
  // Creates this rank's file, and removes what dead processes have left.
  static Status create(std::shared_ptr<RankFile>* out);
  // Opens a neighbour's; one of this very process is shared.
  static Status open(const std::string& name, std::shared_ptr<RankFile>* out);
  ~RankFile();
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;

  // "gccl-" and 32 hexadecimal digits that no other file has.
  const std::string& name() const { return name_; }
  int descriptor() const { return fd_; }
  bool mine() const { return mine_; }
  // Whether the process that created it lives.
  bool alive() const;
  // The name goes; a process that has the file open keeps it.
  void unlink();

  // Owner: bytes of the file that no segment uses. give_back() when the owner's segment ends; they are used again once
  // the segment's other users have ended too.
  Status take(std::size_t bytes, std::uint64_t* offset);
  void give_back(std::uint64_t offset);
  // Owner: so much of its segments' memory, of all its communicators, was promised and has not been reserved yet.
  std::atomic<std::size_t> promised{0};
  // Owner: peers may have it open.
  std::atomic<bool> announced{false};

 private:
  struct Range {
    std::uint64_t offset, bytes;
    bool taken;
  };
  RankFile() = default;
  static void sweep();

  std::string name_, path_;  // the latter for shm_open: its destructor may not need memory
  int fd_ = -1;
  bool mine_ = false, named_ = false;
  std::mutex mutex_;
  std::vector<Range> ranges_;
};

// The files that one rank needs: its own, and those of its neighbours. An instance of the backend.
class RankFiles {
 public:
  // Created when first asked for.
  Status mine(std::shared_ptr<RankFile>* out);
  // Opened when first asked for, and kept: later communicators find it when it has no name any more.
  Status of(const std::string& name, std::shared_ptr<RankFile>* out);
  // This rank's own goes, and its name, unless something lies in it or peers have it open; mine() makes another one.
  void drop_unused();

 private:
  std::mutex mutex_;
  std::shared_ptr<RankFile> mine_;
  std::vector<std::shared_ptr<RankFile>> others_;
};

}  // namespace gccl::shm
