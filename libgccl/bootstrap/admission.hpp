// The member's side of admitting processes to a job that runs: it listens, learns who asks, and speaks with those that
// are admitted for all members. One thread's.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/join_frame.hpp"
#include "libgccl/net/handshake.hpp"
#include "libgccl/net/refusal_log.hpp"

namespace gccl {

class Admission {
 public:
  // How long collect() listens at least: a process that waits asks at least each 100 ms (applicant.cpp), on a busy
  // machine some time later.
  static constexpr std::int64_t kHearMs = 600;

  // Ok: the process with this introduction may join. GCCL_IN_PROGRESS: perhaps later, and it asks again. Else it gets
  // that as its error.
  using Check = std::function<Status(std::span<const std::byte> introduction)>;
  // Asked now and then while others are waited for. Not ok: they are waited for no longer.
  using GoesOn = std::function<Status()>;

  // Listens. `version`: the library's, which those that join must have, too.
  static Status open(const JoinPlace& place, std::uint32_t version, std::unique_ptr<Admission>* out);
  ~Admission();
  Admission(const Admission&) = delete;

  // Waits until `most` processes that may join are there, or for wait_ms and as long as one that waits already needs to
  // be heard. Nobody is heard any more afterwards.
  Status collect(Rank most, std::int64_t wait_ms, const Check& check, const GoesOn& goes_on);
  Rank count() const { return Rank(admitted_.size()); }
  std::vector<std::vector<std::byte>> introductions() const;

  // They become these ranks, in that order, of so many. Then, for each all-gather, what each of them says, one after
  // the other, and what all ranks said. Not ok: some have gone, or did not answer in time, which lost() remembers.
  Status admit(std::span<const Rank> ranks, Rank size);
  Status gather(std::size_t bytes, std::int64_t timeout_ms, const GoesOn& goes_on, std::vector<std::byte>* all);
  Status answer(std::span<const std::byte> all);
  // Whether all are still there.
  Status all_there();
  // All have the new communicator, of which the members say that; or they do not.
  void confirm(std::span<const std::byte> word) { end({JoinFrame::Kind::member, {word.begin(), word.end()}}); }
  void dismiss() { end({JoinFrame::Kind::again, {}}); }
  bool lost() const { return lost_; }

 private:
  struct Applicant {
    Fd fd;
    SocketAddress peer;
    Handshake handshake;
    Deadline deadline;
    JoinFrameReader reader{};
    bool shaken = false, wants_write = false;
    std::vector<std::byte> introduction{};
  };
  using Applicants = std::list<Applicant>;

  explicit Admission(const JoinPlace& place, std::uint32_t version);
  Status poll_once(int timeout_ms, const Check& check);
  void accept_some();
  // The next one.
  Applicants::iterator advance(Applicants::iterator a, const Check& check);
  void refuse(const Applicant& a, const Status& why);
  void drop_gone();
  Status gone(const std::string& what);
  void end(const JoinFrame& frame);

  const JoinPlace place_;
  const std::uint32_t version_;
  Fd listener_;
  JoinPlace::Token token_{};
  RefusalLog log_;
  Applicants asking_;    // not heard yet
  Applicants admitted_;  // in the order in which they came
  bool lost_ = false;
};

}  // namespace gccl
