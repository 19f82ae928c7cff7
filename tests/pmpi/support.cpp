#include "tests/pmpi/support.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/support/wide.hpp"

namespace gccl::test {
namespace {

std::vector<GCCL_PMPI_Count> stats() {
  const auto look = reinterpret_cast<GCCL_PMPI_stats_function>(dlsym(RTLD_DEFAULT, "GCCL_PMPI_stats"));
  std::vector<GCCL_PMPI_Count> counts(look ? std::size_t(look(nullptr, 0)) : 0);
  if (look) look(counts.data(), int(counts.size()));
  return counts;
}

Comm comm_of(std::string name, MPI_Comm comm) {
  Comm c{std::move(name), comm, 0, 1};
  if (comm == MPI_COMM_NULL) return c;
  MPI_Comm_rank(comm, &c.rank);
  MPI_Comm_size(comm, &c.size);
  return c;
}

}  // namespace

std::vector<Comm> make_comms() {
  std::vector<Comm> comms;
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm made;
  comms.push_back(comm_of("world", MPI_COMM_WORLD));
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  comms.push_back(comm_of("dup", made));
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
  comms.push_back(comm_of("halves", made));
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &made);
  comms.push_back(comm_of("reversed", made));
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 7, rank, &made);
  comms.push_back(comm_of("all but one", made));
  comms.push_back(comm_of("self", MPI_COMM_SELF));
  for (const Comm& c : comms)
    if (c.comm != MPI_COMM_NULL) MPI_Barrier(c.comm);
  return comms;
}

void free_comms(std::vector<Comm>& comms) {
  for (Comm& c : comms)
    if (c.comm != MPI_COMM_WORLD && c.comm != MPI_COMM_SELF && c.comm != MPI_COMM_NULL) MPI_Comm_free(&c.comm);
  comms.clear();
}

std::vector<Type> make_types() {
  std::vector<Type> types = {{"int", MPI_INT, 1, MPI_INT},
                             {"double", MPI_DOUBLE, 1, MPI_DOUBLE},
                             {"short_int", MPI_SHORT_INT, 1, MPI_SHORT_INT}};
  MPI_Datatype t, u;
  MPI_Type_contiguous(3, MPI_INT, &t);
  types.push_back({"contiguous", t, 3, MPI_INT});
  MPI_Type_dup(MPI_DOUBLE, &t);
  types.push_back({"duplicate", t, 1, MPI_DOUBLE});
  MPI_Type_vector(3, 2, 4, MPI_SHORT, &t);
  types.push_back({"vector", t, 6, MPI_SHORT});
  const int swapped[] = {1, 0}, ones[] = {1, 1};
  MPI_Type_indexed(2, ones, swapped, MPI_INT, &t);
  types.push_back({"dense but swapped", t, 2, MPI_INT});
  const MPI_Aint places[] = {1, 8};
  const MPI_Datatype parts[] = {MPI_CHAR, MPI_CHAR};
  MPI_Type_create_struct(2, ones, places, parts, &u);
  MPI_Type_create_resized(u, -4, 24, &t);
  MPI_Type_free(&u);
  types.push_back({"struct with gaps", t, 2, MPI_CHAR});
  MPI_Type_create_resized(MPI_INT, -8, 4, &t);
  types.push_back({"lower bound before", t, 1, MPI_INT});
  MPI_Type_create_hvector(3, 1, -12, MPI_INT, &t);
  types.push_back({"backwards", t, 3, MPI_INT});
  const int far[] = {5};
  MPI_Type_create_indexed_block(1, 2, far, MPI_INT, &u);
  MPI_Type_create_resized(u, 0, 8, &t);
  MPI_Type_free(&u);
  types.push_back({"begins later", t, 2, MPI_INT});
  MPI_Type_create_f90_integer(9, &u);  // predefined, so it may not be freed
  MPI_Type_contiguous(2, u, &t);
  types.push_back({"contiguous, of one of f90", t, 2, MPI_INT});
  MPI_Type_contiguous(0, MPI_INT, &t);
  types.push_back({"empty", t, 0, MPI_INT});
  for (Type& type : types) MPI_Type_commit(&type.type);
  return types;
}

void free_types(std::vector<Type>& types) {
  for (Type& t : types) {
    int i, a, d, combiner;
    MPI_Type_get_envelope(t.type, &i, &a, &d, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&t.type);
  }
  types.clear();
}

void Memory::copy_from(const Memory& other, std::size_t bytes) {
  std::copy_n(other.bytes_.data() + origin_, bytes, bytes_.data() + origin_);
}

void Memory::unpack_from(Memory& other, int count, MPI_Datatype type) {
  if (count == 0) return;
  int bytes = 0, packed = 0, unpacked = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  MPI_Pack(other.at(), count, type, data.data(), bytes, &packed, MPI_COMM_SELF);
  MPI_Unpack(data.data(), packed, &unpacked, at(), count, type, MPI_COMM_SELF);
}

Memory::Memory(MPI_Datatype type, std::int64_t count, Random& random) {
  MPI_Aint lb, extent, true_lb, true_extent;
  MPI_Type_get_extent(type, &lb, &extent);
  MPI_Type_get_true_extent(type, &true_lb, &true_extent);
  constexpr MPI_Aint kGuard = 64;
  const MPI_Aint before = (true_lb < 0 ? -true_lb : 0) + kGuard;
  const MPI_Aint origin = (before + 15) / 16 * 16;
  const MPI_Aint behind = (count > 0 ? (count - 1) * extent + true_lb + true_extent : 0);
  bytes_.resize(std::size_t(origin + (behind > 0 ? behind : 0) + kGuard));
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t eight = random.next();
    std::memcpy(&bytes_[at], &eight, std::min(sizeof eight, bytes_.size() - at));
  }
  origin_ = std::size_t(origin);
}

int complete(MPI_Comm comm, int way, std::vector<MPI_Request>& requests) {
  int rank, size, faults = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int n = int(requests.size());
  const auto expect = [&faults](bool held) { faults += !held; };
  switch (way % kWays) {
    case 0:
      for (MPI_Request& r : requests) expect(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      break;
    case 1:
      for (MPI_Request& r : requests)
        for (int flag = 0; !flag;) expect(MPI_Test(&r, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      break;
    case 2: expect(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS); break;
    case 3:
      for (int flag = 0; !flag;) expect(MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      break;
    case 4:
      for (int left = n; left > 0; --left) {
        int index = -1;
        MPI_Status status;
        expect(MPI_Waitany(n, requests.data(), &index, &status) == MPI_SUCCESS);
        expect(index >= 0 && index < n && requests[std::size_t(index)] == MPI_REQUEST_NULL);
      }
      break;
    case 5:
      for (int left = n; left > 0;) {
        int flag = 0, index = -1;
        expect(MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        left -= flag;
      }
      break;
    case 6:
    case 7:
      for (int left = n; left > 0;) {
        int done = 0;
        std::vector<int> indices(static_cast<std::size_t>(n));
        const auto some = way % kWays == 6 ? MPI_Waitsome : MPI_Testsome;
        expect(some(n, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        left -= done;
      }
      break;
    case 8: {
      // Among messages around the ring.
      int out = rank, in = -1;
      MPI_Request receive, send;
      MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 77, comm, &receive);
      MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 77, comm, &send);
      requests.insert(requests.begin(), receive);
      requests.push_back(send);
      for (int flag = 0; !flag;) expect(MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      expect(MPI_Waitall(n + 2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      expect(in == (rank + size - 1) % size);
      break;
    }
  }
  for (const MPI_Request& r : requests) expect(r == MPI_REQUEST_NULL);
  return faults;
}

bool chosen(std::uint64_t draw, int size) {
  static const bool all = wide();
  return all || size <= 4 || (draw >> 32) % (size <= 5 ? 3 : 6) == 0;
}

std::uint64_t calls_left_to_mpi(std::string* which) {
  std::uint64_t n = 0;
  for (const GCCL_PMPI_Count& c : stats())
    if (c.reason) {
      n += c.calls;
      *which += std::string(c.function) + ": " + c.reason + "; ";
    }
  return n;
}

std::uint64_t calls_answered() {
  std::uint64_t n = 0;
  for (const GCCL_PMPI_Count& c : stats())
    if (!c.reason) n += c.calls;
  return n;
}

std::uint64_t calls_left_to_mpi_because(const std::string& reason) {
  std::uint64_t n = 0;
  for (const GCCL_PMPI_Count& c : stats())
    if (c.reason && c.reason == reason) n += c.calls;
  return n;
}

}  // namespace gccl::test
