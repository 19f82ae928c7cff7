#include "libgccl/transports/tcp/data/frame.hpp"

#include <bit>
#include <cstring>

namespace gccl::tcp {
namespace {

// magic 2, version 1, flags 1, sequence 4, message_bytes 8, signature 8, offset 8, bytes 8, acknowledged 8; little
// endian.
constexpr std::uint16_t kMagic = 0x4367;  // "gC"
constexpr std::uint8_t kVersion = 2;
constexpr std::uint8_t kAcknowledgeBit = 1, kAnswerBit = 2, kControlBit = 4;
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

}  // namespace

void encode(const Frame& frame, std::byte* header) {
  put(header, kMagic);
  put(header + 2, kVersion);
  put(header + 3,
      std::uint8_t(frame.acknowledge * kAcknowledgeBit | frame.answer * kAnswerBit | frame.control * kControlBit));
  put(header + 4, frame.sequence);
  put(header + 8, frame.message_bytes);
  put(header + 16, frame.signature);
  put(header + 24, frame.offset);
  put(header + 32, frame.bytes);
  put(header + 40, frame.acknowledged);
}

const char* decode(const std::byte* header, Frame* frame) {
  if (get<std::uint16_t>(header) != kMagic) return "not a frame of this protocol";
  const auto flags = get<std::uint8_t>(header + 3);
  if (get<std::uint8_t>(header + 2) != kVersion || flags > (kAcknowledgeBit | kAnswerBit | kControlBit))
    return "a frame of another protocol version";
  frame->acknowledge = flags & kAcknowledgeBit;
  frame->answer = flags & kAnswerBit;
  frame->control = flags & kControlBit;
  frame->sequence = get<std::uint32_t>(header + 4);
  frame->message_bytes = get<std::uint64_t>(header + 8);
  frame->signature = get<std::uint64_t>(header + 16);
  frame->offset = get<std::uint64_t>(header + 24);
  frame->bytes = get<std::uint64_t>(header + 32);
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
