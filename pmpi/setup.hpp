// Makes the GCCL communicator that serves an MPI communicator, without ever keeping MPI or the program waiting.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "pmpi/meeting.hpp"

namespace gccl::pmpi {

// The ranks' first collective call may be a non-blocking one, so making the communicator must not block either. A
// thread runs GCCL_Init, whose all-gather is handed to advance(), which carries it out as a Meeting.
//
// All ranks go through rounds of one small all-gather, in which each says what it needs next: an all-gather of n bytes,
// or nothing more, because it is connected or has failed. So they part in agreement, whoever fails.
class Setup {
 public:
  // Collective, in the order of the calls on `comm`.
  Setup(MPI_Comm comm, int rank, int size);
  ~Setup();
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  // Does what can be done without waiting; MPI calls are made here only. True once every rank is through.
  bool advance();
  // Then: the communicator, or GCCL_COMM_NULL on all ranks where it failed on any. error() says why it did here; empty
  // on other ranks.
  GCCL_Comm result() const { return agreed_ ? made_ : GCCL_COMM_NULL; }
  const std::string& error() const { return error_; }

 private:
  enum class Stage { inviting, idle, saying, gathering, over };
  static constexpr std::int64_t kConnected = -1, kFailed = -2;

  void run();
  int all_gather(const void* mine, void* all, std::size_t bytes);
  void answer(int code);
  bool say();
  void hear();
  void begin_thread();

  // Rank 0's, for all.
  struct Invitation {
    int tag = 0;
    char secret[65] = {};
  };

  const int rank_, size_;
  Stage stage_ = Stage::inviting;
  Meeting meeting_;
  Invitation invitation_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t said_ = 0;
  std::vector<std::int64_t> heard_;
  bool agreed_ = false;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable answered_;
  bool asked_ = false, ended_ = false;
  const void* mine_ = nullptr;
  void* all_ = nullptr;
  std::size_t bytes_ = 0;
  int code_ = 0;
  GCCL_Comm made_ = GCCL_COMM_NULL;
  std::string error_;
};

}  // namespace gccl::pmpi
