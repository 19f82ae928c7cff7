#include "pmpi/translate/datatype.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <type_traits>
#include <vector>

#include "libgccl/base/splitmix.hpp"

namespace gccl::pmpi {
namespace {

enum class Kind : std::uint8_t { signed_integer, unsigned_integer, floating, complex, other };

// What GCCL's arithmetic can take over. MPI itself is asked which operations it defines on which type.
struct Known {
  MPI_Datatype type;
  Kind kind;
};
std::vector<Known> known_types() {
  using enum Kind;
  return {{MPI_SIGNED_CHAR, signed_integer},
          {MPI_SHORT, signed_integer},
          {MPI_INT, signed_integer},
          {MPI_LONG, signed_integer},
          {MPI_LONG_LONG, signed_integer},
          {MPI_INT8_T, signed_integer},
          {MPI_INT16_T, signed_integer},
          {MPI_INT32_T, signed_integer},
          {MPI_INT64_T, signed_integer},
          {MPI_UNSIGNED_CHAR, unsigned_integer},
          {MPI_UNSIGNED_SHORT, unsigned_integer},
          {MPI_UNSIGNED, unsigned_integer},
          {MPI_UNSIGNED_LONG, unsigned_integer},
          {MPI_UNSIGNED_LONG_LONG, unsigned_integer},
          {MPI_UINT8_T, unsigned_integer},
          {MPI_UINT16_T, unsigned_integer},
          {MPI_UINT32_T, unsigned_integer},
          {MPI_UINT64_T, unsigned_integer},
          {MPI_AINT, signed_integer},
          {MPI_OFFSET, signed_integer},
          {MPI_COUNT, signed_integer},
          {MPI_FLOAT, floating},
          {MPI_DOUBLE, floating},
          {MPI_LONG_DOUBLE, other},
          {MPI_C_FLOAT_COMPLEX, complex},
          {MPI_C_DOUBLE_COMPLEX, complex},
          {MPI_C_LONG_DOUBLE_COMPLEX, other},
          {MPI_CXX_FLOAT_COMPLEX, complex},
          {MPI_CXX_DOUBLE_COMPLEX, complex},
          {MPI_CXX_LONG_DOUBLE_COMPLEX, other},
          {MPI_CHAR, other},
          {MPI_WCHAR, other},
          {MPI_BYTE, other},
          {MPI_PACKED, other},
          {MPI_C_BOOL, other},
          {MPI_CXX_BOOL, other},
          {MPI_FLOAT_INT, other},
          {MPI_DOUBLE_INT, other},
          {MPI_LONG_INT, other},
          {MPI_2INT, other},
          {MPI_SHORT_INT, other},
          {MPI_LONG_DOUBLE_INT, other},
          // Fortran's
          {MPI_CHARACTER, other},
          {MPI_LOGICAL, other},
#ifdef MPI_LOGICAL1
          {MPI_LOGICAL1, other},
          {MPI_LOGICAL2, other},
          {MPI_LOGICAL4, other},
          {MPI_LOGICAL8, other},
#endif
          {MPI_INTEGER, signed_integer},
          {MPI_INTEGER1, signed_integer},
          {MPI_INTEGER2, signed_integer},
          {MPI_INTEGER4, signed_integer},
          {MPI_INTEGER8, signed_integer},
          {MPI_REAL, floating},
          {MPI_REAL4, floating},
          {MPI_REAL8, floating},
          {MPI_REAL16, other},
          {MPI_DOUBLE_PRECISION, floating},
          {MPI_COMPLEX, complex},
          {MPI_COMPLEX8, complex},
          {MPI_COMPLEX16, complex},
          {MPI_COMPLEX32, other},
          {MPI_DOUBLE_COMPLEX, complex},
          {MPI_2REAL, other},
          {MPI_2DOUBLE_PRECISION, other},
          {MPI_2INTEGER, other}};
}

GCCL_Dtype dtype_of(Kind kind, std::size_t size) {
  switch (kind) {
    case Kind::signed_integer:
      return size == 1 ? GCCL_INT8 : size == 2 ? GCCL_INT16 : size == 4 ? GCCL_INT32 : size == 8 ? GCCL_INT64 : -1;
    case Kind::unsigned_integer:
      return size == 1 ? GCCL_UINT8 : size == 2 ? GCCL_UINT16 : size == 4 ? GCCL_UINT32 : size == 8 ? GCCL_UINT64 : -1;
    case Kind::floating: return size == 4 ? GCCL_FLOAT32 : size == 8 ? GCCL_FLOAT64 : -1;
    case Kind::complex: return size == 8 ? GCCL_FLOAT32 : size == 16 ? GCCL_FLOAT64 : -1;
    case Kind::other: break;
  }
  return -1;
}

std::array<MPI_Op, std::size_t(Operation::count)> operations() {
  return {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
          MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
}

// Handle -> type, by open addressing: a look-up is on the way of every call.
constexpr std::size_t kSlots = 256;
struct Slot {
  bool used = false;
  MPI_Datatype type{};
  Predefined what;
};
std::array<Slot, kSlots> table;
std::array<MPI_Op, std::size_t(Operation::count)> operation_table;
MPI_Comm self = MPI_COMM_NULL;

std::size_t slot_of(MPI_Datatype type) {
  std::uint64_t key = 0;
  std::memcpy(&key, &type, sizeof type);
  return std::size_t(key * splitmix::kGolden >> 56) % kSlots;
}

// Predefined ones, those of MPI_Type_create_f90_real and its relatives too: nobody may free them.
bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

int combiner_of(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner;
}

// Only types that lay their parts out one behind the other can be dense; a look at what others mean costs more than
// packing does.
bool in_order(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (is_predefined(combiner)) return true;
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_RESIZED)
    return false;
  int integer[1];
  MPI_Aint address[2];
  MPI_Datatype inner;
  PMPI_Type_get_contents(type, integers, addresses, types, integer, address, &inner);
  const bool answer = shape_of(inner).dense;
  if (!is_predefined(combiner_of(inner))) PMPI_Type_free(&inner);
  return answer;
}

Shape measure(MPI_Datatype type) {
  Shape s;
  MPI_Count size = 0;
  MPI_Aint lb = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent(type, &lb, &s.extent);
  PMPI_Type_get_true_extent(type, &s.true_lb, &s.true_extent);
  s.size = size > 0 ? std::size_t(size) : 0;
  s.one_piece = s.true_extent == MPI_Aint(s.size) && in_order(type);
  s.dense = s.one_piece && s.extent == s.true_extent;
  return s;
}

// `count` pieces of `bytes` bytes, the strides from one to the next. MPI_Pack takes longer: with it, an all-reduce of
// 1000 pairs of a double and an int took 20 us, without 7.
void copy_pieces(const std::byte* from, MPI_Aint from_stride, std::byte* to, MPI_Aint to_stride, std::size_t bytes,
                 std::size_t count) {
  const auto copy = [=](auto length) {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(to + MPI_Aint(i) * to_stride, from + MPI_Aint(i) * from_stride, length);
  };
  bytes == 12 ? copy(std::integral_constant<std::size_t, 12>()) : copy(bytes);
}

// Whether MPI_Pack cannot do it: it counts bytes in an int, and MPICH's refuses MPI_BOTTOM. A message to ourselves can.
bool beyond_pack(const void* at, std::size_t bytes) { return bytes > INT_MAX || at == MPI_BOTTOM; }

// One thread at a time: its message must not be another one's.
int message_to_self(const void* from, int n, MPI_Datatype type, void* to, int m, MPI_Datatype as) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return PMPI_Sendrecv(from, n, type, 0, 1, to, m, as, 0, 1, self, MPI_STATUS_IGNORE);
}

// `count` bytes as one element, however many.
MPI_Datatype bytes_type(std::size_t count) {
  constexpr std::size_t kPiece = std::size_t(1) << 30;
  MPI_Datatype piece, type;
  PMPI_Type_contiguous(int(kPiece), MPI_BYTE, &piece);
  const int lengths[] = {int(count / kPiece), int(count % kPiece)};
  const MPI_Aint places[] = {0, MPI_Aint(count - count % kPiece)};
  const MPI_Datatype parts[] = {piece, MPI_BYTE};
  PMPI_Type_create_struct(2, lengths, places, parts, &type);
  PMPI_Type_commit(&type);
  PMPI_Type_free(&piece);
  return type;
}

}  // namespace

void learn_predefined_types() {
  PMPI_Comm_dup(MPI_COMM_SELF, &self);
  PMPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
  operation_table = operations();
  // Asking about operations that are not defined is an error on MPI_COMM_WORLD.
  MPI_Errhandler before;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (const Known& k : known_types()) {
    MPI_Count size = 0;
    if (k.type == MPI_DATATYPE_NULL || predefined(k.type) || PMPI_Type_size_x(k.type, &size) != MPI_SUCCESS ||
        size <= 0)
      continue;
    Predefined p{.shape = measure(k.type)};
    p.dtype = dtype_of(k.kind, p.shape.size);
    p.parts = p.dtype < 0 ? 0 : k.kind == Kind::complex ? 2 : 1;
    for (int i = 0; i < int(Operation::count); ++i) {
      alignas(32) char in[64]{}, inout[64]{};
      if (PMPI_Reduce_local(in, inout, 0, k.type, operation_table[std::size_t(i)]) == MPI_SUCCESS)
        p.defined = std::uint16_t(p.defined | 1 << i);
    }
    std::size_t slot = slot_of(k.type);
    while (table[slot].used) slot = (slot + 1) % kSlots;
    table[slot] = {true, k.type, p};
  }
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  PMPI_Errhandler_free(&before);
}

const Predefined* predefined(MPI_Datatype type) {
  for (std::size_t slot = slot_of(type); table[slot].used; slot = (slot + 1) % kSlots)
    if (table[slot].type == type) return &table[slot].what;
  return nullptr;
}

const Predefined* basic(MPI_Datatype type) {
  if (const Predefined* const p = predefined(type)) return p;
  int size = 0;
  PMPI_Type_size(type, &size);
  const auto of = [size](std::initializer_list<MPI_Datatype> all) -> const Predefined* {
    for (const MPI_Datatype t : all)
      if (const Predefined* const p = predefined(t); p && p->shape.size == std::size_t(size)) return p;
    return nullptr;
  };
  switch (combiner_of(type)) {
    case MPI_COMBINER_F90_REAL: return of({MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE});
    case MPI_COMBINER_F90_COMPLEX: return of({MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX});
    case MPI_COMBINER_F90_INTEGER: return of({MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T});
    default: return nullptr;
  }
}

bool predefined(MPI_Op op, Operation* operation) {
  for (std::size_t i = 0; i < operation_table.size(); ++i)
    if (operation_table[i] == op) {
      *operation = Operation(i);
      return true;
    }
  return false;
}

Shape shape_of(MPI_Datatype type) {
  const Predefined* const p = predefined(type);
  return p ? p->shape : measure(type);
}

bool committed(MPI_Datatype type) {
  return predefined(type) || PMPI_Send(nullptr, 0, type, MPI_PROC_NULL, 0, self) == MPI_SUCCESS;
}

int pack(const void* from, std::size_t count, MPI_Datatype type, const Shape& s, std::byte* to) {
  if (s.size == 0 || count == 0) return MPI_SUCCESS;
  if (s.dense) {
    std::memcpy(to, displaced(from, 1, s.true_lb), count * s.size);
    return MPI_SUCCESS;
  }
  if (s.one_piece) {
    copy_pieces(displaced(from, 1, s.true_lb), s.extent, to, MPI_Aint(s.size), s.size, count);
    return MPI_SUCCESS;
  }
  const std::size_t at_once = s.size > INT_MAX ? 1 : std::min<std::size_t>(INT_MAX / s.size, count);
  for (std::size_t done = 0; done < count; done += at_once) {
    const std::size_t n = std::min(at_once, count - done);
    void* const at = displaced(from, std::int64_t(done), s.extent);
    int code, position = 0;
    if (beyond_pack(at, n * s.size)) {
      MPI_Datatype all = bytes_type(n * s.size);
      code = message_to_self(at, int(n), type, to + done * s.size, 1, all);
      PMPI_Type_free(&all);
    } else {
      code = PMPI_Pack(at, int(n), type, to + done * s.size, int(n * s.size), &position, self);
    }
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int unpack(const std::byte* from, void* to, std::size_t count, MPI_Datatype type, const Shape& s) {
  if (s.size == 0 || count == 0) return MPI_SUCCESS;
  if (s.dense) {
    std::memcpy(displaced(to, 1, s.true_lb), from, count * s.size);
    return MPI_SUCCESS;
  }
  if (s.one_piece) {
    copy_pieces(from, MPI_Aint(s.size), displaced(to, 1, s.true_lb), s.extent, s.size, count);
    return MPI_SUCCESS;
  }
  const std::size_t at_once = s.size > INT_MAX ? 1 : std::min<std::size_t>(INT_MAX / s.size, count);
  for (std::size_t done = 0; done < count; done += at_once) {
    const std::size_t n = std::min(at_once, count - done);
    void* const at = displaced(to, std::int64_t(done), s.extent);
    int code, position = 0;
    if (beyond_pack(at, n * s.size)) {
      MPI_Datatype all = bytes_type(n * s.size);
      code = message_to_self(from + done * s.size, 1, all, at, int(n), type);
      PMPI_Type_free(&all);
    } else {
      code = PMPI_Unpack(from + done * s.size, int(n * s.size), &position, at, int(n), type, self);
    }
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

OwnType::OwnType(MPI_Datatype like) : like_(like) {
  PMPI_Type_contiguous(1, like, &type_);
  PMPI_Type_commit(&type_);
}
OwnType::~OwnType() {
  if (type_ != MPI_DATATYPE_NULL) PMPI_Type_free(&type_);
}

MPI_Comm own_self() { return self; }

}  // namespace gccl::pmpi
