// Erroneous calls that MPI itself ends and goes on after: the same error classes on each rank, and the same program
// afterwards.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/pmpi/support.hpp"

namespace gccl::test {
namespace {

struct Erroneous {
  const char* name;
  // The drop-in's function and MPI's, on `n` integers at the sender and fewer at the receiver.
  int (*call)(MPI_Comm, int rank, int n, int* data, int* room);
  int (*oracle)(MPI_Comm, int rank, int n, int* data, int* room);
  // Ranks beyond rank 1 do nothing wrong but wait for the root: one that hears of the difference before its data come
  // has MPI_ERR_TRUNCATE too (docs/mpi.md).
  bool others_wait = false;
};

#define BOTH(...)                                                                      \
  [](MPI_Comm c, int rank, int n, int* data, int* room) { return MPI_##__VA_ARGS__; }, \
      [](MPI_Comm c, int rank, int n, int* data, int* room) { return PMPI_##__VA_ARGS__; }

int waited(int code, MPI_Request* request) { return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code; }

const Erroneous kErroneous[] = {
    {"a gather of more than the root expects", BOTH(Gather(data, rank == 0 ? 1 : n, MPI_INT, room, 1, MPI_INT, 0, c))},
    {"a gather where one rank sends more", BOTH(Gather(data, rank == 1 ? n : 1, MPI_INT, room, 1, MPI_INT, 0, c))},
    {"a scatter of more than one rank expects", BOTH(Scatter(room, n, MPI_INT, data, rank == 1 ? 1 : n, MPI_INT, 0, c)),
     true},
    {"a non-blocking gather of more than the root expects",
     [](MPI_Comm c, int rank, int n, int* data, int* room) {
       MPI_Request r = MPI_REQUEST_NULL;
       return waited(MPI_Igather(data, rank == 0 ? 1 : n, MPI_INT, room, 1, MPI_INT, 0, c, &r), &r);
     },
     [](MPI_Comm c, int rank, int n, int* data, int* room) {
       return PMPI_Gather(data, rank == 0 ? 1 : n, MPI_INT, room, 1, MPI_INT, 0, c);
     }},
};

TEST_CASE("lengths that differ are an error where MPI makes it one, and the program goes on") {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return;
  for (const Erroneous& e : kErroneous)
    for (const int n : {10, 500}) {  // beyond what MPI sends eagerly, other ranks may wait for ever in MPI too
      MPI_Comm mine, theirs;
      MPI_Comm_dup(MPI_COMM_WORLD, &mine);
      MPI_Comm_dup(MPI_COMM_WORLD, &theirs);
      MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(theirs, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      std::vector<int> data(std::size_t(n) * std::size_t(size)), room(data.size());
      MPI_Barrier(mine);
      const int theirs_class = error_class(e.oracle(theirs, rank, n, data.data(), room.data()));
      const int mine_class = error_class(e.call(mine, rank, n, data.data(), room.data()));
      int sum = 0, root = rank;
      const int after = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, mine);
      const int then = MPI_Bcast(&root, 1, MPI_INT, size - 1, mine);
      CAPTURE(e.name);
      CAPTURE(n);
      CAPTURE(rank);
      const bool overtaken = e.others_wait && rank > 1 && mine_class == MPI_ERR_TRUNCATE;
      CHECK((mine_class == theirs_class || overtaken));
      CHECK(after == MPI_SUCCESS);
      CHECK(sum == size * (size - 1) / 2);
      CHECK(then == MPI_SUCCESS);
      CHECK(root == size - 1);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
      MPI_Comm_free(&mine);
      MPI_Comm_free(&theirs);
    }
}

// No rank waits for another, as all make the same mistake, or a reduce's root does alone and its error stays there.
TEST_CASE("one buffer as input and result is the error that MPI makes it, where it makes it one") {
  const Returning returning;
  MPI_Comm const comm = returning.comm;
  const int rank = returning.rank, size = returning.size;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<int> data(8, rank), other(8);
  void* const both = data.data();
  CHECK(error_class(PMPI_Allreduce(both, both, 8, MPI_INT, MPI_SUM, comm)) == MPI_ERR_BUFFER);
  CHECK(error_class(MPI_Allreduce(both, both, 8, MPI_INT, MPI_SUM, comm)) == MPI_ERR_BUFFER);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK(error_class(MPI_Iallreduce(both, both, 8, MPI_INT, MPI_SUM, comm, &request)) == MPI_ERR_BUFFER);
  CHECK(data == std::vector<int>(8, rank));
  if (rank == 0)
    for (const int count : {1, 8}) {
      const int theirs = error_class(PMPI_Reduce(both, both, count, MPI_INT, MPI_SUM, 0, comm));
      CHECK(theirs != MPI_SUCCESS);
      CHECK(error_class(MPI_Reduce(both, both, count, MPI_INT, MPI_SUM, 0, comm)) == theirs);
    }
  // What is no result may be the input.
  CHECK(MPI_Reduce(both, rank == 0 ? other.data() : both, 8, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS);
  CHECK((rank != 0 || other == std::vector<int>(8, size * (size - 1) / 2)));
  CHECK(MPI_Allreduce(both, other.data(), 8, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(other == std::vector<int>(8, size * (size - 1) / 2));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// A root that sends itself more than it expects, or less; MPI's own answer, and nothing else of the receive buffer.
TEST_CASE("a rank whose own two lengths differ gets what MPI gives it, and no byte more is read or written") {
  const Returning returning;
  const int rank = returning.rank, size = returning.size;
  MPI_Comm const comm = returning.comm;
  MPI_Comm alone;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype gaps;
  MPI_Type_create_resized(MPI_INT, 0, 8, &gaps);
  MPI_Type_commit(&gaps);
  const int n = 3, zero[] = {0};
  MPI_Request q = MPI_REQUEST_NULL;
  for (const MPI_Datatype to : {MPI_INT, gaps})
    for (const int own : {2, 5, 0}) {
      std::vector<int> data(100), theirs(100), mine(100);
      const auto same = [&](const char* name, auto&& oracle, auto&& call) {
        for (int i = 0; i < 100; ++i) {
          data[std::size_t(i)] = 1000 * (rank + 1) + i;
          theirs[std::size_t(i)] = mine[std::size_t(i)] = -i;
        }
        CAPTURE(name);
        CAPTURE(own);
        CAPTURE(rank);
        const int expected = error_class(oracle(data.data(), theirs.data()));
        CHECK(error_class(call(data.data(), mine.data())) == expected);
        for (std::size_t i = 0; i < mine.size(); ++i)
          CHECK_MESSAGE(mine[i] == theirs[i], std::string(name) << " " << i);
      };
#define ALONE(name, ...)                                                   \
  same(                                                                    \
      #name, [&](int* d, int* r) { return PMPI_##name(__VA_ARGS__); },     \
      [&](int* d, int* r) { return MPI_##name(__VA_ARGS__); });            \
  same(                                                                    \
      "I" #name, [&](int* d, int* r) { return PMPI_##name(__VA_ARGS__); }, \
      [&](int* d, int* r) { return waited(MPI_I##name##_(__VA_ARGS__), &q); })
#define MPI_IGather_(...) MPI_Igather(__VA_ARGS__, &q)
#define MPI_IScatter_(...) MPI_Iscatter(__VA_ARGS__, &q)
#define MPI_IAllgather_(...) MPI_Iallgather(__VA_ARGS__, &q)
#define MPI_IAllgatherv_(...) MPI_Iallgatherv(__VA_ARGS__, &q)
#define MPI_IAlltoall_(...) MPI_Ialltoall(__VA_ARGS__, &q)
#define MPI_IAlltoallv_(...) MPI_Ialltoallv(__VA_ARGS__, &q)
#define MPI_IAlltoallw_(...) MPI_Ialltoallw(__VA_ARGS__, &q)
      const MPI_Datatype integer = MPI_INT;
      ALONE(Gather, d, own, MPI_INT, r, n, to, 0, alone);
      ALONE(Scatter, d, own, MPI_INT, r, n, to, 0, alone);
      ALONE(Allgather, d, own, MPI_INT, r, n, to, alone);
      ALONE(Allgatherv, d, own, MPI_INT, r, &n, zero, to, alone);
      ALONE(Alltoall, d, own, MPI_INT, r, n, to, alone);
      ALONE(Alltoallv, d, &own, zero, MPI_INT, r, &n, zero, to, alone);
      ALONE(Alltoallw, d, &own, zero, &integer, r, &n, zero, &to, alone);
      // Open MPI writes behind what is shorter here: with a zero.
      if (own > n) {
        ALONE(Gather, d, own, to, r, n, MPI_INT, 0, alone);
        ALONE(Scatter, d, own, to, r, n, MPI_INT, 0, alone);
      }
#undef ALONE
      // The other ranks' parts come all the same; Open MPI stops before them where the root's own is too long.
      const int root = size - 1;
      std::vector<int> gathered(std::size_t(2 * n * size), -1), part(100, -1);
      const int due = own > n ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
      const std::size_t step = to == gaps ? 2 : 1;
      for (int i = 0; i < n; ++i) data[std::size_t(i)] = 10 * rank + i;
      const int code = MPI_Gather(data.data(), rank == root ? own : n, MPI_INT, gathered.data(), n, to, root, comm);
      CHECK(error_class(code) == (rank == root ? due : MPI_SUCCESS));
      if (rank == root)
        for (int r = 0; r < size; ++r)
          for (int i = 0; i < n; ++i)
            CHECK(gathered[step * std::size_t(n * r + i)] == (r == root && i >= own ? -1 : 10 * r + i));
      std::vector<int> all(std::size_t(n * size));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = int(i);
      const int room = rank == root ? own : n;
      CHECK(error_class(MPI_Scatter(all.data(), n, MPI_INT, part.data(), room, to, root, comm)) ==
            (room < n ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
      for (int i = 0; i < 6; ++i) CHECK(part[step * std::size_t(i)] == (i < std::min(n, room) ? n * rank + i : -1));
    }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&alone);
}

TEST_CASE("a call between a non-blocking one whose lengths differ and its wait is carried out") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size < 2) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  constexpr int n = 10;
  std::vector<int> data(n, rank), room(static_cast<std::size_t>(size));
  int sum = 0;
  MPI_Request r = MPI_REQUEST_NULL;
  CHECK(MPI_Igather(data.data(), rank == 0 ? 1 : n, MPI_INT, room.data(), 1, MPI_INT, 0, comm, &r) == MPI_SUCCESS);
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(error_class(MPI_Wait(&r, MPI_STATUS_IGNORE)) == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

TEST_CASE("a call that GCCL has begun in place is an error then, and no wrong result") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size < 2) return;
  constexpr int n = 10;
  std::vector<int> data(n, rank), room(static_cast<std::size_t>(size));
  std::vector<int> sums(100000, rank + 1);
  if (rank == 0) usleep(500000);  // the others have combined what they have
  MPI_Gather(data.data(), rank == 0 ? 1 : n, MPI_INT, room.data(), 1, MPI_INT, 0, comm);
  const int code = MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(sums.size()), MPI_INT, MPI_SUM, comm);
  const std::vector<int> expected(sums.size(), size * (size + 1) / 2);
  CHECK((code != MPI_SUCCESS || sums == expected));
}

TEST_CASE("a type that is not committed ends in MPI's own error class") {
  const Returning returning;
  const auto& [rank, size, comm] = returning;
  MPI_Datatype raw;
  MPI_Op own;
  MPI_Type_contiguous(2, MPI_INT, &raw);
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own);
  const auto n = std::size_t(size);
  std::vector<int> data(2 * n), room(2 * n), counts(n, 1), displs(n);
  std::vector<MPI_Datatype> types(n, raw);
  for (std::size_t i = 0; i < n; ++i) displs[i] = int(i);
  void *const d = data.data(), *const r = room.data();
  const int *const c = counts.data(), *const p = displs.data();
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Datatype* const t = types.data();
#define SAME(...)                                       \
  {                                                     \
    INFO(#__VA_ARGS__);                                 \
    const int theirs = error_class(PMPI_##__VA_ARGS__); \
    CHECK(error_class(MPI_##__VA_ARGS__) == theirs);    \
    CHECK(theirs == MPI_ERR_TYPE);                      \
  }
  SAME(Bcast(d, 1, raw, 0, comm));
  SAME(Gather(d, 1, raw, r, 1, raw, 0, comm));
  SAME(Allgather(d, 1, raw, r, 1, raw, comm));
  SAME(Allgatherv(d, 1, raw, r, c, p, raw, comm));
  SAME(Alltoall(d, 1, raw, r, 1, raw, comm));
  SAME(Alltoallv(d, c, p, raw, r, c, p, raw, comm));
  SAME(Alltoallw(d, c, p, t, r, c, p, t, comm));
  SAME(Allreduce(d, r, 1, raw, own, comm));
  SAME(Reduce(d, r, 1, raw, own, 0, comm));
  SAME(Reduce_scatter_block(d, r, 1, raw, own, comm));
  SAME(Ibcast(d, 1, raw, 0, comm, &request));
  SAME(Iallreduce(d, r, 1, raw, own, comm, &request));
#undef SAME
  MPI_Type_commit(&raw);
  CHECK(MPI_Bcast(d, 1, raw, 0, comm) == MPI_SUCCESS);
  MPI_Op_free(&own);
  MPI_Type_free(&raw);
}

#ifdef OPEN_MPI
TEST_CASE("Open MPI takes types that are not committed for some buffers, and so does the drop-in, on any rank") {
  const Returning returning;
  const auto& [rank, size, comm] = returning;
  const auto n = std::size_t(size);
  std::vector<int> data(2 * n), room, due, counts(n, 1), displs(n);
  for (std::size_t i = 0; i < n; ++i) displs[i] = int(n - 1 - i);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = 100 * rank + int(i);
  const int *const c = counts.data(), *const p = displs.data();
  for (int who = 0; who <= size; ++who) {
    MPI_Datatype raw, pair;
    MPI_Type_contiguous(2, MPI_INT, &raw);  // with a gap Open MPI crashes
    MPI_Type_contiguous(2, MPI_INT, &pair);
    if (rank != who && who != size) MPI_Type_commit(&raw);
    MPI_Type_commit(&pair);
    CAPTURE(who);
    void *const d = data.data(), *r = nullptr;
    MPI_Request request = MPI_REQUEST_NULL;
#define SAME(...)                             \
  {                                           \
    INFO(#__VA_ARGS__);                       \
    due.assign(2 * n, -1);                    \
    r = due.data();                           \
    CHECK(PMPI_##__VA_ARGS__ == MPI_SUCCESS); \
    PMPI_Wait(&request, MPI_STATUS_IGNORE);   \
    room.assign(2 * n, -1);                   \
    r = room.data();                          \
    CHECK(MPI_##__VA_ARGS__ == MPI_SUCCESS);  \
    MPI_Wait(&request, MPI_STATUS_IGNORE);    \
    CHECK(room == due);                       \
  }
    SAME(Gather(d, 2, MPI_INT, r, 1, raw, 0, comm));
    SAME(Igather(d, 1, pair, r, 1, raw, 0, comm, &request));
    SAME(Gather(rank == 0 ? MPI_IN_PLACE : d, 1, pair, r, 1, raw, 0, comm));
    SAME(Scatter(d, 1, raw, r, 2, MPI_INT, 0, comm));
    SAME(Iscatter(d, 1, raw, r, 1, raw, 0, comm, &request));
    SAME(Allgather(d, 2, MPI_INT, r, 1, raw, comm));
    SAME(Iallgather(MPI_IN_PLACE, 0, MPI_INT, r, 1, raw, comm, &request));
    SAME(Allgatherv(d, 1, pair, r, c, p, raw, comm));
    SAME(Iallgatherv(MPI_IN_PLACE, 0, MPI_INT, r, c, p, raw, comm, &request));
#undef SAME
    MPI_Type_free(&pair);
    MPI_Type_free(&raw);
  }
}
#endif

// The others' calls, on `n` ranks, are right: they send to the rank whose call is refused, or do not need it.
const Erroneous kRefused[] = {
    {"a gather whose root expects less than nothing",
     BOTH(Gather(data, n, MPI_INT, room, rank == 0 ? -1 : n, MPI_INT, 0, c))},
    {"a reduce into its root's own input", BOTH(Reduce(data, rank == 0 ? data : room, n, MPI_INT, MPI_SUM, 0, c))},
    {"a broadcast of no type on the last rank",
     [](MPI_Comm c, int rank, int n, int* data, int*) {
       return MPI_Bcast(data, n, rank == n - 1 ? MPI_DATATYPE_NULL : MPI_INT, 0, c);
     },
     [](MPI_Comm c, int rank, int n, int* data, int*) {
       return PMPI_Bcast(data, n, rank == n - 1 ? MPI_DATATYPE_NULL : MPI_INT, 0, c);
     },
     true},
};

TEST_CASE("a wrong argument on one rank is an error there, and the program goes on") {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return;
  for (const Erroneous& e : kRefused)
    for (const bool first : {false, true}) {  // before the communicator was connected
      MPI_Comm mine, theirs;
      MPI_Comm_dup(MPI_COMM_WORLD, &mine);
      MPI_Comm_dup(MPI_COMM_WORLD, &theirs);
      MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(theirs, MPI_ERRORS_RETURN);
      if (!first) MPI_Barrier(mine);
      std::vector<int> data(std::size_t(size), rank), room(data.size());
      const int theirs_class = error_class(e.oracle(theirs, rank, size, data.data(), room.data()));
      const int mine_class = error_class(e.call(mine, rank, size, data.data(), room.data()));
      int sum = 0, root = rank;
      const int after = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, mine);
      const int then = MPI_Bcast(&root, 1, MPI_INT, size - 1, mine);
      CAPTURE(e.name);
      CAPTURE(first);
      CAPTURE(rank);
      const bool overtaken = e.others_wait && rank > 0 && rank < size - 1 && mine_class == MPI_ERR_TRUNCATE;
      CHECK((mine_class == theirs_class || overtaken));
      CHECK(after == MPI_SUCCESS);
      CHECK(sum == size * (size - 1) / 2);
      CHECK(then == MPI_SUCCESS);
      CHECK(root == size - 1);
      MPI_Comm_free(&mine);
      MPI_Comm_free(&theirs);
    }
}

// The gather's root waits for rank 0; another is in the broadcast already, and so is rank 0, but as its call before. Of
// more ranks some may be past it (docs/mpi.md).
TEST_CASE("broadcasts after a gather that is refused on a sender bring their own data") {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 3) return;
  MPI_Comm three;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, rank, &three);
  if (rank >= 3) return;
  for (const int root : {0, 2}) {
    MPI_Comm comm;
    MPI_Comm_dup(three, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);  // connects it
    std::vector<int> data(400000), room(3);
    const int code = MPI_Gather(&rank, rank == 0 ? -1 : 1, MPI_INT, room.data(), 1, MPI_INT, 1, comm);
    CHECK(error_class(code) == (rank == 0 ? MPI_ERR_COUNT : rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    for (const int value : {1, 2, 3}) {
      data.assign(data.size(), rank == root ? value : -1);
      CAPTURE(root);
      CAPTURE(rank);
      CHECK(MPI_Bcast(data.data(), int(data.size()), MPI_INT, root, comm) == MPI_SUCCESS);
      CHECK(data == std::vector<int>(data.size(), value));
    }
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free(&three);
}

// Either rank 0 has made the refused call alone, and the lengths of the next one differ, or the others are still in the
// refused one, and would get the data of the next. Plain MPI carries out what it is given.
TEST_CASE("where a refused call leaves two explanations the next call is an error, and no wrong result") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size < 2) return;
  const int n = rank == 0 ? 5 : 10;
  std::vector<int> data(10, rank), room(static_cast<std::size_t>(size) * 10);
  if (rank == 0)
    CHECK(error_class(MPI_Allgather(data.data(), -1, MPI_INT, room.data(), 1, MPI_INT, comm)) == MPI_ERR_COUNT);
  CHECK(MPI_Allgather(data.data(), n, MPI_INT, room.data(), n, MPI_INT, comm) != MPI_SUCCESS);
  CHECK(MPI_Barrier(comm) != MPI_SUCCESS);
}

TEST_CASE("a wrong call that one rank makes alone is an error there, and changes nothing for the calls after it") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size < 2) return;
  const std::uint64_t answered = calls_answered();
  int sum = 0;
  if (rank == 0) CHECK(error_class(MPI_Bcast(&sum, -1, MPI_INT, 0, comm)) == MPI_ERR_COUNT);
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(calls_answered() == answered + 1);
  // So calls that differ later are an error, and not the others' answer to that one.
  const int code =
      rank == 0 ? MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) : MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
  CHECK(code != MPI_SUCCESS);
  CHECK(MPI_Barrier(comm) != MPI_SUCCESS);
}

TEST_CASE("calls of different kinds end with an error on every rank") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size < 2) return;
  int sum = 0;
  std::vector<int> out(std::size_t(size), rank), in(out.size());
  const int code = rank == 0 ? MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm)
                             : MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm);
  CHECK(code != MPI_SUCCESS);
  CHECK(MPI_Barrier(comm) != MPI_SUCCESS);
}

// A sum by GCCL.
void check_sum(MPI_Comm comm) {
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const std::uint64_t answered = calls_answered();
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(calls_answered() == answered + 1);
}

TEST_CASE("communicators of the same ranks, made before and after, work where calls on one have failed") {
  const Returning failed, sibling;
  MPI_Comm later = MPI_COMM_NULL, half = MPI_COMM_NULL;
  check_sum(failed.comm);
  check_sum(sibling.comm);
  if (failed.size > 1) {
    int sum = 0;
    CHECK((failed.rank == 0 ? MPI_Barrier(failed.comm)
                            : MPI_Allreduce(&failed.rank, &sum, 1, MPI_INT, MPI_SUM, failed.comm)) != MPI_SUCCESS);
    CHECK(MPI_Barrier(failed.comm) != MPI_SUCCESS);
  }
  check_sum(sibling.comm);
  MPI_Comm_dup(sibling.comm, &later);
  check_sum(later);
  MPI_Comm_split(later, failed.rank % 2, -failed.rank, &half);
  MPI_Comm_free(&later);
  check_sum(half);
  MPI_Comm_free(&half);
  check_sum(MPI_COMM_WORLD);
}

TEST_CASE("MPI refuses to free its own communicators, and GCCL goes on serving them") {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
  CHECK(error_class(MPI_Comm_free(&world)) == MPI_ERR_COMM);
  CHECK(error_class(MPI_Comm_free(&self)) == MPI_ERR_COMM);
  CHECK(error_class(MPI_Comm_disconnect(&world)) == MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  std::string which;
  const std::uint64_t before = calls_left_to_mpi(&which);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Barrier(MPI_COMM_SELF) == MPI_SUCCESS);
  CHECK(calls_left_to_mpi(&which) == before);
}

}  // namespace
}  // namespace gccl::test
