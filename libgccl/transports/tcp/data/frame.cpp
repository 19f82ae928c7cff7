#include "libgccl/transports/tcp/data/frame.hpp"

#include <bit>
#include <cstring>

#include "libgccl/base/crc32c.hpp"

namespace gccl::tcp {
namespace {

// magic 1, version 1, flags 1, bytes 5, sequence 4, payload_crc 4, message_bytes 6, offset 6, header_crc 4, signature
// 8, acknowledged 8; little endian.
constexpr std::uint8_t kMagic = 0x67;  // "g"
constexpr std::uint8_t kVersion = 3;
constexpr std::uint8_t kAcknowledgeBit = 1, kAnswerBit = 2, kControlBit = 4;
constexpr std::size_t kHeaderCrcAt = 28;
constexpr std::uint64_t kLow48 = (std::uint64_t(1) << 48) - 1, kLow40 = (std::uint64_t(1) << 40) - 1;
static_assert(std::endian::native == std::endian::little, "frames are written as the processor keeps numbers");

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of all but itself.
std::uint32_t header_crc(const std::byte* header) {
  const std::uint32_t first = crc32c({header, kHeaderCrcAt});
  constexpr std::size_t kRest = kHeaderCrcAt + sizeof(std::uint32_t);
  return crc32c({header + kRest, kFrameHeaderBytes - kRest}, first);
}

}  // namespace

const char* const kDamagedHeader = "a header damaged on its way (wrong checksum)";

void encode(const Frame& frame, std::byte* header, bool checked) {
  const std::uint64_t flags =
      frame.acknowledge * kAcknowledgeBit | frame.answer * kAnswerBit | frame.control * kControlBit;
  put(header, kMagic | std::uint64_t(kVersion) << 8 | flags << 16 | frame.bytes << 24);
  put(header + 8, frame.sequence | std::uint64_t(frame.payload_crc) << 32);
  put(header + 16, (frame.message_bytes & kLow48) | frame.offset << 48);
  put(header + 24, (frame.offset & kLow48) >> 16);  // and no checksum
  put(header + 32, frame.signature);
  put(header + 40, frame.acknowledged);
  if (checked) put(header + kHeaderCrcAt, header_crc(header));
}

const char* decode(const std::byte* header, Frame* frame, bool checked) {
  if (checked && get<std::uint32_t>(header + kHeaderCrcAt) != header_crc(header)) return kDamagedHeader;
  const auto first = get<std::uint64_t>(header);
  if (std::uint8_t(first) != kMagic) return "not a frame of this protocol";
  const auto flags = std::uint8_t(first >> 16);
  if (std::uint8_t(first >> 8) != kVersion || flags > (kAcknowledgeBit | kAnswerBit | kControlBit))
    return "a frame of another protocol version";
  frame->acknowledge = flags & kAcknowledgeBit;
  frame->answer = flags & kAnswerBit;
  frame->control = flags & kControlBit;
  frame->bytes = first >> 24 & kLow40;
  frame->sequence = get<std::uint32_t>(header + 8);
  frame->payload_crc = get<std::uint32_t>(header + 12);
  const auto third = get<std::uint64_t>(header + 16);
  frame->message_bytes = third & kLow48;
  frame->offset = third >> 48 | std::uint64_t(get<std::uint32_t>(header + 24)) << 16;
  frame->signature = get<std::uint64_t>(header + 32);
  frame->acknowledged = get<std::uint64_t>(header + 40);
  if (frame->control && (frame->message_bytes != 0 || frame->offset != 0 || frame->bytes != 0))
    return "a frame of no message, with a payload";
  if (frame->message_bytes > kMessageBytesMax) return "a frame of an impossibly long message";
  if (frame->offset > frame->message_bytes || frame->bytes > frame->message_bytes - frame->offset)
    return "a frame that reaches beyond its message";
  if (frame->bytes == 0 && frame->message_bytes != 0) return "a frame without payload";
  return nullptr;
}

}  // namespace gccl::tcp
