// Carries out MPI's operations on elements that GCCL moves but does not understand.
#pragma once

#include <memory>
#include <vector>

#include "pmpi/stats.hpp"
#include "pmpi/translate/datatype.hpp"

namespace gccl::pmpi {

// One operation on one type, as GCCL_Op_create wants it: combining is MPI_Reduce_local, in the MPI library that the
// program runs on.
class Combiner {
 public:
  // Elements side by side in memory, or packed where the type is not dense.
  Combiner(MPI_Op op, MPI_Datatype type, const Shape& shape, bool packed);
  ~Combiner();
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  // inout[i] = in[i] (op) inout[i], MPI's order.
  void combine(const void* in, void* inout, std::size_t count);
  // GCCL's handle for it; lives as long as this. -1 when GCCL has none to give.
  GCCL_Op handle();

 private:
  void combine_packed(const std::byte* in, std::byte* inout, std::size_t count);

  MPI_Op op_;
  MPI_Datatype type_;
  Shape shape_;
  bool packed_;
  GCCL_Op handle_ = -1;
  std::vector<std::byte> memory_;  // room for unpacked elements of both operands
};

// How a reduction of `op` on `type` is to be done.
struct Combination {
  enum class Way : std::uint8_t {
    arithmetic,  // by GCCL itself
    in_memory,   // by a Combiner, on elements as they lie in memory: dense ones
    packed,      // by a Combiner, on packed elements: those with gaps, which nobody else may touch
    in_order     // does not commute: all inputs are gathered, and combined in the order of the ranks
  };
  Way way = Way::arithmetic;
  GCCL_Dtype dtype = GCCL_UINT8;  // arithmetic
  GCCL_Op op = GCCL_SUM;          // arithmetic
  std::size_t parts = 1;          // elements of dtype in one of MPI's
  Shape shape;
  std::size_t element_bytes = 0;  // what a Combiner's element has
};
// `op` and `type` are not null handles.
Reason combination(MPI_Op op, MPI_Datatype type, Combination* out);

// GCCL's type for opaque elements of `bytes` bytes, at most kElementBytesMax. -1 when GCCL has none to give. Any
// thread.
GCCL_Dtype opaque_type(std::size_t bytes);
inline constexpr std::size_t kElementBytesMax = 65536;

}  // namespace gccl::pmpi
