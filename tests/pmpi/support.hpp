// What the tests of the MPI drop-in share. They run under mpirun with the drop-in preloaded: MPI_* is answered by GCCL,
// PMPI_* by MPI itself, which is the oracle. Every rank runs the same cases in the same order, and no failure skips a
// call, so that ranks never wait for one that gave up.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "pmpi/gccl_pmpi.h"

namespace gccl::test {

inline constexpr std::uint64_t kSeed = 20261121;

// Another stream for each number; the same on every rank unless the rank is mixed in.
class Random : splitmix::Generator {
 public:
  explicit Random(std::uint64_t stream) : Generator(kSeed * splitmix::kGolden + stream) {}
  using Generator::next;
  int below(int n) { return int(Generator::below(std::uint64_t(n))); }
};

struct Comm {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
};
// World, a duplicate, halves, the reverse, all but one (null on rank 0), self; connected by a barrier on each, so that
// GCCL answers their non-blocking calls. Freed by free_comms.
std::vector<Comm> make_comms();
void free_comms(std::vector<Comm>& comms);

struct Type {
  std::string name;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int parts = 1;  // how many of `base` have its signature
  MPI_Datatype base = MPI_DATATYPE_NULL;
};
// Predefined ones, and derived ones with gaps, out of order, beginning before or behind their address. Committed; freed
// by free_types.
std::vector<Type> make_types();
void free_types(std::vector<Type>& types);

// Memory for `count` elements of a type, with guards around it; its bytes are random.
class Memory {
 public:
  Memory(MPI_Datatype type, std::int64_t count, Random& random);
  void* at() { return bytes_.data() + origin_; }
  // The first `bytes` bytes at at() become those of `other`, of the same type and count.
  void copy_from(const Memory& other, std::size_t bytes);
  // The data of `count` elements become those of `other`, of the same type; the type's gaps stay.
  void unpack_from(Memory& other, int count, MPI_Datatype type);
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t origin_;
};

// Starts a non-blocking call and completes it, in one of many ways; or makes a blocking one.
enum class Form { blocking, nonblocking };
using Start = std::function<int(MPI_Request*)>;
// Waits in the `way`-th way, alone or among point-to-point requests. Returns the number of faults that it saw.
int complete(MPI_Comm comm, int way, std::vector<MPI_Request>& requests);
inline constexpr int kWays = 9;

// What a call in flight has written so far. Where its request was freed, MPI has no other way to see that it is over,
// so nothing orders this after what the drop-in's thread writes: the thread sanitizer must not expect it.
[[gnu::noinline, gnu::no_sanitize_thread]] inline int so_far(const volatile int& result) { return result; }

inline int error_class(int code) {
  int c = -1;
  MPI_Error_class(code, &c);
  return c;
}

// A duplicate of the world whose errors are returned.
struct Returning {
  int rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_NULL;
  Returning() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);  // connects it
  }
  Returning(const Returning&) = delete;
  ~Returning() { MPI_Comm_free(&comm); }
};

// Whether a case of a full product is run: all of them on up to 4 ranks and where wide(), else those that a
// third of the draws choose, on more than 5 ranks a sixth. The same on every rank when the draw is.
bool chosen(std::uint64_t draw, int size);

// Calls that MPI itself had to answer, and why; *which names them.
std::uint64_t calls_left_to_mpi(std::string* which);
std::uint64_t calls_answered();
// How often MPI answered for this reason.
std::uint64_t calls_left_to_mpi_because(const std::string& reason);
inline const char kNotYetConnected[] = "non-blocking, before the first blocking collective";
inline const char kNotOurs[] = "non-blocking, with an operation that GCCL does not compute";

}  // namespace gccl::test
