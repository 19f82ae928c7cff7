// The sending half of a link: cuts messages into frames, keeps them until they are acknowledged, repeats them.
#pragma once

#include <deque>
#include <span>
#include <utility>

#include "libgccl/fault/link_settings.hpp"

namespace gccl::fault {

class LinkSender {
 public:
  LinkSender(const LinkSettings& settings, const LinkRules& rules)
      : settings_(settings), rules_(rules), credit_(settings.credits) {}

  struct Message {
    std::span<const std::byte> bytes;  // stay valid until the message is acknowledged
    std::uint64_t signature = 0;
    bool answer = false;  // acknowledge at its end: somebody waits for it
  };
  void push(const Message& m) { messages_.push_back(m); }
  // Of this epoch.
  std::uint64_t acknowledged_messages() const { return first_message_; }
  std::uint64_t acknowledged_frames() const { return base_; }
  bool in_flight() const { return !flight_.empty(); }

  // The data frame to send next. False: there is none, or no credit.
  bool next(Nanos now, LinkFrame* frame, std::span<const std::byte>* payload);
  // The receiver has every frame below `sequence`, and room for those below `credit`. `alone`: says nothing else.
  void acknowledged(Nanos now, std::uint64_t sequence, std::uint64_t credit, bool alone);
  // A new connection: everything from `sequence` on was lost, but for the first `taken` bytes of its payload.
  void go_on_at(Nanos now, std::uint64_t sequence, std::uint64_t taken);
  // A new epoch: nothing has been sent, and nothing is to be.
  void restart();

  // Repetitions and probes are due by the clock.
  Nanos deadline() const;
  void time_passed(Nanos now);
  // The receiver is to be asked for credit; once each.
  bool take_probe() { return std::exchange(probe_, false); }

  std::uint64_t repeated = 0;  // frames, since the beginning

 private:
  struct Flight {
    std::uint64_t message, offset;  // message: a number, from the epoch's beginning
    std::uint32_t bytes;
    bool repeated;
    Nanos sent;  // kNever: not yet
  };

  std::uint64_t end() const { return base_ + flight_.size(); }  // sequence of the next frame to be cut
  bool uncut() const { return cut_message_ < first_message_ + messages_.size(); }
  bool starved() const { return flight_.empty() && uncut() && end() >= credit_; }
  bool timed() const { return !settings_.ordered_wire && (starved() || rules_.repeats(flight_.size())); }
  void cut();
  void emit(Nanos now, std::uint64_t sequence, LinkFrame* frame, std::span<const std::byte>* payload);
  void measure(Nanos round_trip);
  Nanos rto() const;

  const LinkSettings& settings_;
  const LinkRules& rules_;

  std::deque<Message> messages_;  // not wholly acknowledged
  std::uint64_t first_message_ = 0;
  std::uint64_t cut_message_ = 0, cut_offset_ = 0;  // where the next frame begins

  std::deque<Flight> flight_;  // cut and not acknowledged
  std::uint64_t base_ = 0;     // sequence of flight_.front()
  std::uint64_t next_ = 0;     // to be sent next: end() unless frames are sent again
  std::uint64_t credit_;       // both sides begin with the same
  std::uint64_t skip_ = 0;     // bytes of frame base_ that the receiver has

  bool repeat_first_ = false;
  std::uint64_t recover_until_ = 0;  // while base_ is below: each acknowledgement of a part shows the next hole
  unsigned same_ = 0;                // acknowledgements in a row of nothing new
  bool probe_ = false;

  Nanos since_ = kNever;  // what the clock waits for began; kNever: nothing
  unsigned backoff_ = 0;
  Nanos smoothed_ = 0, variation_ = 0;  // round trip; 0: not measured yet
};

}  // namespace gccl::fault
