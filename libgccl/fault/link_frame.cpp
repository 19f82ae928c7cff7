#include "libgccl/fault/link_frame.hpp"

#include <bit>
#include <cstring>

#include "libgccl/base/crc32c.hpp"

namespace gccl::fault {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as the processor keeps numbers");

struct LinkHeaderWire {
  std::uint16_t magic;
  std::uint8_t version, kind_and_flags;
  std::uint32_t epoch;
  std::uint64_t sequence, acknowledged, credit, message_bytes, signature, offset;
  std::uint32_t bytes, payload_crc;
  std::uint32_t unused;  // zero
  std::uint32_t header_crc;
};
static_assert(sizeof(LinkHeaderWire) == kLinkHeaderBytes);

constexpr std::uint16_t kLinkMagic = 0x4c67;  // "gL"
constexpr std::uint8_t kLinkVersion = 1;
constexpr std::uint8_t kKindBits = 0x0f, kAnswerBit = 0x10, kCheckedBit = 0x20;

std::uint32_t header_crc(const std::byte* header) { return crc32c({header, kLinkHeaderBytes - sizeof(std::uint32_t)}); }

}  // namespace

void encode(const LinkFrame& f, std::byte* header) {
  LinkHeaderWire w{};
  w.magic = kLinkMagic;
  w.version = kLinkVersion;
  w.kind_and_flags = std::uint8_t(std::uint8_t(f.kind) | (f.answer ? kAnswerBit : 0) | (f.checked ? kCheckedBit : 0));
  w.epoch = f.epoch;
  w.sequence = f.sequence, w.acknowledged = f.acknowledged, w.credit = f.credit;
  w.message_bytes = f.message_bytes, w.signature = f.signature, w.offset = f.offset;
  w.bytes = f.bytes, w.payload_crc = f.payload_crc;
  std::memcpy(header, &w, sizeof w);
  w.header_crc = header_crc(header);
  std::memcpy(header, &w, sizeof w);
}

const char* decode(const std::byte* header, LinkFrame* f) {
  LinkHeaderWire w;
  std::memcpy(&w, header, sizeof w);
  if (w.magic != kLinkMagic) return "not a frame of this protocol";
  if (w.version != kLinkVersion) return "a frame of another protocol version";
  if (w.header_crc != header_crc(header)) return "a frame whose header is damaged";
  const std::uint8_t kind = w.kind_and_flags & kKindBits;
  if (kind < std::uint8_t(LinkFrame::Kind::data) || kind > std::uint8_t(LinkFrame::Kind::resume) ||
      (w.kind_and_flags & ~(kKindBits | kAnswerBit | kCheckedBit)) != 0 || w.unused != 0)
    return "a frame of an unknown kind";
  f->kind = LinkFrame::Kind(kind);
  f->answer = w.kind_and_flags & kAnswerBit;
  f->checked = w.kind_and_flags & kCheckedBit;
  f->epoch = w.epoch;
  f->sequence = w.sequence, f->acknowledged = w.acknowledged, f->credit = w.credit;
  f->message_bytes = w.message_bytes, f->signature = w.signature, f->offset = w.offset;
  f->bytes = w.bytes, f->payload_crc = w.payload_crc;
  if (f->kind != LinkFrame::Kind::data) return f->bytes == 0 ? nullptr : "a frame whose kind has no payload, with one";
  if (f->message_bytes > kLinkMessageBytesMax) return "a frame of an impossibly long message";
  if (f->bytes > kLinkPayloadBytesMax) return "an impossibly long frame";
  if (f->offset > f->message_bytes || f->bytes > f->message_bytes - f->offset)
    return "a frame that reaches beyond its message";
  if (f->bytes == 0 && f->message_bytes != 0) return "a frame without payload";
  return nullptr;
}

bool intact(const LinkFrame& f, std::span<const std::byte> payload) {
  return !f.checked || crc32c(payload) == f.payload_crc;
}

}  // namespace gccl::fault
