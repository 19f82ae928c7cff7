// The handshake's bytes without a socket: what arrives goes in, what to send comes out.
//
//   dialling side                                                          accepting side
//   dial       "gccl-h" version kind=1 nonce_d[32]                    ->
//              <-                    "gccl-h" version kind=2 nonce_a[32]   challenge
//   proof      length[2] hello HMAC("gccl dial"   | dial | challenge | length | hello)  ->
//              <-   verdict[1] HMAC("gccl accept" | dial | challenge | length | hello | proof's HMAC)   verdict
//
// Each proof covers both nonces and the prover's role: an answer that was recorded or is sent back proves nothing. The
// dialling side proves itself first: a stranger that can only connect to a listener learns nothing that a secret could
// be guessed from. The key is SHA-256 of the secret. What follows on the connection is neither encrypted nor
// authenticated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

class HandshakeProtocol {
 public:
  static constexpr std::size_t kNonceBytes = 32, kMacBytes = 32, kHelloBytesMax = 512;
  static constexpr std::uint8_t kVersion = 1;
  using Nonce = std::array<std::byte, kNonceBytes>;

  // `nonce` must never have been used before. Requires hello.size() <= kHelloBytesMax.
  static HandshakeProtocol dial(std::string_view secret, std::vector<std::byte> hello, const Nonce& nonce);
  static HandshakeProtocol accept(std::string_view secret, const Nonce& nonce);

  // To be sent before anything is received; sent() removes the first `bytes` of it.
  std::span<const std::byte> output() const { return std::span(output_).subspan(sent_); }
  void sent(std::size_t bytes);
  // How many bytes may come next: never more than the handshake has. 0 when it is over.
  std::size_t wants() const { return over() ? 0 : frame_bytes_ - input_.size(); }
  // Requires 1 <= bytes.size() <= wants().
  void received(std::span<const std::byte> bytes);

  bool done() const { return stage_ == Stage::done; }      // once output() is sent
  bool failed() const { return stage_ == Stage::failed; }  // output() may still say to the peer why
  const std::vector<std::byte>& hello() const { return hello_; }
  const std::string& error() const { return error_; }
  bool unauthenticated() const { return unauthenticated_; }
  bool failed_here() const { return failed_here_; }  // whatever the peer is: SHA-256 could not be computed

 private:
  enum class Stage { dial, challenge, proof_length, proof, verdict, done, failed };
  using Mac = std::array<std::byte, kMacBytes>;

  HandshakeProtocol(std::string_view secret, const Nonce& nonce);
  bool over() const { return done() || failed(); }
  void expect(Stage stage, std::size_t bytes);
  void send(std::span<const std::byte> bytes, bool covered);
  void fail(std::string why, bool unauthenticated = false);
  void fail_here();
  bool check_opening(std::uint8_t kind);
  void on_dial();
  void on_challenge();
  void on_proof();
  void on_verdict();
  bool prove(std::string_view role, Mac* mac);  // false: has failed

  Stage stage_ = Stage::dial;
  std::array<std::byte, 32> key_;
  Nonce nonce_;
  std::vector<std::byte> hello_;
  std::vector<std::byte> transcript_;  // what has been said so far and proofs cover
  std::vector<std::byte> input_;       // of the frame that is arriving
  std::size_t frame_bytes_ = 0;
  std::vector<std::byte> output_;
  std::size_t sent_ = 0;
  std::string error_;
  bool unauthenticated_ = false, failed_here_ = false;
};

}  // namespace gccl
