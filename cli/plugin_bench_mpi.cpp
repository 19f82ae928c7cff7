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

// Who has started this process; to be asked before MPI_Init, which sets variables of its own.
struct Starter {
  gccl::Identity started;
  gccl::Status known = gccl::identify(gccl::process_environment(), -1, -1, &started);

  // Each process of a launcher that MPI does not know is a world of its own. Empty: this is none.
  std::string unknown_to_mpi(const GCCL_Config& config) const {
    if (config.size > 1 || !known.ok() || started.size <= 1) return {};
    return fmt::format("{} has started {} ranks, of which MPI knows nothing: expected mpirun", started.launcher->name,
                       started.size);
  }
};

// What `run` returns of such a configuration. `instead`: what does without MPI.
template <class Run>
int in_session(std::string* error, const char* instead, Run run) {
  const Starter starter;
  const Session session;
  const GCCL_Config config = config_in_session();
  if (const std::string wrong = starter.unknown_to_mpi(config); !wrong.empty()) {
    *error = fmt::format("--backend mpi: {}, or --backend {}", wrong, instead);
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
  const Starter starter;
  const auto session = std::make_shared<Session>();
  const GCCL_Config config = config_in_session();
  *error = starter.unknown_to_mpi(config);
  return error->empty() ? gccl::bench::meet_team(config, command, session, error) : nullptr;
}
