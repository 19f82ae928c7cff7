#include "pmpi/setup.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <system_error>

namespace gccl::pmpi {
namespace {

// The job's own secret, for connections between machines: MPI has carried it to the other ranks. Unless the user has
// set one.
void make_secret(char (&secret)[65]) {
  std::random_device random;
  for (int i = 0; i < 8; ++i) std::snprintf(secret + 8 * i, 9, "%08x", unsigned(random()));
}

bool user_has_secret() { return std::getenv("GCCL_SECRET") || std::getenv("GCCL_SECRET_FILE"); }

}  // namespace

Setup::Setup(MPI_Comm comm, int rank, int size, bool may_block)
    : rank_(rank), size_(size), heard_(static_cast<std::size_t>(size)) {
  if (may_block) {
    PMPI_Comm_split(comm, 0, rank, &duplicate_);
  } else {
    PMPI_Comm_idup(comm, &duplicate_, &request_);
  }
  if (rank == 0) make_secret(secret_);
}

Setup::~Setup() {
  if (thread_.joinable()) thread_.join();
  if (duplicate_ != MPI_COMM_NULL) PMPI_Comm_free(&duplicate_);
}

void Setup::run() {
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = rank_;
  config.size = size_;
  config.allgather = [](const void* mine, void* all, size_t bytes, void* setup) {
    return static_cast<Setup*>(setup)->all_gather(mine, all, bytes);
  };
  config.allgather_context = this;
  if (!user_has_secret()) config.secret = secret_;
  config.progress_thread = 0;
  GCCL_Comm made = GCCL_COMM_NULL;
  const GCCL_Result result = GCCL_Init(&made, &config);
  std::lock_guard lock(mutex_);
  if (result == GCCL_SUCCESS) {
    made_ = made;
  } else {
    error_ = std::string(GCCL_Error_string(result)) + ": " + GCCL_Last_error();
  }
  ended_ = true;
}

// In the thread.
int Setup::all_gather(const void* mine, void* all, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  mine_ = mine;
  all_ = all;
  bytes_ = bytes;
  asked_ = true;
  answered_.wait(lock, [this] { return !asked_; });
  return code_;
}

void Setup::answer(int code) {
  std::lock_guard lock(mutex_);
  code_ = code;
  asked_ = false;
  answered_.notify_one();
}

// Begins a round when the thread has something to say.
bool Setup::say() {
  {
    std::lock_guard lock(mutex_);
    if (!asked_ && !ended_) return false;
    said_ = ended_ ? (made_ != GCCL_COMM_NULL ? kConnected : kFailed) : std::int64_t(bytes_);
  }
  PMPI_Iallgather(&said_, sizeof said_, MPI_BYTE, heard_.data(), sizeof said_, MPI_BYTE, duplicate_, &request_);
  stage_ = Stage::saying;
  return true;
}

void Setup::hear() {
  bool all_alike = true, all_ended = true, all_connected = true;
  for (const std::int64_t h : heard_) {
    all_alike &= h == said_;
    all_ended &= h < 0;
    all_connected &= h == kConnected;
  }
  if (all_ended) {
    agreed_ = all_connected;
    if (thread_.joinable()) thread_.join();
    // Nobody else will come to free it with us.
    if (!agreed_ && made_ != GCCL_COMM_NULL) GCCL_Abort(made_, 0);
    stage_ = Stage::over;
  } else if (all_alike && said_ <= INT_MAX) {
    PMPI_Iallgather(mine_, int(said_), MPI_BYTE, all_, int(said_), MPI_BYTE, duplicate_, &request_);
    stage_ = Stage::gathering;
  } else {
    if (said_ >= 0) answer(1);  // somebody has failed: so do I
    stage_ = Stage::idle;
  }
}

bool Setup::arrived() {
  int flag = 0;
  return PMPI_Test(&request_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

bool Setup::advance() {
  for (;;) {
    if (stage_ == Stage::over) return true;
    if (stage_ == Stage::idle) {
      if (!say()) return false;
      continue;
    }
    if (!arrived()) return false;
    switch (stage_) {
      case Stage::duplicating:
        PMPI_Comm_set_errhandler(duplicate_, MPI_ERRORS_RETURN);
        PMPI_Ibcast(secret_, sizeof secret_, MPI_BYTE, 0, duplicate_, &request_);
        stage_ = Stage::sharing_secret;
        break;
      case Stage::sharing_secret:
        try {
          thread_ = std::thread([this] { run(); });
        } catch (const std::system_error& e) {
          ended_ = true;
          error_ = std::string("no thread to connect with: ") + e.what();
        }
        stage_ = Stage::idle;
        break;
      case Stage::saying: hear(); break;
      case Stage::gathering:
        answer(0);
        stage_ = Stage::idle;
        break;
      case Stage::idle:
      case Stage::over: break;
    }
  }
}

}  // namespace gccl::pmpi
