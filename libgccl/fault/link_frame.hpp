// What travels on a link: frames, each a header and a part of one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gccl::fault {

struct LinkFrame {
  enum class Kind : std::uint8_t {
    data = 1,     // part of a message; alone in having a sequence number and a payload
    control = 2,  // only what every frame says: acknowledgement and credit; keeps alive
    resume = 3,   // the first frame after a connection or an epoch begins: go on at `acknowledged`
  };

  Kind kind = Kind::control;
  bool answer = false;         // an acknowledgement is wanted at once; resume: nothing of this epoch was heard before
  bool checked = true;         // payload_crc holds
  std::uint32_t epoch = 0;     // of the link; numbers below begin at 0 in each
  std::uint64_t sequence = 0;  // of the data frame in its direction
  std::uint64_t acknowledged = 0;  // every data frame of the other direction below this has arrived
  std::uint64_t credit = 0;        // the receiver of this frame may send data frames below this
  std::uint64_t message_bytes = 0, signature = 0;
  std::uint64_t offset = 0;  // of the payload in its message; resume: how much of frame `acknowledged` has been taken
  std::uint32_t bytes = 0;   // payload that follows the header
  std::uint32_t payload_crc = 0;

  bool ends_message() const { return offset + bytes == message_bytes; }
};

constexpr std::size_t kLinkHeaderBytes = 72;
constexpr std::uint32_t kLinkPayloadBytesMax = 1u << 24;
constexpr std::uint64_t kLinkMessageBytesMax = std::uint64_t(1) << 48;

// The header ends in a checksum of its own, so that a reader of a stream can trust the length before it reads on.
void encode(const LinkFrame& frame, std::byte* header);
// Null on success; else what is wrong with these kLinkHeaderBytes bytes. Any bytes will do.
const char* decode(const std::byte* header, LinkFrame* frame);
// Whether this is the payload that the frame was made for. Requires payload.size() == frame.bytes.
bool intact(const LinkFrame& frame, std::span<const std::byte> payload);

}  // namespace gccl::fault
