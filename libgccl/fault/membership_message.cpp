// Membership messages as bytes.
#include "libgccl/fault/membership.hpp"

namespace gccl::fault {

std::vector<std::byte> MembershipMessage::encoded() const {
  BytesOut out;
  out.u8(std::uint8_t(kind)).u32(epoch).u32(instance).u8(revoked);
  write(out, failures);
  if (kind == Kind::agreement) write(out, agreement);
  if (kind == Kind::join) out.u64(life);
  if (kind == Kind::welcome) write(out, members);
  return out.take();
}

std::optional<MembershipMessage> MembershipMessage::decoded(std::span<const std::byte> bytes) {
  BytesIn in(bytes);
  MembershipMessage m;
  m.kind = Kind(in.u8());
  m.epoch = in.u32();
  m.instance = in.u32();
  const std::uint8_t revoked = in.u8();
  m.revoked = revoked;
  if (!read(in, &m.failures) || m.kind < Kind::agreement || m.kind > Kind::last || revoked > 1) return {};
  if (m.kind == Kind::agreement && !read(in, &m.agreement)) return {};
  if (m.kind == Kind::join) m.life = in.u64();
  if (m.kind == Kind::welcome && !read(in, &m.members)) return {};
  if (!in.ok() || !in.rest().empty()) return {};
  return m;
}

}  // namespace gccl::fault
