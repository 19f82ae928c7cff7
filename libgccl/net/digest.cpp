#include "libgccl/net/digest.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

#include "libgccl/base/process.hpp"

namespace gccl {
namespace {

bool over = false;  // guarded by ProcessLock

// Runs before OpenSSL's handler: the last one registered is the first to run.
void end() {
  const ProcessLock lock;
  over = true;
}

const unsigned char* chars(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }
unsigned char* chars(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }

// With the lock held: exit() waits, and a child that fork() makes meanwhile does not inherit OpenSSL's locks taken.
template <class F>
bool computed(F f) {
  prepare_digests();
  const ProcessLock lock;
  return !over && f();
}

}  // namespace

void prepare_digests() {
  [[maybe_unused]] static const int once = [] {
    Digest digest;
    const ProcessLock lock;
    EVP_Digest("", 0, chars(digest.data()), nullptr, EVP_sha256(), nullptr);  // OpenSSL registers its own exit handler
    return std::atexit(end);
  }();
}

bool sha256(std::span<const std::byte> data, Digest* digest) {
  return computed(
      [&] { return EVP_Digest(data.data(), data.size(), chars(digest->data()), nullptr, EVP_sha256(), nullptr) == 1; });
}

bool hmac_sha256(const Digest& key, std::span<const std::byte> data, Digest* mac) {
  return computed([&] {
    unsigned bytes = 0;
    return HMAC(EVP_sha256(), key.data(), int(key.size()), chars(data.data()), data.size(), chars(mac->data()),
                &bytes) &&
           bytes == mac->size();
  });
}

}  // namespace gccl
