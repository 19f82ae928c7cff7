#include "libgccl/net/handshake_protocol.hpp"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <cassert>

#include "libgccl/net/bytes.hpp"
#include "libgccl/net/digest.hpp"

namespace gccl {
namespace {

constexpr std::string_view kMagic = "gccl-h";
constexpr std::uint8_t kDial = 1, kChallenge = 2;
constexpr std::size_t kOpeningBytes = 6 + 1 + 1 + HandshakeProtocol::kNonceBytes;
constexpr std::uint8_t kAccepted = 1, kRefused = 2;
constexpr std::string_view kDialRole = "gccl dial", kAcceptRole = "gccl accept";

constexpr const char* kNoDigest =
    "SHA-256 cannot be computed here: memory is short, this process is ending, or OpenSSL's settings forbid it";

std::vector<std::byte> opening(std::uint8_t kind, const HandshakeProtocol::Nonce& nonce) {
  return BytesOut().raw(kMagic).u8(HandshakeProtocol::kVersion).u8(kind).raw(nonce).take();
}

}  // namespace

HandshakeProtocol::HandshakeProtocol(std::string_view secret, const Nonce& nonce) : nonce_(nonce) {
  if (!sha256(std::as_bytes(std::span(secret)), &key_)) fail_here();
}

HandshakeProtocol HandshakeProtocol::dial(std::string_view secret, std::vector<std::byte> hello, const Nonce& nonce) {
  assert(hello.size() <= kHelloBytesMax);
  HandshakeProtocol p(secret, nonce);
  if (p.failed()) return p;
  p.hello_ = std::move(hello);
  p.send(opening(kDial, nonce), true);
  p.expect(Stage::challenge, kOpeningBytes);
  return p;
}

HandshakeProtocol HandshakeProtocol::accept(std::string_view secret, const Nonce& nonce) {
  HandshakeProtocol p(secret, nonce);
  if (!p.failed()) p.expect(Stage::dial, kOpeningBytes);
  return p;
}

void HandshakeProtocol::expect(Stage stage, std::size_t bytes) {
  stage_ = stage;
  frame_bytes_ = bytes;
  input_.clear();
}

void HandshakeProtocol::send(std::span<const std::byte> bytes, bool covered) {
  output_.insert(output_.end(), bytes.begin(), bytes.end());
  if (covered) transcript_.insert(transcript_.end(), bytes.begin(), bytes.end());
}

void HandshakeProtocol::sent(std::size_t bytes) {
  assert(bytes <= output().size());
  sent_ += bytes;
}

void HandshakeProtocol::fail(std::string why, bool unauthenticated) {
  stage_ = Stage::failed;
  error_ = std::move(why);
  unauthenticated_ = unauthenticated;
}

void HandshakeProtocol::fail_here() {
  fail(kNoDigest);
  failed_here_ = true;
}

void HandshakeProtocol::received(std::span<const std::byte> bytes) {
  assert(!bytes.empty() && bytes.size() <= wants());
  input_.insert(input_.end(), bytes.begin(), bytes.end());
  // What is no handshake at all is not waited for any longer.
  if (stage_ == Stage::dial || stage_ == Stage::challenge) {
    const std::size_t known = std::min(input_.size(), kMagic.size());
    if (!starts_with(input_, kMagic.substr(0, known))) return fail("not a GCCL handshake");
  }
  if (input_.size() < frame_bytes_) return;
  switch (stage_) {
    case Stage::dial: return on_dial();
    case Stage::challenge: return on_challenge();
    case Stage::proof_length:
    case Stage::proof: return on_proof();
    case Stage::verdict: return on_verdict();
    case Stage::done:
    case Stage::failed: break;
  }
}

bool HandshakeProtocol::check_opening(std::uint8_t kind) {
  BytesIn in(std::span<const std::byte>(input_).subspan(kMagic.size()));
  const unsigned version = in.u8(), found = in.u8();
  if (version != kVersion)
    fail(fmt::format("the peer speaks version {} of GCCL's handshake, expected {}: are both sides the same release?",
                     version, kVersion));
  else if (found != kind)
    fail("not a GCCL handshake: its frames come in the wrong order");
  return !failed();
}

void HandshakeProtocol::on_dial() {
  if (!check_opening(kDial)) {
    send(opening(kChallenge, nonce_), false);  // so that the other release sees the version, too
    return;
  }
  transcript_ = input_;
  send(opening(kChallenge, nonce_), true);
  expect(Stage::proof_length, 2);
}

void HandshakeProtocol::on_challenge() {
  if (!check_opening(kChallenge)) return;
  transcript_.insert(transcript_.end(), input_.begin(), input_.end());
  send(BytesOut().u16(std::uint16_t(hello_.size())).raw(hello_).take(), true);
  Mac proof;
  if (!prove(kDialRole, &proof)) return;
  send(proof, true);
  expect(Stage::verdict, 1 + kMacBytes);
}

void HandshakeProtocol::on_proof() {
  const std::size_t hello_bytes = BytesIn(input_).u16();
  if (stage_ == Stage::proof_length) {
    if (hello_bytes > kHelloBytesMax)
      return fail(fmt::format("not a GCCL handshake: a hello of {} bytes", hello_bytes));
    stage_ = Stage::proof;
    frame_bytes_ += hello_bytes + kMacBytes;
    return;
  }
  const std::span<const std::byte> frame = input_, covered = frame.first(2 + hello_bytes);
  transcript_.insert(transcript_.end(), covered.begin(), covered.end());
  Mac expected;
  if (!prove(kDialRole, &expected)) return;
  if (CRYPTO_memcmp(expected.data(), frame.last(kMacBytes).data(), kMacBytes) != 0) {
    send(BytesOut().u8(kRefused).raw(Mac{}).take(), false);
    return fail("the peer does not know the secret", true);
  }
  const auto hello = covered.subspan(2);
  hello_.assign(hello.begin(), hello.end());
  transcript_.insert(transcript_.end(), expected.begin(), expected.end());
  Mac own;
  if (!prove(kAcceptRole, &own)) return;
  send(BytesOut().u8(kAccepted).raw(own).take(), false);
  stage_ = Stage::done;
}

void HandshakeProtocol::on_verdict() {
  const auto verdict = std::uint8_t(input_[0]);
  if (verdict == kRefused) return fail("the peer has another secret than this process and refuses it", true);
  Mac expected;
  if (!prove(kAcceptRole, &expected)) return;
  if (verdict != kAccepted || CRYPTO_memcmp(expected.data(), input_.data() + 1, kMacBytes) != 0)
    return fail("the peer does not know the secret", true);
  stage_ = Stage::done;
}

bool HandshakeProtocol::prove(std::string_view role, Mac* mac) {
  const bool ok = hmac_sha256(key_, BytesOut().raw(role).raw(transcript_).take(), mac);
  if (!ok) fail_here();
  return ok;
}

}  // namespace gccl
