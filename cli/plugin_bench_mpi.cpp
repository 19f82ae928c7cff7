// `gccl bench` and `gccl calibrate` under mpirun, over the backend "mpi", and the processes of mpirun that share a
// command's work.
#include <fmt/format.h>
#include <mpi.h>

#include <memory>

#include "cli/bench/job_team.hpp"
#include "cli/bench/run.hpp"
#include "cli/calibrate/run.hpp"
#include "libgccl/bootstrap/identity.hpp"

namespace {

// MPI from here to the end of the scope.
class Session {
 public:
  Session() { MPI_Init(nullptr, nullptr); }
  ~Session() { MPI_Finalize(); }
  Session(const Session&) = delete;
};

GCCL_Config config_in_session() {
  GCCL_Config config = GCCL_CONFIG_INIT;
  MPI_Comm_rank(MPI_COMM_WORLD, &config.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &config.size);
  config.backends = "mpi";
  config.progress_thread = 0;
  config.allgather = [](const void* mine, void* all, size_t bytes, void*) {
    return MPI_Allgather(mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, MPI_COMM_WORLD);
  };
  return config;
}

// What `run` returns of such a configuration. `instead`: what does without MPI.
template <class Run>
int in_session(std::string* error, const char* instead, Run run) {
  gccl::Identity started;  // MPI_Init sets variables of its own
  const gccl::Status known = gccl::identify(gccl::process_environment(), -1, -1, &started);
  const Session session;
  const GCCL_Config config = config_in_session();
  // Each process of a launcher that MPI does not know is a world of its own.
  if (config.size == 1 && known.ok() && started.size > 1) {
    *error = fmt::format(
        "--backend mpi: {} has started {} ranks, of which MPI knows nothing: expected mpirun, or --backend {}",
        started.launcher->name, started.size, instead);
    return 2;
  }
  return run(config);
}

}  // namespace

extern "C" int gccl_bench(const std::string&, const std::vector<std::string>& args, gccl::bench::Parse parse,
                          std::string* error) {
  return in_session(error, "native",
                    [&](const GCCL_Config& config) { return gccl::bench::run(config, args, parse, error); });
}

extern "C" int gccl_calibrate(const std::string&, const std::vector<std::string>& args, gccl::calibrate::Parse parse,
                              std::size_t columns, std::string* error) {
  return in_session(error, "shm,tcp", [&](const GCCL_Config& config) {
    return gccl::calibrate::run(config, args, parse, columns, error);
  });
}

extern "C" gccl::bench::Team* gccl_team(const char* command, std::string* error) {
  const auto session = std::make_shared<Session>();
  return gccl::bench::meet_team(config_in_session(), command, session, error);
}
