#include "cli/started.hpp"

namespace gccl {

Started started_by(const Environment& environment) {
  const Environment set = without_empty(environment);
  struct Known {
    const char *variable, *rank, *size, *backend;
  };
  for (const Known& k : {Known{"GCCL_RANK", "GCCL_RANK", "GCCL_SIZE", "native"},
                         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpi"},
                         {"MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE", "mpi"}})
    if (set(k.variable)) {
      const std::string rank = read_text(set, k.rank), size = read_text(set, k.size);
      return {k.backend, size.empty() || size == "1", rank.empty() || rank == "0"};
    }
  return {};
}

}  // namespace gccl
