// Agreement messages as bytes.
#include "libgccl/fault/agreement.hpp"

namespace gccl::fault {
namespace {

using fault::read;  // also those of parts

bool read(BytesIn& in, Call* call) {
  *call = Call(in.u8());
  return in.ok() && *call >= Call::agree && *call <= Call::grow;
}

bool read(BytesIn& in, Contribution* c) {
  if (!read(in, &c->call)) return false;
  c->flags = in.u64();
  return read(in, &c->acknowledged) && read(in, &c->joiners);
}

bool read(BytesIn& in, Decision* d) {
  if (!read(in, &d->call)) return false;
  const std::uint8_t bits = in.u8();
  d->mixed = bits & 1;
  d->acknowledged = bits & 2;
  d->flags = in.u64();
  return bits < 4 && read(in, &d->failed) && read(in, &d->joiners);
}

}  // namespace

void write(BytesOut& out, const AgreementMessage& m) {
  out.u8(std::uint8_t(m.kind)).u32(m.ballot.round).u32(m.ballot.rank);
  out.u8(std::uint8_t((m.contribution ? 1 : 0) | (m.decision ? 2 : 0)));
  if (m.contribution) {
    out.u8(std::uint8_t(m.contribution->call)).u64(m.contribution->flags);
    write(out, m.contribution->acknowledged);
    write(out, m.contribution->joiners);
  }
  if (m.decision) {
    out.u32(m.accepted.round).u32(m.accepted.rank);
    out.u8(std::uint8_t(m.decision->call));
    out.u8(std::uint8_t((m.decision->mixed ? 1 : 0) | (m.decision->acknowledged ? 2 : 0)));
    out.u64(m.decision->flags);
    write(out, m.decision->failed);
    write(out, m.decision->joiners);
  }
}

bool read(BytesIn& in, AgreementMessage* m) {
  using Kind = AgreementMessage::Kind;
  m->kind = Kind(in.u8());
  m->ballot.round = in.u32();
  m->ballot.rank = in.u32();
  const std::uint8_t has = in.u8();
  if (!in.ok() || m->kind < Kind::prepare || m->kind > Kind::last || has > 3) return false;
  if ((has & 1) && !read(in, &m->contribution.emplace())) return false;
  if (has & 2) {
    m->accepted.round = in.u32();
    m->accepted.rank = in.u32();
    if (!read(in, &m->decision.emplace())) return false;
  }
  // What each kind cannot do without.
  if (m->kind == Kind::promise) return m->contribution.has_value();
  return m->decision.has_value() || (m->kind != Kind::propose && m->kind != Kind::decide);
}

}  // namespace gccl::fault
