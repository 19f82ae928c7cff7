#include "pmpi/translate/combiner.hpp"

#include <algorithm>
#include <climits>
#include <mutex>
#include <unordered_map>

namespace gccl::pmpi {
namespace {

constexpr std::size_t kUnpackedBytes = 64 * 1024;  // at once: both operands stay in the second-level cache

bool arithmetic(Operation operation, const Predefined& p, Combination* out) {
  switch (operation) {
    case Operation::sum: out->op = GCCL_SUM; break;
    case Operation::prod: out->op = GCCL_PROD; break;
    case Operation::max: out->op = GCCL_MAX; break;
    case Operation::min: out->op = GCCL_MIN; break;
    default: return false;
  }
  if (p.parts == 0 || !p.shape.dense || (p.parts == 2 && operation != Operation::sum)) return false;
  out->dtype = p.dtype;
  out->parts = p.parts;
  return true;
}

}  // namespace

Combiner::Combiner(MPI_Op op, MPI_Datatype type, const Shape& shape, bool packed)
    : op_(op), type_(type), shape_(shape), packed_(packed) {}

Combiner::~Combiner() {
  if (handle_ >= 0) GCCL_Op_free(&handle_);
}

GCCL_Op Combiner::handle() {
  const GCCL_Op_function function = [](const void* in, void* inout, std::size_t count, GCCL_Dtype, void* context) {
    static_cast<Combiner*>(context)->combine(in, inout, count);
  };
  if (handle_ < 0 && GCCL_Op_create(function, this, &handle_) != GCCL_SUCCESS) handle_ = -1;
  return handle_;
}

void Combiner::combine(const void* in, void* inout, std::size_t count) {
  if (packed_) return combine_packed(static_cast<const std::byte*>(in), static_cast<std::byte*>(inout), count);
  // The data begin true_lb behind the address that MPI wants.
  for (std::size_t done = 0; done < count; done += INT_MAX) {
    const std::size_t n = std::min<std::size_t>(count - done, INT_MAX);
    PMPI_Reduce_local(displaced(displaced(in, -1, shape_.true_lb), std::int64_t(done), shape_.extent),
                      displaced(displaced(inout, -1, shape_.true_lb), std::int64_t(done), shape_.extent), int(n), type_,
                      op_);
  }
}

void Combiner::combine_packed(const std::byte* in, std::byte* inout, std::size_t count) {
  // Elements may lie in front of one another and begin before their address: `lowest` is where the first byte is.
  const std::size_t stride = std::size_t(shape_.extent < 0 ? -shape_.extent : shape_.extent);
  const std::size_t each = std::max<std::size_t>({stride, std::size_t(shape_.true_extent), 1});
  const std::size_t at_once = std::min(count, std::max<std::size_t>(1, kUnpackedBytes / each));
  const std::size_t span = (at_once - 1) * stride + std::size_t(shape_.true_extent);
  const std::size_t room = (span + 63) / 64 * 64 + 64;
  if (memory_.size() < 2 * room + 64) memory_.resize(2 * room + 64);
  std::byte* const base = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
  for (std::size_t done = 0; done < count; done += at_once) {
    const std::size_t n = std::min(at_once, count - done);
    const MPI_Aint lowest = shape_.true_lb + (shape_.extent < 0 ? MPI_Aint(n - 1) * shape_.extent : 0);
    // The elements' addresses are multiples of 64, as user's operations may need; the first byte is not always there.
    const std::byte* const first = base + (lowest % 64 + 64) % 64;
    std::byte* const a = displaced(first, -1, lowest);
    std::byte* const b = displaced(first + room, -1, lowest);
    unpack(in + done * shape_.size, a, n, type_, shape_);
    unpack(inout + done * shape_.size, b, n, type_, shape_);
    PMPI_Reduce_local(a, b, int(n), type_, op_);
    pack(b, n, type_, shape_, inout + done * shape_.size);
  }
}

Reason combination(MPI_Op op, MPI_Datatype type, Combination* out) {
  const Predefined* const p = basic(type);
  Operation operation;
  int commutes = 1;
  out->shape = p ? p->shape : shape_of(type);
  out->element_bytes = out->shape.size;
  if (predefined(op, &operation)) {
    if (!p || !p->defines(operation)) return Reason::operation;
    if (arithmetic(operation, *p, out)) return Reason::none;
  } else {
    if (op == MPI_REPLACE || op == MPI_NO_OP) return Reason::operation;
    PMPI_Op_commutative(op, &commutes);
  }
  // A pair's gap is the program's, like that of a derived type: the operation neither reads nor writes it.
  out->way = !commutes          ? Combination::Way::in_order
             : out->shape.dense ? Combination::Way::in_memory
                                : Combination::Way::packed;
  if (commutes && out->element_bytes > kElementBytesMax) return Reason::element_too_large;
  return Reason::none;
}

GCCL_Dtype opaque_type(std::size_t bytes) {
  static std::mutex mutex;
  static auto* const types = new std::unordered_map<std::size_t, GCCL_Dtype>;
  std::lock_guard lock(mutex);
  const auto known = types->find(bytes);
  if (known != types->end()) return known->second;
  GCCL_Dtype type = -1;
  if (GCCL_Type_create(bytes, &type) != GCCL_SUCCESS) return -1;
  types->emplace(bytes, type);
  return type;
}

}  // namespace gccl::pmpi
