// MPI's data types as GCCL sees them: bytes side by side, or something that must be packed first.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gccl/gccl.h"

namespace gccl::pmpi {

struct Shape {
  std::size_t size = 0;      // bytes of data in one element
  MPI_Aint extent = 0;       // from one element to the next
  MPI_Aint true_lb = 0;      // where the data begin
  MPI_Aint true_extent = 0;  // from the first byte of data to behind the last one
  // Elements side by side in memory are their data, in the order of the type map. Where this is false, packing still
  // gives the right bytes.
  bool dense = false;
  // The data of each element are that, but elements may lie apart.
  bool one_piece = false;
};

// The operations that MPI defines, in the order of kOperations.
enum class Operation : std::uint8_t { sum, prod, max, min, land, lor, lxor, band, bor, bxor, maxloc, minloc, count };

struct Predefined {
  Shape shape;
  // Where GCCL's own sum, product, maximum and minimum apply: to `parts` elements of `dtype` each.
  GCCL_Dtype dtype = -1;
  std::uint8_t parts = 0;     // 0: GCCL does not know the type; 2: a complex number, sums only
  std::uint16_t defined = 0;  // bit i: MPI defines Operation(i) on this type
  bool defines(Operation operation) const { return defined >> int(operation) & 1; }
};

// Learns the predefined types, once; MPI must be running. The others of this file come later.
void learn_predefined_types();
// Null for a derived type, and for those that MPI_Type_create_f90_real and its relatives give.
const Predefined* predefined(MPI_Datatype type);
// What operations see: for those the type of C's that is like it. Null for a derived type.
const Predefined* basic(MPI_Datatype type);
// False for an operation of the user's own, or one without a meaning for collectives.
bool predefined(MPI_Op op, Operation* operation);

// No type, nor what a program's memory of zeros makes of one.
inline bool is_no_type(MPI_Datatype type) { return type == MPI_DATATYPE_NULL || type == MPI_Datatype(); }
Shape shape_of(MPI_Datatype type);
// MPI allows no others in calls. It has no function that says so, but its checks of arguments do, where there are any.
bool committed(MPI_Datatype type);

// The data of `count` elements at `from`, count * shape.size bytes, side by side in the order of the type map; and
// back. Both return an MPI error code.
int pack(const void* from, std::size_t count, MPI_Datatype type, const Shape& shape, std::byte* to);
int unpack(const std::byte* from, void* to, std::size_t count, MPI_Datatype type, const Shape& shape);

// A type like another one, for as long as this lives. No duplicate: that would copy the program's attributes, whose
// functions would notice.
class OwnType {
 public:
  explicit OwnType(MPI_Datatype like);
  ~OwnType();
  OwnType(OwnType&& other) noexcept : like_(other.like_), type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  OwnType& operator=(OwnType&&) = delete;
  MPI_Datatype get() const { return type_; }
  MPI_Datatype like() const { return like_; }

 private:
  MPI_Datatype like_, type_ = MPI_DATATYPE_NULL;
};

// The address `elements` elements behind `base`, which may be MPI_BOTTOM.
inline std::byte* displaced(const void* base, std::int64_t elements, MPI_Aint extent) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(base) + std::intptr_t(elements) * extent);
}

// Ours alone, on this process alone; returns errors instead of raising them.
MPI_Comm own_self();

}  // namespace gccl::pmpi
