#include "libgccl/communicator/descriptor.hpp"

#include <fmt/core.h>

#include <iterator>

#include "libgccl/elements/elements.hpp"

namespace gccl {
namespace {

// Signature, from the top: kind 4 bits, dtype 6, op 5, sequence 13, root 4, count 32.
constexpr unsigned kDtypeOwn = 63, kDtypePurpose = 62, kOpNone = 31, kOpOwn = 30;
// A collective's user-defined type of 1 to 447 bytes: dtype 34 to 61, which no type has, and the upper 4 bits of op
// hold the bytes, and its lowest bit whether there is an operation, as that is user-defined, too. kDtypeOwn: larger
// ones, and those of messages, whose lengths are said with them.
constexpr unsigned kDtypeSized = 34, kSizesPerDtype = 16;
constexpr unsigned kSizedMax = (kDtypePurpose - kDtypeSized) * kSizesPerDtype - 1;
constexpr unsigned kSequenceBits = 13;
// A report of links before a call: the call's signature with this kind; its own kind takes the upper bits of sequence.
constexpr std::uint8_t kReportKind = 13;
constexpr unsigned kReportSequenceBits = 9;
constexpr std::uint32_t kSequenceMask = (1u << kSequenceBits) - 1,
                        kReportSequenceMask = (1u << kReportSequenceBits) - 1;
static_assert(std::size(kDefinitions) <= kReportKind && kReportKind < kSendKind);

// Of a call as its descriptor says it is, and of a report before that.
bool describes_call(Purpose p) { return p == Purpose::itself || p == Purpose::links; }

bool reports(std::uint64_t signature) { return signature >> 60 == kReportKind; }
std::uint8_t kind_in(std::uint64_t signature) {
  return std::uint8_t(reports(signature) ? signature >> (36 + kReportSequenceBits) & 15 : signature >> 60);
}
std::uint32_t sequence_mask(std::uint64_t signature) {
  return reports(signature) ? kReportSequenceMask : kSequenceMask;
}

std::uint64_t dtype_bits(GCCL_Dtype d) {
  return d < 32 ? std::uint64_t(d) : d < 130 ? std::uint64_t(d - 100 + 32) : kDtypeOwn;
}
unsigned dtype_field(std::uint64_t signature) { return unsigned(signature >> 54 & 63); }
unsigned op_field(std::uint64_t signature) { return unsigned(signature >> 49 & 31); }
bool sized(std::uint64_t signature) {
  return dtype_field(signature) >= kDtypeSized && dtype_field(signature) < kDtypePurpose;
}
GCCL_Dtype dtype_of(std::uint64_t signature) {
  const unsigned d = dtype_field(signature);
  return d == kDtypeOwn || sized(signature) ? kUserDefined : GCCL_Dtype(d < 32 ? d : d - 32 + 100);
}
// Of a user-defined type; 0: not said.
std::uint32_t bytes_of_element(std::uint64_t signature) {
  if (!sized(signature)) return 0;
  return (dtype_field(signature) - kDtypeSized) * kSizesPerDtype + op_field(signature) / 2;
}
GCCL_Op op_of(std::uint64_t signature) {
  const unsigned o = op_field(signature);
  if (sized(signature)) return o % 2 ? GCCL_Op(kUserDefined) : kNoOp;
  return o == kOpNone ? kNoOp : o == kOpOwn ? GCCL_Op(kUserDefined) : GCCL_Op(o);
}
std::uint64_t op_bits(GCCL_Op op) { return op < 0 ? kOpNone : op < 30 ? std::uint64_t(op) : kOpOwn; }
std::uint64_t fold(Count c) { return (c ^ c >> 32) & 0xffffffffu; }

Collective collective_of(std::uint8_t kind) { return Collective(kind); }
// Signatures come from other processes, and so do kinds of no collective.
bool known(std::uint8_t kind) { return kind < collective_names().size(); }
bool lengths(std::uint8_t kind) { return known(kind) && has_counts(collective_of(kind)); }
bool rooted(std::uint8_t kind) { return known(kind) && has_root(collective_of(kind)); }

std::string words(std::uint8_t kind, Purpose purpose, std::uint32_t sequence, Count count, const std::string& dtype,
                  const std::string& op, const std::string& root) {
  static constexpr const char* kPurposes[] = {
      "",           "Comm_split",        "Comm_create",        "Comm_free", "Finalize or Comm_free",
      "GCCL_CHECK", "the end of a call", "Comm_set_on_failure"};
  if (!describes_call(purpose))
    return fmt::format("{} (collective #{})",
                       std::size_t(purpose) < std::size(kPurposes) ? kPurposes[std::size_t(purpose)] : "a call",
                       sequence);
  std::string s(kind_name(kind));
  if (kind < kSendKind) s += fmt::format(" #{}", sequence);
  if (collective_of(kind) != Collective::barrier) {
    s += lengths(kind) ? fmt::format(" of {}", dtype) : fmt::format(" of {} x {}", count, dtype);
    if (!op.empty()) s += fmt::format(", {}", op);
    s += root;
  }
  return purpose == Purpose::links ? s + " (first a report of links, for GCCL_LINK_SLOW)" : s;
}

// The fields dtype and op.
std::uint64_t type_bits(const Descriptor& d) {
  if (!describes_call(d.purpose)) return std::uint64_t(kDtypePurpose) << 54 | std::uint64_t(d.purpose) << 49;
  if (!d.point_to_point() && user_defined(d.dtype) && d.element_bytes <= kSizedMax && d.element_bytes > 0) {
    const std::uint64_t op = std::uint64_t(d.element_bytes % kSizesPerDtype) * 2 + (d.op >= 0);
    return std::uint64_t(kDtypeSized + d.element_bytes / kSizesPerDtype) << 54 | op << 49;
  }
  return dtype_bits(d.dtype) << 54 | op_bits(d.op) << 49;
}

std::uint64_t mixed(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0xbf58476d1ce4e5b9;
  return h ^ h >> 31;
}

}  // namespace

std::string_view kind_name(std::uint8_t kind) {
  if (kind == kSendKind) return "send";
  if (kind == kRecvKind) return "recv";
  return known(kind) ? name(collective_of(kind)) : "unknown call";
}

std::string dtype_text(GCCL_Dtype d, std::uint32_t element_bytes) {
  if (user_defined(d))
    return element_bytes ? fmt::format("user-defined type ({} bytes)", element_bytes) : "user-defined type";
  for (const Dtype t : dtypes())
    if (GCCL_Dtype(t) == d) return std::string(name(t));
  return fmt::format("unknown type {}", d);
}

std::string op_text(GCCL_Op op) {
  if (op < 0) return "";
  if (op <= GCCL_AVG) return std::string(name(Reduction(op)));
  return user_defined(op) ? "user-defined operation" : fmt::format("unknown operation {}", op);
}

std::uint64_t Descriptor::signature() const {
  // Both sides of a message of a point-to-point call must have the same.
  const bool p2p = point_to_point();
  const bool report = purpose == Purpose::links;
  const std::uint64_t k = p2p ? kSendKind : report ? kReportKind : kind;
  const std::uint32_t number =
      report ? std::uint32_t(kind) << kReportSequenceBits | (sequence & kReportSequenceMask) : sequence & kSequenceMask;
  return k << 60 | type_bits(*this) | (p2p ? 0 : std::uint64_t(number) << 36 | std::uint64_t(root & 0xf) << 32) |
         fold(count);
}

std::uint64_t Descriptor::digest() const {
  const std::uint64_t type =
      !user_defined(dtype) ? std::uint64_t(dtype) : std::uint64_t(element_bytes) << 32 | kUserDefined;
  const std::uint64_t operation = op < 0 ? 0 : !user_defined(op) ? std::uint64_t(op) + 1 : kUserDefined;
  return mixed(mixed(mixed(mixed(std::uint64_t(kind) << 8 | std::uint64_t(purpose), type), operation), root), count);
}

std::string Descriptor::text() const {
  std::string where;
  if (point_to_point()) {
    where = fmt::format(" {} rank {}", kind == kSendKind ? "to" : "from", root);
  } else if (rooted(kind)) {
    where = fmt::format(", root {}", root);
  }
  return words(kind, purpose, sequence, count, dtype_text(dtype, element_bytes), op_text(op), where);
}

Descriptor Descriptor::of(std::uint64_t signature, std::uint32_t sequence, Rank root, Count count,
                          std::uint32_t element_bytes) {
  Descriptor d;
  d.kind = kind_in(signature);
  d.purpose = purpose_of(signature);
  const bool called = describes_call(d.purpose);
  d.dtype = called ? dtype_of(signature) : 0;
  d.op = called ? op_of(signature) : kNoOp;
  d.root = root;
  d.count = count;
  d.sequence = sequence;
  d.element_bytes = element_bytes;
  return d;
}

Purpose Descriptor::purpose_of(std::uint64_t signature) {
  if (reports(signature)) return Purpose::links;
  return dtype_field(signature) == kDtypePurpose ? Purpose(op_field(signature)) : Purpose::itself;
}

std::int32_t Descriptor::calls_ahead(std::uint64_t signature, std::uint32_t sequence) {
  const std::uint32_t mask = sequence_mask(signature), ahead = (std::uint32_t(signature >> 36) - sequence) & mask;
  return ahead > mask / 2 ? std::int32_t(ahead) - std::int32_t(mask) - 1 : std::int32_t(ahead);
}

std::uint32_t Descriptor::sequence_in(std::uint64_t signature) {
  return std::uint32_t(signature >> 36) & sequence_mask(signature);
}

bool Descriptor::same_sequence(std::uint64_t a, std::uint64_t b) {
  return ((a ^ b) >> 36 & sequence_mask(a) & sequence_mask(b)) == 0;
}

std::string text_of_signature(std::uint64_t s, const Near& near) {
  const std::uint8_t kind = kind_in(s);
  const std::uint32_t ahead = std::uint32_t(Descriptor::calls_ahead(s, near.sequence));
  const std::string root =
      rooted(kind) ? fmt::format(", root {}{}", s >> 32 & 0xf, near.ranks > 16 ? " (modulo 16)" : "") : "";
  return words(kind, Descriptor::purpose_of(s), near.sequence + ahead, s & 0xffffffffu,
               dtype_text(dtype_of(s), bytes_of_element(s)), op_text(op_of(s)), root);
}

std::string text_of_signature(std::uint64_t s, std::uint32_t sequence, Rank root, Count count,
                              std::uint32_t element_bytes) {
  const std::uint8_t kind = kind_in(s);
  return words(kind, Descriptor::purpose_of(s), sequence, count, dtype_text(dtype_of(s), element_bytes),
               op_text(op_of(s)), rooted(kind) ? fmt::format(", root {}", root) : "");
}

}  // namespace gccl
