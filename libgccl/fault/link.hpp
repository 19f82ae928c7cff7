// The reliable protocol between two ranks, without I/O: events go in, each with the time at which it happens; frames to
// send come out of next(), messages at the user's deliver(). No clock, no socket, no thread, no chance in it: the same
// code runs over real connections and in virtual time.
//
// Over any wire, whatever it loses, repeats, reorders or damages, and however often it breaks, every message of an
// epoch is delivered once, in order and unchanged, as long as frames get through at all (docs/faults.md).
#pragma once

#include <optional>
#include <span>

#include "libgccl/fault/link_receiver.hpp"
#include "libgccl/fault/link_sender.hpp"
#include "libgccl/fault/link_settings.hpp"

namespace gccl::fault {

class Link {
 public:
  // `user` and `rules` outlive it. A datagram wire is connected from the beginning; an ordered one when connected()
  // says so.
  Link(const LinkSettings& settings, LinkUser* user, Nanos now, std::uint32_t epoch = 0,
       const LinkRules& rules = standard_rules());
  Link(const Link&) = delete;

  // ---- Events ----

  void send(const LinkSender::Message& m) { sender_.push(m); }
  // A whole frame of a datagram, or cut from a stream. Any bytes will do. False: it is damaged, and dropped; an ordered
  // wire is then of no more use.
  bool received(Nanos now, std::span<const std::byte> frame);
  // A reader that puts payloads where they belong itself asks what a decoded frame is, reads the payload, and says
  // when the user has it. Both do what the header says besides.
  enum class Verdict { take, skip };
  Verdict begin(Nanos now, const LinkFrame& frame);
  void taken(Nanos now, const LinkFrame& frame);
  // The user takes again what it did not take before.
  void take_more(Nanos now);
  // An ordered wire began; what was on its way over the one before has arrived or never will. Of the frame that begin()
  // let the user take, and that did not come to its end, `partial` bytes are not sent again. Not with checksums.
  void connected(Nanos now, std::uint64_t partial = 0);
  void broken(Nanos now);
  // Both directions begin anew: what was sent, or delivered in part, is forgotten. Requires epoch > this->epoch().
  void enter_epoch(Nanos now, std::uint32_t epoch);
  void time_passed(Nanos now);

  // ---- Actions ----

  struct Outgoing {
    std::byte header[kLinkHeaderBytes];
    std::span<const std::byte> payload;  // the message's own memory
  };
  // The frame to write next, to be asked after every event for as long as the wire takes more. False: none for now.
  bool next(Nanos now, Outgoing* out);
  // When time_passed() is wanted, if nothing happens before.
  Nanos deadline() const;

  // ---- State ----

  std::uint32_t epoch() const { return epoch_; }
  // Messages of this epoch that the peer has, of those sent: their memory may be used again.
  std::uint64_t acknowledged_messages() const { return sender_.acknowledged_messages(); }
  bool is_connected() const { return connected_; }
  // For good: the peer was not heard, or the wire was broken, for too long.
  bool lost() const { return lost_; }

  struct Counters {
    std::uint64_t sent = 0, received = 0, repeated = 0, duplicates = 0, damaged = 0, foreign = 0, reconnects = 0;
  };
  Counters counters() const;

 private:
  static const LinkRules& standard_rules();

  // Null where the frame is not for the receiving half.
  std::optional<LinkReceiver::Verdict> admit(Nanos now, const LinkFrame& frame);
  void heard(Nanos now, const LinkFrame& frame);
  void arrived(Nanos now, const LinkFrame& frame);
  void fill(LinkFrame* frame);
  Nanos lost_at() const;

  const LinkSettings settings_;
  const LinkRules& rules_;
  LinkUser* const user_;
  LinkSender sender_;
  LinkReceiver receiver_;

  std::uint32_t epoch_;
  bool connected_, lost_ = false;
  bool resume_due_ = false;       // to be said first on this connection, or in this epoch
  bool epoch_begins_ = false;     // and frames of this epoch may have come too early
  bool awaiting_resume_ = false;  // only the peer knows where to go on
  std::uint64_t partial_ = 0;     // of the next frame, over all connections
  bool control_due_ = false, answer_wanted_ = false;

  // Acknowledgement of what has arrived.
  std::uint64_t unacknowledged_ = 0;
  Nanos acknowledge_at_ = kNever;
  std::uint64_t credit_said_ = 0;

  Nanos last_sent_, last_heard_, broken_since_ = kNever;
  Counters counters_;
};

}  // namespace gccl::fault
