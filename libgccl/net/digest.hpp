// SHA-256 and HMAC-SHA256, by OpenSSL, for as long as OpenSSL is there.
//
// OpenSSL frees what it has in an exit handler; a thread that still computes then reads freed memory. Here exit() waits
// for the computation at hand, and later ones fail.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace gccl {

using Digest = std::array<std::byte, 32>;

// Loads what the functions below need, and registers their exit handler: handlers that are registered later run while
// digests still work.
void prepare_digests();

// False when the process is ending, or when OpenSSL cannot (memory is short, or its configuration forbids SHA-256).
[[nodiscard]] bool sha256(std::span<const std::byte> data, Digest* digest);
[[nodiscard]] bool hmac_sha256(const Digest& key, std::span<const std::byte> data, Digest* mac);

}  // namespace gccl
