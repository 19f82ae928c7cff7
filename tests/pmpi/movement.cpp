// Collectives that move data, against MPI's own: the whole memory must be the same afterwards, gaps and guards
// included.
#include <doctest/doctest.h>

#include "tests/pmpi/support.hpp"

namespace gccl::test {
namespace {

// One rank's arguments of any of them.
struct Arguments {
  MPI_Comm comm;
  int root = 0, send_count = 0, recv_count = 0;
  MPI_Datatype send_type, recv_type;
  void *send = nullptr, *recv = nullptr;
  std::vector<int> send_counts, send_displs, recv_counts, recv_displs;
  std::vector<MPI_Datatype> send_types, recv_types;
};

struct Movement {
  const char* name;
  bool rooted, blocks;  // blocks: a v-collective
  bool in_place_sends;  // MPI_IN_PLACE stands for the send buffer
  int (*blocking)(Arguments&);
  int (*starting)(Arguments&, MPI_Request*);
  int (*oracle)(Arguments&);
};

#define SIX a.send, a.send_count, a.send_type, a.recv, a.recv_count, a.recv_type
#define VECTORS                                                                                                        \
  a.send, a.send_counts.data(), a.send_displs.data(), a.send_type, a.recv, a.recv_counts.data(), a.recv_displs.data(), \
      a.recv_type
#define VECTORS_W                                                                                        \
  a.send, a.send_counts.data(), a.send_displs.data(), a.send_types.data(), a.recv, a.recv_counts.data(), \
      a.recv_displs.data(), a.recv_types.data()
#define FORMS(NAME, INAME, ...)                                                         \
  [](Arguments& a) { return MPI_##NAME(__VA_ARGS__, a.comm); },                         \
      [](Arguments& a, MPI_Request* r) { return MPI_##INAME(__VA_ARGS__, a.comm, r); }, \
      [](Arguments& a) { return PMPI_##NAME(__VA_ARGS__, a.comm); }

const Movement kMovements[] = {
    {"bcast", true, false, false, FORMS(Bcast, Ibcast, a.recv, a.recv_count, a.recv_type, a.root)},
    {"gather", true, false, true, FORMS(Gather, Igather, SIX, a.root)},
    {"scatter", true, false, false, FORMS(Scatter, Iscatter, SIX, a.root)},
    {"allgather", false, false, true, FORMS(Allgather, Iallgather, SIX)},
    {"alltoall", false, false, true, FORMS(Alltoall, Ialltoall, SIX)},
    {"allgatherv", false, true, true,
     FORMS(Allgatherv, Iallgatherv, a.send, a.send_count, a.send_type, a.recv, a.recv_counts.data(),
           a.recv_displs.data(), a.recv_type)},
    {"alltoallv", false, true, true, FORMS(Alltoallv, Ialltoallv, VECTORS)},
    {"alltoallw", false, true, true, FORMS(Alltoallw, Ialltoallw, VECTORS_W)},
};

// How many elements rank `from` sends to rank `to`: symmetric, as in-place exchanges want it, and 0 now and then.
int length(int from, int to, int count) { return (from * to + from + to) % 3 * count; }

struct Memories {
  Memory send, recv;
};

// Fills in `a` for this rank, with `count` elements of `send_type` as often as the collective wants. Where the ranks'
// types differ, so do their counts; the bytes are the same.
Memories arguments(const Movement& m, const Comm& c, const Type& send_type, const Type& recv_type, int count,
                   bool in_place, Arguments& a, std::uint64_t stream) {
  const int n = c.size;
  const std::string name = m.name;
  a.comm = c.comm;
  a.send_type = send_type.type;
  a.recv_type = recv_type.type;
  // `count` is in the base type's pieces of 6, which every type's parts divide.
  const auto elements = [](const Type& t, int units) { return t.parts == 0 ? units : units * 6 / t.parts; };
  a.send_count = elements(send_type, count);
  a.recv_count = elements(recv_type, count);
  const auto layout = [&](const Type& t, std::vector<int>& counts, std::vector<int>& displs, auto units) {
    int at = 0;
    for (int i = 0; i < n; ++i) {
      counts.push_back(elements(t, units(i)));
      displs.push_back(at);
      at += counts.back() + 1;  // a gap behind each
    }
    return at;
  };
  std::int64_t send_elements = std::int64_t(a.send_count) * n, recv_elements = std::int64_t(a.recv_count) * n;
  if (name == "allgatherv") {
    a.send_count = elements(send_type, length(c.rank, 1, count));
    recv_elements = layout(recv_type, a.recv_counts, a.recv_displs, [&](int i) { return length(i, 1, count); });
  } else if (m.blocks) {
    send_elements = layout(send_type, a.send_counts, a.send_displs, [&](int i) { return length(c.rank, i, count); });
    recv_elements = layout(recv_type, a.recv_counts, a.recv_displs, [&](int i) { return length(i, c.rank, count); });
  }
  if (name == "alltoallw") {
    MPI_Aint lb, extent;
    MPI_Type_get_extent(a.send_type, &lb, &extent);
    for (int& d : a.send_displs) d *= int(extent);
    MPI_Type_get_extent(a.recv_type, &lb, &extent);
    for (int& d : a.recv_displs) d *= int(extent);
    a.send_types.assign(std::size_t(n), a.send_type);
    a.recv_types.assign(std::size_t(n), a.recv_type);
  }
  Random random(stream * 1000 + std::uint64_t(c.rank));
  Memories mem{Memory(send_type.type, send_elements, random), Memory(recv_type.type, recv_elements, random)};
  a.send = in_place && m.in_place_sends && (!m.rooted || c.rank == a.root) ? MPI_IN_PLACE : mem.send.at();
  a.recv = in_place && name == "scatter" && c.rank == a.root ? MPI_IN_PLACE : mem.recv.at();
  return mem;
}

// The same call by GCCL and by MPI, on the same memory.
void compare(const Movement& m, const Comm& c, const Type& send_type, const Type& recv_type, int count, int root,
             bool in_place, Form form, std::uint64_t stream) {
  if (c.comm == MPI_COMM_NULL) return;
  Arguments mine{}, theirs{};
  mine.root = theirs.root = root;
  Memories mem_mine = arguments(m, c, send_type, recv_type, count, in_place, mine, stream);
  Memories mem_theirs = arguments(m, c, send_type, recv_type, count, in_place, theirs, stream);
  int faults = 0;
  if (form == Form::blocking) {
    faults += m.blocking(mine) != MPI_SUCCESS;
  } else {
    std::vector<MPI_Request> requests(1);
    faults += m.starting(mine, requests.data()) != MPI_SUCCESS;
    faults += complete(c.comm, int(stream), requests);
  }
  faults += m.oracle(theirs) != MPI_SUCCESS;
  INFO(std::string(m.name) << " on " << c.name << " of " << c.size << ", rank " << c.rank << ", " << send_type.name
                           << " to " << recv_type.name << ", count " << count << ", root " << root
                           << std::string(in_place ? ", in place" : "")
                           << std::string(form == Form::blocking ? "" : ", non-blocking") << ", stream " << stream);
  CHECK(faults == 0);
  CHECK(mem_mine.recv == mem_theirs.recv);
  CHECK(mem_mine.send == mem_theirs.send);
}

TEST_CASE("every movement leaves what MPI's own leaves, for every type, communicator and form") {
  auto comms = make_comms();
  auto types = make_types();
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::uint64_t stream = 0;
  for (const Movement& m : kMovements)
    for (const Comm& c : comms)
      for (const Type& type : types)
        for (const int count : {0, 1, 40})
          for (const bool in_place : {false, true}) {
            if (in_place && std::string(m.name) == "bcast") continue;
            const std::uint64_t draw = Random(++stream).next();
            if (!chosen(draw, ranks)) continue;
            const Form form = draw % 2 ? Form::blocking : Form::nonblocking;
            compare(m, c, type, type, count, m.rooted ? int(draw / 2 % std::uint64_t(c.size)) : 0, in_place, form,
                    stream);
          }
  free_types(types);
  free_comms(comms);
}

TEST_CASE("sender and receiver may describe the same data by different types") {
  auto comms = make_comms();
  auto types = make_types();
  std::vector<Type> ints;
  for (const Type& t : types)
    if (t.base == MPI_INT && t.parts > 0) ints.push_back(t);
  std::uint64_t stream = 100000;
  for (const Movement& m : kMovements)
    for (const Comm& c : comms)
      for (std::size_t shift = 1; shift < ints.size(); ++shift) {
        // Each rank chooses on its own.
        const Type& send_type = ints[(std::size_t(c.rank) + shift) % ints.size()];
        const Type& recv_type = ints[(std::size_t(c.rank) * 2 + 2 * shift + 1) % ints.size()];
        compare(m, c, send_type, recv_type, 7, m.rooted ? int(shift) % c.size : 0, false,
                shift % 2 ? Form::blocking : Form::nonblocking, stream++);
      }
  free_types(types);
  free_comms(comms);
}

TEST_CASE("large movements") {
  auto comms = make_comms();
  const Type type{"int", MPI_INT, 1, MPI_INT};
  Type vector{"vector", MPI_DATATYPE_NULL, 2, MPI_INT};
  MPI_Type_vector(2, 1, 2, MPI_INT, &vector.type);
  MPI_Type_commit(&vector.type);
  std::uint64_t stream = 200000;
  for (const Movement& m : kMovements)
    for (const Form form : {Form::blocking, Form::nonblocking})
      compare(m, comms[0], type, form == Form::blocking ? type : vector, 20000, 0, false, form, stream++);
  MPI_Type_free(&vector.type);
  free_comms(comms);
}

TEST_CASE("displacements may be negative, and absolute with MPI_BOTTOM") {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> all(std::size_t(size), -1), counts(std::size_t(size), 1), displs(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) displs[std::size_t(i)] = -i;
  CHECK(MPI_Allgatherv(&rank, 1, MPI_INT, &all[std::size_t(size) - 1], counts.data(), displs.data(), MPI_INT,
                       MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int i = 0; i < size; ++i) CHECK(all[std::size_t(size - 1 - i)] == i);

  int two[2] = {rank == 0 ? 11 : 0, rank == 0 ? 22 : 0};
  MPI_Aint where[2];
  MPI_Get_address(&two[1], &where[0]);
  MPI_Get_address(&two[0], &where[1]);
  const int ones[] = {1, 1};
  MPI_Datatype absolute;
  MPI_Type_create_hindexed(2, ones, where, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  CHECK(MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(two[0] == 11);
  CHECK(two[1] == 22);
  MPI_Type_free(&absolute);
}

}  // namespace
}  // namespace gccl::test
