// What a store's URL names: "tcp://HOST:PORT" or "file:///PATH".
#pragma once

#include <optional>
#include <string>

#include "libgccl/base/status.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

struct StoreUrl {
  std::optional<HostPort> at;  // of a TCP store
  std::string prefix;          // of a file store's files
};

// GCCL_ERR_INVALID_ARGUMENT says what was expected.
Status parse_store(const std::string& url, StoreUrl* out);

// What "file:///PATH" means: PATH/gccl where PATH is a folder, else PATH itself.
std::string file_store_prefix(const std::string& path);

}  // namespace gccl
