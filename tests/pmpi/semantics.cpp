// What MPI promises beyond results: when calls may wait for each other, what may be freed when, how errors look.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdio>
#include <numeric>

#include "tests/pmpi/support.hpp"

namespace gccl::test {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

TEST_CASE("the first call on a communicator may be a non-blocking one, which waits for nobody") {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Request request;
  int token = 5;
  if (world_rank() == 0) {
    CHECK(MPI_Ibarrier(comm, &request) == MPI_SUCCESS);
    for (int r = 1; r < world_size(); ++r) MPI_Send(&token, 1, MPI_INT, r, 3, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(MPI_Ibarrier(comm, &request) == MPI_SUCCESS);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Comm_free(&comm);
}

TEST_CASE("a barrier is none before everybody has come") {
  const bool last = world_rank() == world_size() - 1;
  int token = 0;
  MPI_Request request;
  MPI_Comm comm, early;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_split(MPI_COMM_WORLD, last, world_rank(), &early);
  if (last) {
    if (world_size() > 1) MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(comm, &request);
  } else {
    MPI_Ibarrier(comm, &request);
    for (int i = 0; i < 200; ++i) {
      int flag = 0;
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    MPI_Barrier(early);
    if (world_rank() == 0) MPI_Send(&token, 1, MPI_INT, world_size() - 1, 9, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&early);
  MPI_Comm_free(&comm);
}

TEST_CASE("a collective keeps MPI's messages moving, and MPI's waits keep collectives moving") {
  if (world_size() < 2) return;
  // Far beyond what MPI sends without the receiver's help.
  std::vector<char> data(4 << 20, char(world_rank()));
  MPI_Request request;
  if (world_rank() == 0) {
    MPI_Irecv(data.data(), int(data.size()), MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(data.back() == 1);
  } else {
    if (world_rank() == 1) MPI_Ssend(data.data(), int(data.size()), MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // Rank 0 waits in MPI for what the others send only after the collective that needs rank 0.
  int in = world_rank(), out = 0, token = 0;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (world_rank() == 0) {
    for (int r = 1; r < world_size(); ++r) MPI_Recv(&token, 1, MPI_INT, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
  CHECK(out == world_size() * (world_size() - 1) / 2);
  // The same while rank 0 is in a part of MPI that the drop-in does not see.
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (world_rank() == 0) {
    for (int r = 1; r < world_size(); ++r) PMPI_Recv(&token, 1, MPI_INT, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
  CHECK(out == world_size() * (world_size() - 1) / 2);
}

TEST_CASE("a first call on one communicator does not hold up what is in flight on another") {
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  MPI_Request request;
  int value = world_rank();
  MPI_Ibarrier(a, &request);
  if (world_rank() == 0) {
    MPI_Bcast(&value, 1, MPI_INT, 0, b);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, 0, b);
  }
  CHECK(value == 0);
  MPI_Comm_free(&a);
  MPI_Comm_free(&b);
}

TEST_CASE("a communicator's first blocking call may come while MPI_Comm_idup duplicates it") {
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm, copies[3];
    MPI_Request requests[3];
    const int one = 1;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 3; ++i) MPI_Comm_idup(comm, &copies[i], &requests[i]);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == world_size());
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (MPI_Comm& copy : copies) {
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
      CHECK(sum == world_size());
      MPI_Comm_free(&copy);
    }
    MPI_Comm_free(&comm);
  }
}

TEST_CASE("types, communicators and requests may be freed while calls are in flight") {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Datatype apart;
  MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
  MPI_Type_commit(&apart);
  int in = world_rank(), out = 0, all[4] = {world_rank() == 0 ? 8 : 0, -1, world_rank() == 0 ? 9 : 0, -1};
  static int lost = 0, one = 1;  // this rank may send from both when its result is there
  MPI_Request requests[2], given_up;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
  MPI_Ibcast(all, 1, apart, 0, comm, &requests[1]);
  MPI_Iallreduce(&one, &lost, 1, MPI_INT, MPI_SUM, comm, &given_up);
  MPI_Request_free(&given_up);
  MPI_Type_free(&apart);
  CHECK(apart == MPI_DATATYPE_NULL);
  MPI_Comm_free(&comm);
  CHECK(comm == MPI_COMM_NULL);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(out == world_size() * (world_size() - 1) / 2);
  CHECK(all[0] == 8);
  CHECK(all[1] == -1);
  CHECK(all[2] == 9);
  // What nobody waits for completes in time all the same.
  MPI_Request none = MPI_REQUEST_NULL;
  for (const double from = MPI_Wtime(); so_far(lost) != world_size() && MPI_Wtime() - from < 60;) {
    int flag = 0;
    MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
  }
  CHECK(so_far(lost) == world_size());
}

// MPI calls them where a type is duplicated, and where it is freed.
struct Seen {
  int copied = 0, freed = 0;
};
int type_copied(MPI_Datatype, int, void*, void* value, void*, int* copies) {
  ++static_cast<Seen*>(value)->copied;
  *copies = 0;
  return MPI_SUCCESS;
}
int type_freed(MPI_Datatype, int, void* value, void*) {
  ++static_cast<Seen*>(value)->freed;
  return MPI_SUCCESS;
}

// A pipelined program always has a call in flight: what it frees meanwhile must not wait for the last of them.
TEST_CASE("a type that was freed goes with the last call that needs it, whatever else is in flight") {
  int key = MPI_KEYVAL_INVALID, in = world_rank(), out = 0;
  MPI_Type_create_keyval(type_copied, type_freed, &key, nullptr);
  MPI_Comm comm, other;
  for (MPI_Comm* c : {&comm, &other}) {
    MPI_Comm_dup(MPI_COMM_WORLD, c);
    MPI_Barrier(*c);
  }
  MPI_Request all, broadcast;
  const auto begin_other = [&] { MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, other, &all); };
  if (world_rank() != 0) begin_other();  // in flight until the end
  for (const int root : {0, world_size() - 1}) {
    Seen seen;
    MPI_Datatype apart;
    MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    MPI_Type_set_attr(apart, key, &seen);
    int data[4] = {world_rank() == root ? 8 : 0, -1, world_rank() == root ? 9 : 0, -1};
    MPI_Ibcast(data, 1, apart, root, comm, &broadcast);
    MPI_Type_free(&apart);
    CHECK(apart == MPI_DATATYPE_NULL);
    MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
    CHECK(seen.freed == 1);
    CHECK(seen.copied == 0);
    CHECK(data[0] == 8);
    CHECK(data[1] == -1);
    CHECK(data[2] == 9);
  }
  if (world_rank() == 0) begin_other();
  MPI_Wait(&all, MPI_STATUS_IGNORE);
  CHECK(out == world_size() * (world_size() - 1) / 2);
  MPI_Type_free_keyval(&key);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

TEST_CASE("many communicators, made, used and freed in turn and at once") {
  for (int round = 0; round < 2; ++round) {
    std::vector<MPI_Comm> comms(30);
    std::vector<MPI_Request> requests(comms.size());
    std::vector<int> sums(comms.size());
    int one = 1;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      MPI_Comm_split(MPI_COMM_WORLD, int(i) % 3 == 0 ? 0 : world_rank() % 2, world_rank(), &comms[i]);
      if (i % 2 == 0) MPI_Barrier(comms[i]);  // the call behind it is GCCL's; without, it is MPI's
      MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comms[i], &requests[i]);
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      int size = 0;
      MPI_Comm_size(comms[i], &size);
      CHECK(sums[i] == size);
      MPI_Barrier(comms[i]);
      MPI_Comm_free(&comms[i]);
    }
  }
}

TEST_CASE("a hundred calls in flight on one communicator, completed in any order") {
  constexpr int kCalls = 100;
  std::vector<MPI_Request> requests(kCalls);
  std::vector<int> in(kCalls), out(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    in[std::size_t(i)] = i + world_rank();
    MPI_Iallreduce(&in[std::size_t(i)], &out[std::size_t(i)], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                   &requests[std::size_t(i)]);
  }
  Random random(std::uint64_t(world_rank()) + 1);
  std::vector<std::size_t> order(kCalls);
  std::iota(order.begin(), order.end(), std::size_t(0));
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[std::size_t(random.below(int(i) + 1))]);
  for (const std::size_t i : order) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    CHECK(out[i] == int(i) + world_size() - 1);
  }
}

TEST_CASE("the status of a finished call is empty") {
  MPI_Request request;
  MPI_Status status;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  int count = -1, cancelled = -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(count == 0);
  CHECK(cancelled == 0);
}

int handled = 0;
void count_error(MPI_Comm*, int*, ...) { ++handled; }

TEST_CASE("wrong arguments end in MPI's own error classes") {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int a = 0, b = 0;
  const auto same = [](int mine, int theirs) {
    int x = 0, y = 0;
    MPI_Error_class(mine, &x);
    MPI_Error_class(theirs, &y);
    CHECK(x == y);
    CHECK(x != MPI_SUCCESS);
  };
  const int n = world_size();
  std::uint64_t wrong = 6;
  const std::uint64_t wrong_before = calls_left_to_mpi_because("wrong argument");
  same(MPI_Bcast(&a, 1, MPI_INT, n, comm), PMPI_Bcast(&a, 1, MPI_INT, n, comm));
  same(MPI_Bcast(&a, -1, MPI_INT, 0, comm), PMPI_Bcast(&a, -1, MPI_INT, 0, comm));
  same(MPI_Bcast(&a, 1, MPI_DATATYPE_NULL, 0, comm), PMPI_Bcast(&a, 1, MPI_DATATYPE_NULL, 0, comm));
  same(MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_OP_NULL, comm), PMPI_Allreduce(&a, &b, 1, MPI_INT, MPI_OP_NULL, comm));
  same(MPI_Allreduce(&a, &b, 1, MPI_FLOAT, MPI_BAND, comm), PMPI_Allreduce(&a, &b, 1, MPI_FLOAT, MPI_BAND, comm));
  same(MPI_Reduce(&a, &b, -1, MPI_INT, MPI_SUM, 0, comm), PMPI_Reduce(&a, &b, -1, MPI_INT, MPI_SUM, 0, comm));
#ifdef OPEN_MPI  // what a program's memory of zeros holds; one call of the error handler, as MPI's
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_error, &counting);
  MPI_Comm_set_errhandler(comm, counting);
  const auto once = [&](int mine, int theirs) {
    same(mine, theirs);
    CHECK(handled == 2);
    handled = 0;
  };
  wrong += 3;
  once(MPI_Allgather(&a, 1, MPI_INT, &b, 1, MPI_Datatype(), comm),
       PMPI_Allgather(&a, 1, MPI_INT, &b, 1, MPI_Datatype(), comm));
  once(MPI_Bcast(&a, 1, MPI_Datatype(), 0, comm), PMPI_Bcast(&a, 1, MPI_Datatype(), 0, comm));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  once(MPI_Barrier(MPI_Comm()), PMPI_Barrier(MPI_Comm()));
  MPI_Errhandler_free(&counting);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  same(MPI_Barrier(MPI_COMM_NULL), PMPI_Barrier(MPI_COMM_NULL));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  CHECK(calls_left_to_mpi_because("wrong argument") == wrong_before + wrong);
  CHECK(calls_left_to_mpi_because("operation not defined on this type") == 1);
}

TEST_CASE("where one rank cannot connect, MPI answers on all of them") {
  if (world_size() < 2) return;
  for (const Form second : {Form::blocking, Form::nonblocking}) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    if (world_rank() == 0) setrlimit(RLIMIT_NOFILE, &none);
    int in = world_rank(), sum = 0, prefix = 0, value = world_rank() + 5;
    MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (second == Form::blocking) {
      MPI_Scan(&in, &prefix, 1, MPI_INT, MPI_SUM, comm);
      MPI_Bcast(&value, 1, MPI_INT, 0, comm);
    } else {
      MPI_Request request;
      MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request);
      MPI_Scan(&in, &prefix, 1, MPI_INT, MPI_SUM, comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(sum == world_size() * (world_size() - 1) / 2);
    CHECK(prefix == world_rank() * (world_rank() + 1) / 2);
    CHECK(value == 5);
    MPI_Comm_free(&comm);
  }
  CHECK(calls_left_to_mpi_because("ranks not connected") >= 4);
}

TEST_CASE("intercommunicators are MPI's") {
  if (world_size() < 2) return;
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, world_rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank() % 2, 4, &inter);
  int in = world_rank() % 2, out = -1, remote = 0;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, inter);
  CHECK(out == (1 - in) * remote);
  MPI_Barrier(inter);
  CHECK(calls_left_to_mpi_because("intercommunicator") == 2);
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, in, &merged);
  MPI_Barrier(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

// With as many as 23 before, the ranks of plain Open MPI 4.1 hang within these rounds.
TEST_CASE("the edges of a graph reach their ranks, however many non-blocking calls MPI has answered before") {
  const int rank = world_rank(), size = world_size();
  std::vector<int> nodes, degrees, targets, weights;  // of a full graph, all named by rank 0
  for (int edge = 0; edge < size * size && rank == 0; ++edge) {
    nodes.push_back(edge / size);
    degrees.push_back(1);
    targets.push_back(edge % size);
    weights.push_back(edge);
  }
  for (int round = 0; round < 40; ++round) {
    MPI_Comm comm, graph;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 22 + round % 4; ++i) {
      MPI_Request request;
      PMPI_Ibarrier(comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Dist_graph_create(comm, int(nodes.size()), nodes.data(), degrees.data(), targets.data(), weights.data(),
                          MPI_INFO_NULL, round % 2, &graph);
    const auto n = std::size_t(size);
    std::vector<int> from(n), to(n), weights_from(n), weights_to(n);
    MPI_Dist_graph_neighbors(graph, size, from.data(), weights_from.data(), size, to.data(), weights_to.data());
    for (std::size_t r = 0; r < n; ++r) {
      CHECK(weights_from[r] == from[r] * size + rank);
      CHECK(weights_to[r] == rank * size + to[r]);
    }
    MPI_Comm_free(&graph);
    MPI_Comm_free(&comm);
  }
}

}  // namespace
}  // namespace gccl::test

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  const int rank = gccl::test::world_rank();
  if (rank == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(gccl::test::kSeed));
  doctest::Context context(argc, argv);
  if (rank != 0) context.setOption("minimal", true);  // one summary is enough; failures show from everywhere
  int failed = context.run();
  // Beyond what the cases above left to MPI on purpose, GCCL must have answered everything.
  std::string which;
  const std::uint64_t on_purpose = gccl::test::calls_left_to_mpi_because("wrong argument") +
                                   gccl::test::calls_left_to_mpi_because("operation not defined on this type") +
                                   gccl::test::calls_left_to_mpi_because("ranks not connected") +
                                   gccl::test::calls_left_to_mpi_because("intercommunicator") +
                                   gccl::test::calls_left_to_mpi_because(gccl::test::kNotYetConnected) +
                                   gccl::test::calls_left_to_mpi_because(gccl::test::kNotOurs);
  if (!context.shouldExit() &&
      (gccl::test::calls_left_to_mpi(&which) != on_purpose || gccl::test::calls_answered() == 0)) {
    std::fprintf(stderr, "rank %d: calls left to MPI: %s\n", rank, which.c_str());
    failed = 1;
  }
  MPI_Finalize();
  return failed;
}
