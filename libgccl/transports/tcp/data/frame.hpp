// What travels on a connection between two ranks: frames, each a header and a part of one message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gccl::tcp {

// Messages on a link are numbered from 0 and begin on its first stream, with the frame of offset 0. A message may go as
// one frame or as several, over any of the link's streams; on each stream offsets grow. An empty message is a frame
// too.
struct Frame {
  std::uint32_t sequence = 0;  // of the message on its link; wraps
  std::uint64_t message_bytes = 0;
  std::uint64_t signature = 0;
  std::uint64_t offset = 0;       // of the payload in the message
  std::uint64_t bytes = 0;        // payload that follows the header
  bool acknowledge = false;       // at once: the sender waits for TCP's acknowledgement (see ZeroCopy)
  bool answer = false;            // the sender waits until this rank acknowledges the frame
  bool control = false;           // no part of a message: says `acknowledged` alone
  std::uint32_t payload_crc = 0;  // where frames are checked: CRC32C
  // How many bytes of the other direction of this stream have been taken, over all its connections (see Stream).
  std::uint64_t acknowledged = 0;
};

constexpr std::size_t kFrameHeaderBytes = 48;
// Offsets have 48 bits, the length of a payload 40.
constexpr std::uint64_t kMessageBytesMax = std::uint64_t(1) << 47;
constexpr std::uint64_t kFrameBytesMax = std::uint64_t(1) << 39;

// `checked`: with a checksum of the header itself.
void encode(const Frame& frame, std::byte* header, bool checked = false);
// Null on success; else what is wrong with these kFrameHeaderBytes bytes. Any bytes will do.
const char* decode(const std::byte* header, Frame* frame, bool checked = false);
// What decode() returns where the checksum does not fit, and nothing can be said of the frame.
extern const char* const kDamagedHeader;

}  // namespace gccl::tcp
