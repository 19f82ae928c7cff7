// MPI_THREAD_MULTIPLE: threads make collective calls at once, each on communicators of its own, concurrently with
// messages. The results follow from the ranks alone.
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/pmpi/support.hpp"

namespace {

using gccl::test::Random;

constexpr int kThreads = 4, kRounds = 120, kParts = 10;
std::atomic<int> wrong{0};
bool plain = false;  // without the drop-in, to see what MPI itself does

void expect(bool held, const char* what, int thread, int round) {
  if (held) return;
  ++wrong;
  std::fprintf(stderr, "thread %d, round %d: %s\n", thread, round, what);
}

// Composes pairs (a, b), standing for x -> a x + b modulo a prime: composition does not commute.
void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    int* const f = static_cast<int*>(in) + 2 * i;
    int* const g = static_cast<int*>(inout) + 2 * i;
    g[1] = (g[0] * f[1] + g[1]) % 10007;
    g[0] = f[0] * g[0] % 10007;
  }
}

struct Team {
  int thread, rank, size;
  MPI_Comm comm;
  MPI_Op own;
  MPI_Datatype pair;

  void sum(int round, int count) const {
    std::vector<int> in(std::size_t(count), rank + round), out(in.size(), -1);
    MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
    expect(count == 0 || out.back() == size * (size - 1) / 2 + size * round, "sum", thread, round);
  }
  void composition(int round) const {
    int in[2] = {rank + 2, round % 97}, out[2] = {-1, -1}, due[2] = {2, round % 97};
    for (int r = 1; r < size; ++r) {
      int next[2] = {r + 2, round % 97}, one = 1;
      compose(due, next, &one, nullptr);
      std::memcpy(due, next, sizeof due);
    }
    MPI_Allreduce(in, out, 1, pair, own, comm);
    expect(out[0] == due[0] && out[1] == due[1], "an operation that does not commute", thread, round);
  }
  void largest(int round) const {
    struct {
      double value;
      int index;
    } in{double((rank * 7 + round) % size), rank}, out{};
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    expect(out.value == double((out.index * 7 + round) % size), "the largest and its place", thread, round);
  }
  void exchange(int round) const {
    std::vector<int> counts(std::size_t(size), 3), displs(counts.size());
    for (int r = 0; r < size; ++r) displs[std::size_t(r)] = 3 * r;
    std::vector<int> out(std::size_t(3 * size), rank * 1000 + round), in(out.size(), -1);
    MPI_Alltoallv(out.data(), counts.data(), displs.data(), MPI_INT, in.data(), counts.data(), displs.data(), MPI_INT,
                  comm);
    for (int r = 0; r < size; ++r) expect(in[std::size_t(3 * r)] == r * 1000 + round, "all to all", thread, round);
  }
  void at_once(int round) const {
    int root = rank == 0 ? round : -1, in = rank, out = -1, from = -1;
    MPI_Request requests[5];
    MPI_Ibcast(&root, 1, MPI_INT, 0, comm, &requests[0]);
    MPI_Irecv(&from, 1, MPI_INT, (rank + size - 1) % size, round, comm, &requests[1]);
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_MAX, comm, &requests[2]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, round, comm, &requests[3]);
    MPI_Ibarrier(comm, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    expect(root == round && out == size - 1 && from == (rank + size - 1) % size, "calls and messages in flight", thread,
           round);
  }
  // Made, used and freed while the other threads go on.
  void another(int round) const {
    MPI_Comm made;
    MPI_Comm_split(comm, 0, size - rank, &made);
    int value = rank == size - 1 ? round : -1;  // rank 0 there
    MPI_Request request;
    // Open MPI, which answers before the communicator is connected, crashes where it is freed before the wait.
    const bool connected = round % 2, free_first = connected && !plain;
    if (connected) MPI_Barrier(made);
    MPI_Ibcast(&value, 1, MPI_INT, 0, made, &request);
    if (free_first) MPI_Comm_free(&made);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!free_first) MPI_Comm_free(&made);
    expect(value == round, "a communicator made and freed concurrently with the others", thread, round);
  }

  // The last rank, alone in its communicator, goes on to the next call, in which it waits for the others.
  void part(int round) const {
    MPI_Comm copy, made;
    int in = 1, out = -1;
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&copy);
    MPI_Comm_split(comm, rank == size - 1, 0, &made);
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, made);
    MPI_Comm_free(&made);
    expect(out == (rank == size - 1 ? 1 : size - 1), "a part of the ranks", thread, round);
  }

  void run() const {
    Random random(std::uint64_t(thread) + 1);  // the same on all ranks
    for (int round = 0; round < kRounds; ++round) switch (random.below(7)) {
        case 0: sum(round, random.below(2000)); break;
        case 1: composition(round); break;
        case 2: largest(round); break;
        case 3: exchange(round); break;
        case 4: another(round); break;
        default: at_once(round); break;
      }
    for (int round = 0; round < kParts; ++round) part(round);
  }
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    std::puts("this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  plain = argc > 1 && std::strcmp(argv[1], "plain") == 0;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(gccl::test::kSeed));
  std::vector<Team> teams;
  for (int t = 0; t < kThreads; ++t) {
    Team team{t, rank, size, MPI_COMM_NULL, MPI_OP_NULL, MPI_DATATYPE_NULL};
    MPI_Comm_dup(MPI_COMM_WORLD, &team.comm);
    MPI_Op_create(compose, 0, &team.own);
    MPI_Type_contiguous(2, MPI_INT, &team.pair);
    MPI_Type_commit(&team.pair);
    teams.push_back(team);
  }
  std::vector<std::thread> threads;
  for (const Team& team : teams) threads.emplace_back([&team] { team.run(); });
  for (std::thread& t : threads) t.join();
  for (Team& team : teams) {
    MPI_Comm_free(&team.comm);
    MPI_Op_free(&team.own);
    MPI_Type_free(&team.pair);
  }
  int all_wrong = wrong;
  MPI_Allreduce(MPI_IN_PLACE, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!plain && gccl::test::calls_answered() < std::uint64_t(kRounds)) {
    std::fprintf(stderr, "rank %d: GCCL answered %llu calls only\n", rank,
                 static_cast<unsigned long long>(gccl::test::calls_answered()));
    all_wrong = 1;
  }
  MPI_Finalize();
  return all_wrong ? 1 : 0;
}
