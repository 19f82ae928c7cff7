#include "pmpi/engine/connecting.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "libgccl/api/private_communicators.hpp"
#include "pmpi/engine/background.hpp"
#include "pmpi/engine/own_world.hpp"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

// The job's own secret, for connections between machines: MPI has carried it to the other ranks. Unless the user has
// set one.
void make_secret(char (&secret)[65]) {
  std::random_device random;
  for (int i = 0; i < 8; ++i) std::snprintf(secret + 8 * i, 9, "%08x", unsigned(random()));
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value;
}
bool user_has_secret() { return is_set("GCCL_SECRET") || is_set("GCCL_SECRET_FILE"); }

// The backend mpi calls MPI wherever GCCL makes progress, and below MPI_THREAD_MULTIPLE only one thread may. Then the
// program's calls of MPI alone make progress.
bool second_thread_may_progress() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  const char* const names = std::getenv("GCCL_BACKENDS");
  return level == MPI_THREAD_MULTIPLE || !names || ("," + std::string(names) + ",").find(",mpi,") == std::string::npos;
}

bool all_of_one_world(MPI_Comm comm, int size) {
  const std::vector<int> places = places_in_world(comm, size);
  return std::count(places.begin(), places.end(), MPI_UNDEFINED) == 0;
}

// What follows it on `comm` waits for nobody who is elsewhere. Calls of GCCL that are in flight move on meanwhile.
void come_together(MPI_Comm comm) {
#ifdef MPICH_VERSION
  // Its blocking calls do not call the drop-in back.
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibarrier(comm, &request);
  wait_for([&](int* flag) { return PMPI_Test(&request, flag, MPI_STATUS_IGNORE); });
#else
  // Nothing non-blocking: while MPI_Comm_idup duplicates `comm`, Open MPI 4.1 takes messages of that for its own.
  PMPI_Barrier(comm);
#endif
}

// All ranks go through rounds of one small all-gather, in which each says what it needs next: an all-gather of n bytes
// for GCCL_Init, or nothing more, because it is connected or has failed. So they part in agreement, even where some
// fail.
class Rounds {
 public:
  Rounds(MPI_Comm comm, int size) : comm_(comm), size_(size), heard_(static_cast<std::size_t>(size)) {}

  // GCCL_Init's. Non-zero when another rank has failed.
  int all_gather(const void* mine, void* all, std::size_t bytes) {
    say(std::int64_t(bytes));
    another_failed_ = !all_said(std::int64_t(bytes)) || bytes > std::size_t(INT_MAX / size_);
    if (!another_failed_) gather(mine, all, int(bytes));
    return another_failed_;
  }
  bool another_failed() const { return another_failed_; }
  // Until every rank is through. True when all are connected.
  bool part(bool connected) {
    do {
      say(connected ? kConnected : kFailed);
    } while (std::any_of(heard_.begin(), heard_.end(), [](std::int64_t h) { return h >= 0; }));
    return all_said(kConnected);
  }

  void gather(const void* mine, void* all, int bytes) {
    PMPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm_);
  }

 private:
  static constexpr std::int64_t kConnected = -1, kFailed = -2;

  void say(std::int64_t what) { gather(&what, heard_.data(), sizeof what); }
  bool all_said(std::int64_t what) const {
    return std::all_of(heard_.begin(), heard_.end(), [=](std::int64_t h) { return h == what; });
  }

  const MPI_Comm comm_;
  const int size_;
  bool another_failed_ = false;
  std::vector<std::int64_t> heard_;
};

}  // namespace

Connected connect_ranks(MPI_Comm comm, int rank, int size) {
  Connected connected;
  if (!all_of_one_world(comm, size)) return connected;  // all of them find that, and it is no error
  come_together(comm);
  struct {
    char secret[65] = {};
    int tag = 0;
  } common;
  if (rank == 0) make_secret(common.secret);
  if (rank == 0) common.tag = next_own_tag();
  PMPI_Bcast(&common, sizeof common, MPI_BYTE, 0, comm);
  connected.tag = common.tag;

  const InOwnCode here;
  Rounds rounds(comm, size);
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = rank;
  config.size = size;
  config.allgather = [](const void* mine, void* all, size_t bytes, void* r) {
    return static_cast<Rounds*>(r)->all_gather(mine, all, bytes);
  };
  config.allgather_context = &rounds;
  if (!user_has_secret()) config.secret = common.secret;
  config.progress_thread = 0;
  GCCL_Comm made = GCCL_COMM_NULL;
  const DescriptorCount descriptors(size);
  if (!descriptors.enough(&connected.error)) {
    // Connecting may work, and a call that opens a connection may not.
  } else if (second_thread_may_progress() && !background::start()) {
    connected.error = "no thread for progress while the program computes: the system refuses another one";
  } else if (const GCCL_Result result = GCCL_Init(&made, &config); result != GCCL_SUCCESS && !rounds.another_failed()) {
    connected.error = std::string(GCCL_Error_string(result)) + ": " + GCCL_Last_error();
  }
  if (made != GCCL_COMM_NULL) GCCL_Comm_set_private(made);
  if (rounds.part(made != GCCL_COMM_NULL)) {
    connected.comm = made;
    connected.descriptors = descriptors.promised();
    const ProcessorShare mine = processor_share();
    connected.processors.resize(std::size_t(size));
    rounds.gather(&mine, connected.processors.data(), sizeof mine);
    if (is_set("GCCL_OVERSUBSCRIBED")) connected.oversubscribed = std::atoi(std::getenv("GCCL_OVERSUBSCRIBED")) != 0;
  } else if (made != GCCL_COMM_NULL) {
    GCCL_Comm_release(&made);  // nobody else will come to free it
  }
  return connected;
}

}  // namespace gccl::pmpi
