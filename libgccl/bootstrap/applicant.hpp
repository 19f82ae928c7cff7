// A process that joins a job which runs: it looks for the member that admits others, asks, and then exchanges addresses
// with all members through it. One thread's.
#pragma once

#include <span>
#include <vector>

#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/join_frame.hpp"

namespace gccl {

class Applicant : public Exchange {
 public:
  // Asks for timeout_ms at most; negative: without limit.
  Applicant(JoinPlace place, std::uint32_t version, std::vector<std::byte> introduction, std::int64_t timeout_ms);

  struct Admitted {
    Rank rank = 0, size = 0;
    std::vector<Rank> joined;  // all that join with it
  };
  // Until it is admitted: from then on it is rank `rank` of `size` ranks that exchange what connects them. Not ok for
  // good: refused, and why; or nobody admitted it in time.
  Status ask(Admitted* out);
  // GCCL_ERR_PEER_LOST where the member has gone, or gave up: another ask() may go better.
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override;
  // After the exchanges. member: all have the communicator. again: they do not. gone: the member cannot say it any
  // more.
  enum class Verdict : std::uint8_t { none, member, again, gone };
  Verdict verdict();
  // With member: what the members say of the communicator.
  const std::vector<std::byte>& word() const { return word_; }
  // Nothing came of it, and why.
  void drop(const Status& why);

 private:
  // At each address until one admits; *final: what it returns is for good.
  Status ask_at(std::span<const SocketAddress> addresses, const JoinPlace::Token& token, Admitted* out, bool* final);
  // Over fd_, which is being connected. *again: another time it may go better.
  Status ask_once(const SocketAddress& at, const JoinPlace::Token& token, Admitted* out, bool* again);
  Status shake_hands(const SocketAddress& at, const JoinPlace::Token& token, bool* again);
  Status await_admission(const JoinPlace::Token& token, JoinFrame* out);
  // Until the next frame is there, at most until the deadline.
  Status await(JoinFrame* out, Deadline deadline);
  Deadline limit() const { return timeout_ms_ < 0 ? Deadline::in_ms(INT64_MAX) : until_; }

  const JoinPlace place_;
  const std::uint32_t version_;
  const std::vector<std::byte> introduction_;
  const std::int64_t timeout_ms_;
  const Deadline until_;
  std::string last_ = "nobody listens there";  // why it was not admitted yet
  Rank size_ = 0;
  Fd fd_;
  JoinFrameReader reader_;
  Verdict verdict_ = Verdict::none;
  std::vector<std::byte> word_;
};

}  // namespace gccl
