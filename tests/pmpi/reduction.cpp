// Collectives that reduce, against MPI's own: every predefined operation on every type that MPI defines it on, and
// operations of the program's.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "tests/pmpi/support.hpp"

namespace gccl::test {
namespace {

struct Value {
  const char* name;
  MPI_Datatype type;
  // Writes an element that every operation can take without rounding or overflow: r is random.
  void (*make)(void* at, std::uint64_t r);
};

template <class T>
void small(void* at, std::uint64_t r) {
  const T value = T(1 + r % 2);
  std::memcpy(at, &value, sizeof value);
}
template <class T>
void truth(void* at, std::uint64_t r) {
  const T value = T(r % 2);
  std::memcpy(at, &value, sizeof value);
}
template <class T>
void two(void* at, std::uint64_t r) {
  const T value[2] = {T(r % 3), T(r / 3 % 100)};
  std::memcpy(at, value, sizeof value);
}
// Multiples of 1+2i: products of eight are exact in a float, and have no zero, whose sign would depend on the order.
template <class T>
void complex(void* at, std::uint64_t r) {
  const T c = T(1 + r % 2), value[2] = {c, 2 * c};
  std::memcpy(at, value, sizeof value);
}
template <class T>
void long_double(void* at, std::uint64_t r) {
  T value = T(1 + r % 2);
  std::memset(at, 0, sizeof value);
  std::memcpy(at, &value, 10);  // the rest is padding, which nobody promises to move
}
// The gaps, between the two or behind them, keep what is there.
template <class T>
void pair(void* at, std::uint64_t r) {
  struct Pair {
    T value;
    int index;
  };
  const T value = T(r % 3);
  const int index = int(r / 3 % 100);
  std::memset(at, 0, sizeof value);
  std::memcpy(at, &value, std::is_same_v<T, long double> ? 10 : sizeof value);
  std::memcpy(static_cast<char*>(at) + offsetof(Pair, index), &index, sizeof index);
}

const Value kValues[] = {{"signed char", MPI_SIGNED_CHAR, small<signed char>},
                         {"unsigned char", MPI_UNSIGNED_CHAR, small<unsigned char>},
                         {"char", MPI_CHAR, small<char>},
                         {"short", MPI_SHORT, small<short>},
                         {"unsigned short", MPI_UNSIGNED_SHORT, small<unsigned short>},
                         {"int", MPI_INT, small<int>},
                         {"unsigned", MPI_UNSIGNED, small<unsigned>},
                         {"long", MPI_LONG, small<long>},
                         {"unsigned long", MPI_UNSIGNED_LONG, small<unsigned long>},
                         {"long long", MPI_LONG_LONG, small<long long>},
                         {"unsigned long long", MPI_UNSIGNED_LONG_LONG, small<unsigned long long>},
                         {"int8_t", MPI_INT8_T, small<std::int8_t>},
                         {"uint16_t", MPI_UINT16_T, small<std::uint16_t>},
                         {"int32_t", MPI_INT32_T, small<std::int32_t>},
                         {"uint64_t", MPI_UINT64_T, small<std::uint64_t>},
                         {"aint", MPI_AINT, small<MPI_Aint>},
                         {"offset", MPI_OFFSET, small<MPI_Offset>},
                         {"count", MPI_COUNT, small<MPI_Count>},
                         {"float", MPI_FLOAT, small<float>},
                         {"double", MPI_DOUBLE, small<double>},
                         {"long double", MPI_LONG_DOUBLE, long_double<long double>},
                         {"byte", MPI_BYTE, small<unsigned char>},
                         {"bool", MPI_C_BOOL, truth<bool>},
                         {"C++ bool", MPI_CXX_BOOL, truth<bool>},
                         {"float complex", MPI_C_FLOAT_COMPLEX, complex<float>},
                         {"double complex", MPI_C_DOUBLE_COMPLEX, complex<double>},
                         {"C++ double complex", MPI_CXX_DOUBLE_COMPLEX, complex<double>},
                         {"float, int", MPI_FLOAT_INT, pair<float>},
                         {"double, int", MPI_DOUBLE_INT, pair<double>},
                         {"long, int", MPI_LONG_INT, pair<long>},
                         {"int, int", MPI_2INT, two<int>},
                         {"short, int", MPI_SHORT_INT, pair<short>},
                         {"long double, int", MPI_LONG_DOUBLE_INT, pair<long double>},
                         {"INTEGER", MPI_INTEGER, small<int>},
                         {"REAL", MPI_REAL, small<float>},
                         {"DOUBLE PRECISION", MPI_DOUBLE_PRECISION, small<double>},
                         {"LOGICAL", MPI_LOGICAL, truth<int>},
#ifdef MPI_LOGICAL1
                         {"LOGICAL*1", MPI_LOGICAL1, truth<std::int8_t>},
                         {"LOGICAL*2", MPI_LOGICAL2, truth<std::int16_t>},
                         {"LOGICAL*4", MPI_LOGICAL4, truth<std::int32_t>},
                         {"LOGICAL*8", MPI_LOGICAL8, truth<std::int64_t>},
#endif
                         {"COMPLEX", MPI_COMPLEX, complex<float>}};

struct Operation {
  const char* name;
  MPI_Op op;
};
const Operation kOperations[] = {{"sum", MPI_SUM},   {"prod", MPI_PROD},     {"max", MPI_MAX},
                                 {"min", MPI_MIN},   {"land", MPI_LAND},     {"lor", MPI_LOR},
                                 {"lxor", MPI_LXOR}, {"band", MPI_BAND},     {"bor", MPI_BOR},
                                 {"bxor", MPI_BXOR}, {"maxloc", MPI_MAXLOC}, {"minloc", MPI_MINLOC}};

bool defined(MPI_Op op, MPI_Datatype type) {
  char in[64] = {}, inout[64] = {};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool yes = PMPI_Reduce_local(in, inout, 0, type, op) == MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return yes;
}

enum class Kind { allreduce, reduce, reduce_scatter_block, reduce_scatter };
constexpr Kind kKinds[] = {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block, Kind::reduce_scatter};

struct Reduction {
  Kind kind;
  MPI_Comm comm;
  int rank, size, count, root;
  MPI_Datatype type;
  MPI_Op op;
  std::vector<int> counts;

  std::int64_t inputs() const {
    std::int64_t total = 0;
    for (const int c : counts) total += c;
    return kind == Kind::reduce_scatter         ? total
           : kind == Kind::reduce_scatter_block ? std::int64_t(count) * size
                                                : count;
  }
  int results() const {
    if (kind == Kind::reduce) return rank == root ? count : 0;
    return kind == Kind::reduce_scatter ? counts[std::size_t(rank)] : count;
  }
  int call(const void* send, void* recv) const {
    switch (kind) {
      case Kind::allreduce: return MPI_Allreduce(send, recv, count, type, op, comm);
      case Kind::reduce: return MPI_Reduce(send, recv, count, type, op, root, comm);
      case Kind::reduce_scatter_block: return MPI_Reduce_scatter_block(send, recv, count, type, op, comm);
      case Kind::reduce_scatter: return MPI_Reduce_scatter(send, recv, counts.data(), type, op, comm);
    }
    return MPI_ERR_OTHER;
  }
  int start(const void* send, void* recv, MPI_Request* r) const {
    switch (kind) {
      case Kind::allreduce: return MPI_Iallreduce(send, recv, count, type, op, comm, r);
      case Kind::reduce: return MPI_Ireduce(send, recv, count, type, op, root, comm, r);
      case Kind::reduce_scatter_block: return MPI_Ireduce_scatter_block(send, recv, count, type, op, comm, r);
      case Kind::reduce_scatter: return MPI_Ireduce_scatter(send, recv, counts.data(), type, op, comm, r);
    }
    return MPI_ERR_OTHER;
  }
  int oracle(const void* send, void* recv) const {
    switch (kind) {
      case Kind::allreduce: return PMPI_Allreduce(send, recv, count, type, op, comm);
      case Kind::reduce: return PMPI_Reduce(send, recv, count, type, op, root, comm);
      case Kind::reduce_scatter_block: return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
      case Kind::reduce_scatter: return PMPI_Reduce_scatter(send, recv, counts.data(), type, op, comm);
    }
    return MPI_ERR_OTHER;
  }
};

Reduction reduction(Kind kind, const Comm& c, MPI_Datatype type, MPI_Op op, int count, int root) {
  Reduction r{kind, c.comm, c.rank, c.size, count, root, type, op, {}};
  if (kind == Kind::reduce_scatter)
    for (int i = 0; i < c.size; ++i) r.counts.push_back((i + 1) % 3 * count);
  return r;
}

std::vector<char> packed(const void* at, int count, MPI_Datatype type) {
  int bytes = 0, position = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
  std::vector<char> out(std::size_t(bytes) + 1);
  if (count > 0) MPI_Pack(at, count, type, out.data(), bytes, &position, MPI_COMM_SELF);
  out.resize(std::size_t(position));
  return out;
}

// `make` fills an element in.
template <class Make>
void compare(const Reduction& r, const std::string& what, Make&& make, bool in_place, Form form, std::uint64_t stream) {
  if (r.comm == MPI_COMM_NULL) return;
  MPI_Aint lb, extent;
  MPI_Type_get_extent(r.type, &lb, &extent);
  const std::int64_t inputs = r.inputs();
  Random random(stream * 1000 + std::uint64_t(r.rank));
  Memory send(r.type, inputs, random), mine(r.type, inputs, random), theirs(r.type, inputs, random);
  for (std::int64_t i = 0; i < inputs; ++i) {
    const std::uint64_t value = random.next();
    for (Memory* m : {&send, &mine, &theirs}) make(static_cast<char*>(m->at()) + i * extent, value);
  }
  Memory expected = mine;
  const bool here = in_place && (r.kind != Kind::reduce || r.rank == r.root);
  const void* const from = here ? MPI_IN_PLACE : send.at();
  int faults = 0;
  if (form == Form::blocking) {
    faults += r.call(from, mine.at()) != MPI_SUCCESS;
  } else {
    std::vector<MPI_Request> requests(1);
    faults += r.start(from, mine.at(), requests.data()) != MPI_SUCCESS;
    faults += complete(r.comm, int(stream), requests);
  }
  faults += r.oracle(from, theirs.at()) != MPI_SUCCESS;
  INFO("kind " << int(r.kind) << ", " << what << ", count " << r.count << " on " << r.size << ", rank " << r.rank
               << ", root " << r.root << std::string(in_place ? ", in place" : "")
               << std::string(form == Form::blocking ? "" : ", non-blocking") << ", stream " << stream);
  CHECK(faults == 0);
  CHECK(packed(mine.at(), r.results(), r.type) == packed(theirs.at(), r.results(), r.type));
  // What lies behind the result is as it was, also where it was input, and so are the gaps of a type. Open MPI's
  // non-blocking functions overwrite those.
  if (form == Form::blocking)
    expected.unpack_from(mine, r.results(), r.type);
  else
    expected.copy_from(mine, std::size_t(r.results()) * std::size_t(extent));
  CHECK(mine == expected);
}

std::vector<Value> values() {
  std::vector<Value> all(std::begin(kValues), std::end(kValues));
  Value f90{"f90 real", MPI_DATATYPE_NULL, small<float>};
  MPI_Type_create_f90_real(6, 37, &f90.type);
  all.push_back(f90);
  MPI_Type_create_f90_real(15, 307, &f90.type);
  f90.make = small<double>;
  all.push_back(f90);
  MPI_Type_create_f90_complex(15, 307, &f90.type);
  all.push_back({"f90 complex", f90.type, complex<double>});
  MPI_Type_create_f90_integer(9, &f90.type);
  all.push_back({"f90 integer", f90.type, small<int>});
  return all;
}

TEST_CASE("every predefined operation on every type that MPI defines it on") {
  auto comms = make_comms();
  std::uint64_t stream = 300000;
  const std::string undefined = "operation not defined on this type";
  const std::uint64_t undefined_before = calls_left_to_mpi_because(undefined);
  for (const Value& v : values())
    for (const Operation& o : kOperations) {
      if (v.type == MPI_DATATYPE_NULL || !defined(o.op, v.type)) continue;
      for (const Kind kind : kKinds) {
        const Comm& c = comms[std::size_t(stream) % 3];
        const int count = int(stream % 5) * 3;
        const auto r = reduction(kind, c, v.type, o.op, count, int(stream) % c.size);
        compare(r, std::string(v.name) + " " + o.name, v.make, stream % 3 == 0,
                stream % 2 ? Form::blocking : Form::nonblocking, stream);
        ++stream;
      }
    }
  CHECK(calls_left_to_mpi_because(undefined) == undefined_before);
  free_comms(comms);
}

TEST_CASE("a pair's data end where its second part does, be it at the end of the program's memory") {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(mprotect(static_cast<char*>(memory) + page, page, PROT_NONE) == 0);
  struct Case {
    MPI_Datatype type;
    void (*make)(void* at, std::uint64_t r);
  };
  for (const auto& [type, make] : {Case{MPI_DOUBLE_INT, pair<double>}, Case{MPI_LONG_INT, pair<long>},
                                   Case{MPI_SHORT_INT, pair<short>}, Case{MPI_LONG_DOUBLE_INT, pair<long double>}}) {
    MPI_Aint true_lb, true_extent;
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    void* const last = static_cast<char*>(memory) + page - (true_lb + true_extent);
    alignas(16) char mine[32] = {}, best[32] = {};
    make(mine, std::uint64_t(rank));
    std::memcpy(last, mine, std::size_t(true_extent));
    MPI_Allreduce(last, best, 1, type, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Allreduce(mine, last, 1, type, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(packed(last, 1, type) == packed(best, 1, type));
    MPI_Allreduce(MPI_IN_PLACE, last, 1, type, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : last, last, 1, type, MPI_MAXLOC, 0, MPI_COMM_WORLD);
    CHECK(packed(last, 1, type) == packed(best, 1, type));
  }
  munmap(memory, 2 * page);
}

TEST_CASE("sums on every communicator, of every length; GCCL answers all of them") {
  auto comms = make_comms();
  std::uint64_t stream = 400000;
  std::string which;
  const std::uint64_t left_before = calls_left_to_mpi(&which);
  for (const Comm& c : comms)
    for (const Kind kind : kKinds)
      for (const int count : {0, 1, 2, 5, 16, 1000, 70000})
        for (const bool in_place : {false, true})
          for (const Form form : {Form::blocking, Form::nonblocking}) {
            // Long blocks for each rank once; elsewhere the whole is as long.
            const bool blocks = kind == Kind::reduce_scatter_block || kind == Kind::reduce_scatter;
            const bool whole = count > 1000 && blocks && (&c != &comms[0] || in_place || form != Form::blocking);
            compare(reduction(kind, c, MPI_INT, MPI_SUM, whole ? count / c.size : count, c.size - 1), "int sum",
                    small<int>, in_place, form, stream);
            ++stream;
          }
  CHECK(calls_left_to_mpi(&which) == left_before);
  free_comms(comms);
}

// ---- The program's own ----

// 2 x 2 matrices of integers modulo a prime: associative, and does not commute.
void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  for (int k = 0; k < *count; ++k) {
    int a[4], b[4], c[4];
    std::memcpy(a, static_cast<char*>(in) + k * extent, sizeof a);
    std::memcpy(b, static_cast<char*>(inout) + k * extent, sizeof b);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) c[2 * i + j] = (a[2 * i] * b[j] + a[2 * i + 1] * b[2 + j]) % 10007;
    std::memcpy(static_cast<char*>(inout) + k * extent, c, sizeof c);
  }
}

// Integers at bytes 4 and 12 of an element: the first sums, of the second the larger.
void sum_and_larger(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  for (int k = 0; k < *count; ++k) {
    int a[2], b[2];
    char* const to = static_cast<char*>(inout) + k * extent;
    std::memcpy(&a[0], static_cast<char*>(in) + k * extent + 4, 4);
    std::memcpy(&a[1], static_cast<char*>(in) + k * extent + 12, 4);
    std::memcpy(&b[0], to + 4, 4);
    std::memcpy(&b[1], to + 12, 4);
    b[0] += a[0];
    b[1] = std::max(a[1], b[1]);
    std::memcpy(to + 4, &b[0], 4);
    std::memcpy(to + 12, &b[1], 4);
  }
}

void four_ints(void* at, std::uint64_t r) {
  const int v[4] = {int(r % 100), int(r / 100 % 100), int(r / 10000 % 100), int(r / 1000000 % 100)};
  std::memcpy(at, v, sizeof v);
}
void two_ints_apart(void* at, std::uint64_t r) {
  const int v[2] = {int(r % 100), int(r / 100 % 100)};
  std::memcpy(static_cast<char*>(at) + 4, &v[0], 4);
  std::memcpy(static_cast<char*>(at) + 12, &v[1], 4);
}

TEST_CASE("the program's own operations get elements where a type whose data begin behind its address may lie") {
  static int misplaced = 0;
  const auto look = [](void* in, void* inout, int*, MPI_Datatype*) {
    for (void* const p : {in, inout}) misplaced += reinterpret_cast<std::uintptr_t>(p) % 16 != 0;
  };
  const int ones[] = {1, 1};
  const MPI_Aint places[] = {4, 8};
  const MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype inner, type;
  MPI_Op op;
  MPI_Type_create_struct(2, ones, places, parts, &inner);
  MPI_Type_create_resized(inner, 0, 16, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(look, 1, &op);
  alignas(16) std::array<std::byte, 64 * 16> in{}, out{};
  MPI_Allreduce(in.data(), out.data(), 64, type, op, MPI_COMM_WORLD);
  CHECK(misplaced == 0);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  MPI_Type_free(&inner);
}

TEST_CASE("operations of the program's own, with and without order, on dense types and on types with gaps") {
  auto comms = make_comms();
  MPI_Datatype matrix, gaps, inner;
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  const int ones[] = {1, 1};
  const MPI_Aint places[] = {4, 12};
  const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
  MPI_Type_create_struct(2, ones, places, ints, &inner);
  MPI_Type_create_resized(inner, -4, 28, &gaps);
  MPI_Type_commit(&matrix);
  MPI_Type_commit(&gaps);
  std::uint64_t stream = 500000;
  for (const Comm& c : comms)
    for (const Kind kind : kKinds)
      for (const int count : {0, 1, 4, 300})
        for (const bool in_place : {false, true})
          for (const Form form : {Form::blocking, Form::nonblocking}) {
            MPI_Op ordered, on_gaps;
            MPI_Op_create(multiply, 0, &ordered);
            MPI_Op_create(sum_and_larger, 1, &on_gaps);
            compare(reduction(kind, c, matrix, ordered, count, int(stream) % c.size), "matrices", four_ints, in_place,
                    form, stream);
            // Open MPI's own non-blocking reductions of such a type read and write beyond the memory that they have.
            if (form == Form::blocking || !std::getenv("GCCL_TEST_SANITIZED"))
              compare(reduction(kind, c, gaps, on_gaps, count, int(stream) % c.size), "gaps", two_ints_apart, in_place,
                      form, stream);
            MPI_Op_free(&ordered);
            MPI_Op_free(&on_gaps);
            ++stream;
          }
  MPI_Type_free(&matrix);
  MPI_Type_free(&gaps);
  MPI_Type_free(&inner);
  free_comms(comms);
}

}  // namespace
}  // namespace gccl::test
