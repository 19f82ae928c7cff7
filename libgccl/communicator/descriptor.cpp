#include "libgccl/communicator/descriptor.hpp"

#include "libgccl/runtime/reduction.hpp"

namespace gccl {
namespace {

// Signature, from the top: kind 4 bits, dtype 6, op 5, sequence 13, root 4, count 32.
constexpr unsigned kDtypeOwn = 63, kOpNone = 31, kOpOwn = 30;

std::uint64_t dtype_bits(GCCL_Dtype d) {
  return d < 32 ? std::uint64_t(d) : d < 130 ? std::uint64_t(d - 100 + 32) : kDtypeOwn;
}
std::uint64_t op_bits(GCCL_Op op) { return op < 0 ? kOpNone : op < 30 ? std::uint64_t(op) : kOpOwn; }
std::uint64_t fold(Count c) { return (c ^ c >> 32) & 0xffffffffu; }

std::string words(std::uint8_t kind, std::uint64_t sequence, const std::string& sequence_suffix, Count count,
                  const std::string& dtype, const std::string& op, std::string root) {
  std::string s(kind_name(kind));
  if (kind < kSendKind) s += " #" + std::to_string(sequence) + sequence_suffix;
  if (Collective(kind) == Collective::barrier) return s;
  const bool lengths = Collective(kind) == Collective::alltoallv || Collective(kind) == Collective::allgatherv ||
                       Collective(kind) == Collective::reduce_scatterv;
  s += lengths ? " of " + dtype : " of " + std::to_string(count) + " x " + dtype;
  if (!op.empty()) s += ", " + op;
  return s + root;
}

}  // namespace

std::string_view kind_name(std::uint8_t kind) {
  return kind == kSendKind ? "send" : kind == kRecvKind ? "recv" : name(Collective(kind));
}

std::string dtype_text(GCCL_Dtype d) {
  if (d >= 1000) return "type " + std::to_string(d);
  for (const Dtype t : dtypes())
    if (GCCL_Dtype(t) == d) return std::string(name(t));
  return "unknown type " + std::to_string(d);
}

std::string op_text(GCCL_Op op) {
  if (op < 0) return "";
  if (op <= GCCL_AVG) return std::string(name(Reduction(op)));
  return op >= 1000 ? "operation " + std::to_string(op) : "unknown operation " + std::to_string(op);
}

std::uint64_t Descriptor::signature() const {
  // Both sides of a message of a point-to-point call must have the same.
  const bool p2p = point_to_point();
  const std::uint64_t k = p2p ? kSendKind : kind;
  return k << 60 | dtype_bits(dtype) << 54 | op_bits(op) << 49 | (p2p ? 0 : std::uint64_t(sequence & 0x1fff) << 36) |
         (p2p ? 0 : std::uint64_t(root & 0xf) << 32) | fold(count);
}

std::string Descriptor::text() const {
  std::string where;
  if (point_to_point()) {
    where = (kind == kSendKind ? " to rank " : " from rank ") + std::to_string(root);
  } else if (has_root(Collective(kind))) {
    where = ", root " + std::to_string(root);
  }
  return words(kind, sequence, "", count, dtype_text(dtype), op_text(op), where);
}

std::string text_of_signature(std::uint64_t s) {
  const auto kind = std::uint8_t(s >> 60);
  const unsigned d = unsigned(s >> 54 & 63), o = unsigned(s >> 49 & 31);
  const std::string dtype = d == kDtypeOwn ? "a type of its own" : dtype_text(GCCL_Dtype(d < 32 ? d : d - 32 + 100));
  const std::string op = o == kOpNone ? "" : o == kOpOwn ? "an operation of its own" : op_text(GCCL_Op(o));
  const std::string root =
      kind < kSendKind && has_root(Collective(kind)) ? ", root " + std::to_string(s >> 32 & 0xf) + " (modulo 16)" : "";
  return words(kind, s >> 36 & 0x1fff, " (modulo 8192)", s & 0xffffffffu, dtype, op, root);
}

}  // namespace gccl
