// How a process starts to be a rank.
#pragma once

#include "gccl/cpp20.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "gccl/error.hpp"

namespace gccl {
inline namespace api {

// GCCL_Config with strings of its own. What is left alone comes from the environment (docs/start.md).
struct Config {
  std::optional<int> rank, size;
  std::string store;  // "tcp://HOST:PORT" (rank 0 listens) or "file:///PATH"
  std::string secret, backends, host, address;
  std::optional<std::chrono::milliseconds> timeout;  // of each call; negative: none
  std::optional<bool> progress_thread;
  // Instead of a store: an all-gather of the caller's own. Afterwards `all`, which has room for as much, holds what
  // every rank gave as `mine`, in rank order. False: it failed. Must not throw. Used while starting only.
  std::function<bool(std::span<const std::byte> mine, std::byte* all)> allgather;

  // For the C interface; points into this object.
  GCCL_Config c() const {
    const auto text = [](const std::string& s) {
      if (s.find('\0') != s.npos)  // a secret, say, would end there
        api_detail::wrong("config", "found a null byte in a text, which ends it in the C interface");
      return s.empty() ? nullptr : s.c_str();
    };
    GCCL_Config c = GCCL_CONFIG_INIT;
    c.rank = rank.value_or(-1);
    c.size = size.value_or(-1);
    c.store = text(store);
    c.secret = text(secret);
    c.backends = text(backends);
    c.host = text(host);
    c.address = text(address);
    if (timeout) c.timeout_ms = timeout->count() < 0 ? GCCL_TIMEOUT_NONE : timeout->count();
    if (progress_thread) c.progress_thread = *progress_thread;
    if (allgather) {
      c.allgather = [](const void* mine, void* all, std::size_t bytes, void* self) {
        const auto& f = static_cast<const Config*>(self)->allgather;
        return f({static_cast<const std::byte*>(mine), bytes}, static_cast<std::byte*>(all)) ? 0 : 1;
      };
      c.allgather_context = const_cast<Config*>(this);
    }
    return c;
  }
};

}  // namespace api
}  // namespace gccl
