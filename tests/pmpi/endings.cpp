// Ends as the first argument says, after a non-blocking collective: endings.sh looks at the exit code.
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gccl/gccl.h"

// Starts two more processes, which come here too. Collectives among those of both beginnings are MPI's, the others
// GCCL's.
int spawn(char** argv) {
  MPI_Comm parent, both, all;
  MPI_Comm_get_parent(&parent);
  const bool child = parent != MPI_COMM_NULL;
  char word[] = "spawn", *words[] = {word, nullptr};
  both = parent;
  if (!child) MPI_Comm_spawn(argv[0], words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(both, child, &all);
  int one = 1, here = 0, there = 0, together = 0, size = 0;
  MPI_Request request;
  MPI_Allreduce(&one, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&one, &there, 1, MPI_INT, MPI_SUM, both);
  MPI_Allreduce(&one, &together, 1, MPI_INT, MPI_SUM, all);
  MPI_Iallreduce(MPI_IN_PLACE, &together, 1, MPI_INT, MPI_MAX, all, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int wrong = here != size || together != here + there || (child ? here : there) != 2;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&both);
  MPI_Finalize();
  return wrong;
}

// A reduce of which rank `odd` takes rank 1 to be the root, the others rank 0. Those whose own part is sent go on.
int two_roots(int odd, bool frees) {
  int rank = 0;
  float in[4] = {}, out[4] = {};
  MPI_Comm comm = MPI_COMM_WORLD;
  if (frees) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Barrier(comm);
  MPI_Reduce(in, out, 4, MPI_FLOAT, MPI_SUM, rank == odd, comm);
  if (frees) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}

// A program that uses GCCL as well: either may end first, and the other goes on.
int uses_gccl(bool ends_it_last) {
  const auto gather = [](const void* mine, void* all, std::size_t bytes, void*) {
    return MPI_Allgather(mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, MPI_COMM_WORLD);
  };
  int size = 1, rank = 0, sum = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  GCCL_Comm own;
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.rank = rank;
  config.size = size;
  config.allgather = gather;
  wrong += GCCL_Init(&own, &config) != GCCL_SUCCESS;
  const auto sum_up = [&] {
    const int one = 1;
    sum = 0;
    wrong += GCCL_Allreduce(&one, &sum, 1, GCCL_INT32, GCCL_SUM, own) != GCCL_SUCCESS || sum != size;
  };
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Barrier(MPI_COMM_SELF);
  sum_up();
  if (!ends_it_last) {
    // What the program has in flight at MPI is none of GCCL_Finalize's.
    int in = 1, out = 0;
    MPI_Request request;
    if (rank != 0) MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
    wrong += GCCL_Finalize() != GCCL_SUCCESS;
    if (rank == 0) MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += out != size;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += out != size;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    wrong += out != 1;
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (ends_it_last) {
    sum_up();
    wrong += GCCL_Finalize() != GCCL_SUCCESS;
  }
  return wrong ? 1 : 0;
}

// On each of many communicators that live at the same time, what travels along every pair of ranks.
int no_descriptor_free() {
  std::vector<int> taken;
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
  MPI_Comm comm;
  int one = 1, sum = 0, size = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  for (const int fd : taken) close(fd);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return sum == size ? 0 : 1;
}

int many_communicators() {
  int rank = 0, size = 1, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 60; ++i) {
    MPI_Comm comm;
    std::vector<int> in(std::size_t(size), rank), out(in.size());
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, comm);
    wrong += sum != size * (size - 1) / 2;
    for (int r = 0; r < size; ++r) wrong += out[std::size_t(r)] != r;
  }
  MPI_Finalize();
  return wrong ? 1 : 0;
}

// The last rank dies while the others are in a collective. Its launcher is held up, so that they know of it first.
void last_rank_dies(bool nonblocking) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) {
    const pid_t launcher = getppid();
    if (fork() == 0) {
      usleep(1500000);
      kill(launcher, SIGCONT);
      _exit(0);
    }
    kill(launcher, SIGSTOP);
    _exit(3);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (nonblocking) {
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  if (how == "spawn") return spawn(argv);
  if (how.starts_with("uses GCCL, and ends it ")) return uses_gccl(how.ends_with("last"));
  if (how == "many communicators") return many_communicators();
  if (how == "no descriptor is free") return no_descriptor_free();
  if (how.starts_with("two roots, "))
    return two_roots(how.find("one rank sends") != how.npos ? 1 : 2, how.ends_with("frees"));
  if (how.starts_with("a rank dies")) last_rank_dies(how.ends_with("wait for a barrier"));
  int in = 1, sum = 0;
  MPI_Request request;
  if (how == "a scan that the other ranks do not call") {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Iscan(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Finalize();
    return 0;
  }
  MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (how == "exit while a call is in flight") std::exit(3);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (how == "exit") std::exit(3);
  if (how == "computes meanwhile") {
    std::vector<int> one(1 << 20, 1), all(one.size());
    for (int i = 0; i < 3; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Iallreduce(one.data(), all.data(), int(one.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      usleep(20000);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return all.front() == size && all.back() == size ? 0 : 5;
  }
  if (how == "return") return 3;
  if (how == "fork") {
    int status = -1;
    for (int i = 0; i < 20; ++i) {
      MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      const pid_t child = fork();
      if (child == 0) std::exit(7);
      if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
        std::fprintf(stderr, "the child's status is %d, expected exit code 7\n", status);
        MPI_Abort(MPI_COMM_WORLD, 4);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return sum == size ? 0 : 5;
  }
  std::fprintf(stderr, "how? \"%s\"\n", how.c_str());
  return 6;
}
