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

Setup::Setup(MPI_Comm comm, int rank, int size)
    : rank_(rank), size_(size), meeting_(comm, rank, size), heard_(static_cast<std::size_t>(size)) {
  if (!meeting_.possible()) {
    stage_ = Stage::over;
    error_ = "not all ranks are of one MPI_COMM_WORLD";
    return;
  }
  if (rank == 0) {
    invitation_.tag = meeting_.choose_tag();
    make_secret(invitation_.secret);
  }
  // The only collective call on the program's communicator, in its place among the others.
  PMPI_Ibcast(&invitation_, sizeof invitation_, MPI_BYTE, 0, comm, &request_);
}

Setup::~Setup() {
  if (thread_.joinable()) thread_.join();
}

void Setup::run() {
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = rank_;
  config.size = size_;
  config.allgather = [](const void* mine, void* all, size_t bytes, void* setup) {
    return static_cast<Setup*>(setup)->all_gather(mine, all, bytes);
  };
  config.allgather_context = this;
  if (!user_has_secret()) config.secret = invitation_.secret;
  config.progress_thread = 0;
  GCCL_Comm made = GCCL_COMM_NULL;
  const GCCL_Result result = GCCL_Init(&made, &config);
  std::lock_guard lock(mutex_);
  if (result == GCCL_SUCCESS) {
    made_ = made;
  } else if (code_ == 0) {  // else the rank that has failed says why
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
  meeting_.begin(&said_, heard_.data(), sizeof said_);
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
  } else if (all_alike && said_ <= INT_MAX / size_) {
    meeting_.begin(mine_, all_, std::size_t(said_));
    stage_ = Stage::gathering;
  } else {
    if (said_ >= 0) answer(1);  // somebody has failed: so do I
    stage_ = Stage::idle;
  }
}

void Setup::begin_thread() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    ended_ = true;
    error_ = std::string("no thread to connect with: ") + e.what();
  }
}

bool Setup::advance() {
  for (;;) {
    int flag = 0;
    switch (stage_) {
      case Stage::inviting:
        PMPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
        if (!flag) return false;
        meeting_.use_tag(invitation_.tag);
        begin_thread();
        stage_ = Stage::idle;
        break;
      case Stage::idle:
        if (!say()) return false;
        break;
      case Stage::saying:
        if (!meeting_.arrived()) return false;
        hear();
        break;
      case Stage::gathering:
        if (!meeting_.arrived()) return false;
        answer(0);
        stage_ = Stage::idle;
        break;
      case Stage::over: return true;
    }
  }
}

}  // namespace gccl::pmpi
