#include "pmpi/engine/connecting.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "libgccl/api/private_communicators.hpp"
#include "pmpi/engine/background.hpp"
#include "pmpi/engine/own_world.hpp"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

struct Common {
  char secret[65] = {};  // the job's own, for connections between machines, unless the user has set one
  int tag = 0;           // on own_world()
  std::uint64_t id = 0;  // of the communicator
};

Common made_up_by_rank_0(MPI_Comm comm, int rank) {
  Common common;
  if (rank == 0) {
    std::random_device random;
    for (int i = 0; i < 8; ++i) std::snprintf(common.secret + 8 * i, 9, "%08x", unsigned(random()));
    common.tag = next_own_tag();
    common.id = std::uint64_t(random()) << 32 | random();
  }
  PMPI_Bcast(&common, sizeof common, MPI_BYTE, 0, comm);
  return common;
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
// for GCCL, or nothing more, because it is connected or has failed. So they part in agreement, even where some fail.
class Rounds {
 public:
  Rounds(MPI_Comm comm, int size) : comm_(comm), size_(size), heard_(static_cast<std::size_t>(size)) {}

  static int for_gccl(const void* mine, void* all, size_t bytes, void* rounds) {
    return static_cast<Rounds*>(rounds)->all_gather(mine, all, bytes);
  }
  bool all(bool mine) {
    say(mine);
    return all_said(true);
  }
  // Non-zero when another rank has failed.
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

int connections(GCCL_Comm comm, const std::vector<int>& ranks) {
  int n = 0;
  GCCL_Comm_connections(comm, ranks.data(), int(ranks.size()), &n);
  return n;
}

// A job of GCCL's of its own.
GCCL_Result init(const Common& common, int rank, int size, Rounds* rounds, GCCL_Comm* made) {
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = rank;
  config.size = size;
  config.allgather = Rounds::for_gccl;
  config.allgather_context = rounds;
  if (!user_has_secret()) config.secret = common.secret;
  config.progress_thread = 0;
  return GCCL_Init(made, &config);
}

}  // namespace

Connected connect_ranks(MPI_Comm comm, int rank, int size, GCCL_Comm world) {
  Connected connected;
  const std::vector<int> places = places_in_world(comm, size);
  if (std::ranges::count(places, MPI_UNDEFINED) > 0) return connected;  // all of them find that, and it is no error
  come_together(comm);
  const InOwnCode here;
  const Common common = made_up_by_rank_0(comm, rank);
  connected.tag = common.tag;
  Rounds rounds(comm, size);
  const bool within_world = rounds.all(world != GCCL_COMM_NULL);
  const auto needs = [&](GCCL_Comm by, const std::vector<int>& ranks) {
    return within_world ? Needs::within_world(size, connections(by, ranks)) : Needs::of_own(size);
  };
  const Needs expected = needs(world, places);
  GCCL_Comm made = GCCL_COMM_NULL;
  if (!expected.met(&connected.error)) {
    // Connecting may work, and a call that opens a connection may not.
  } else if (second_thread_may_progress() && !background::start()) {
    connected.error = "no thread for progress while the program computes: the system refuses another one";
  } else {
    const GCCL_Result result =
        within_world ? GCCL_Comm_create_apart(world, places.data(), size, common.id, Rounds::for_gccl, &rounds, &made)
                     : init(common, rank, size, &rounds, &made);
    if (result != GCCL_SUCCESS && !rounds.another_failed())
      connected.error = std::string(GCCL_Error_string(result)) + ": " + GCCL_Last_error();
  }
  if (made != GCCL_COMM_NULL) GCCL_Comm_set_private(made);
  if (!rounds.part(made != GCCL_COMM_NULL)) {
    if (made != GCCL_COMM_NULL) GCCL_Comm_release(&made);  // nobody else will come to free it
    return connected;
  }
  connected.comm = made;
  std::vector<int> own_places(places.size());
  std::iota(own_places.begin(), own_places.end(), 0);
  connected.promised = expected.promised(needs(made, own_places));
  if (within_world) return connected;
  const ProcessorShare mine = processor_share();
  connected.processors.resize(std::size_t(size));
  rounds.gather(&mine, connected.processors.data(), sizeof mine);
  if (is_set("GCCL_OVERSUBSCRIBED")) connected.oversubscribed = std::atoi(std::getenv("GCCL_OVERSUBSCRIBED")) != 0;
  return connected;
}

}  // namespace gccl::pmpi
