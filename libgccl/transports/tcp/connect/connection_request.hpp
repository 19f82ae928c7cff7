// What a connection is for: the first thing the dialling side says, inside the handshake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gccl/backend.h"

namespace gccl::tcp {

struct ConnectionRequest {
  enum class Kind : std::uint8_t {
    stream = 1,  // becomes one stream of a link
    watch = 2,   // says nothing more; ends when the dialled side's port does
    abort = 3,   // brings `fault`
    ask = 4,     // has the dialled side, which alone may, dial the link of `channel`, or of that `stream` again
    leave = 5,   // the dialling side leaves, and what it has sent is on the way: nothing that is written to it is read
  };

  Kind kind = Kind::stream;
  std::uint64_t communicator = 0;
  std::uint64_t nonce = 0;         // of the listener that is meant: a port number may have passed to somebody else
  std::uint32_t from = 0, to = 0;  // ranks in the communicator
  std::uint32_t channel = 0, stream = 0, streams = 1;
  // stream: its number, which grows with each attempt to connect that stream. ask: of the one that broke; 0: there was
  // none.
  std::uint64_t connection = 0;
  bool fresh = true;  // stream: the dialling side has never had a connection of that stream
  GCCL_Fault fault{};
};

std::vector<std::byte> encode(const ConnectionRequest& request);
// False when the bytes are none. Any bytes will do; ranks and channels are not compared with anything.
bool decode(std::span<const std::byte> bytes, ConnectionRequest* request);

// The one byte by which the accepting side says that it takes the connection; others follow only then.
constexpr std::byte kAccepted{0x06};
// Or: it has no descriptor left for it now.
constexpr std::byte kNoDescriptor{0x15};
// Or: who is meant is not here, or not any more. Nothing else vouches for these three: no two bits that are damaged
// make one of another.
constexpr std::byte kNotHere{0x18};

}  // namespace gccl::tcp
