// The receiving half of a link: puts frames in order, keeps what the user does not take yet, drops what came before.
#pragma once

#include <span>
#include <vector>

#include "libgccl/fault/link_settings.hpp"

namespace gccl::fault {

// What the frames of a link are for.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  // The next part of a message: each once, in order. False: not now; it comes again after Link::take_more().
  virtual bool deliver(const LinkFrame& frame, std::span<const std::byte> payload) = 0;
};

class LinkReceiver {
 public:
  LinkReceiver(const LinkSettings& settings, const LinkRules& rules) : settings_(settings), rules_(rules) {}

  enum class Verdict {
    next,       // the one to be taken now
    early,      // others come before it, or the user takes none now
    duplicate,  // has arrived before
    beyond,     // more than there is room for
  };
  Verdict judge(const LinkFrame& frame) const;
  // The user has taken it. Requires judge(frame) == Verdict::next.
  void take(const LinkFrame& frame);
  // Requires Verdict::next or early. Keeps a copy.
  void keep(const LinkFrame& frame, std::span<const std::byte> payload);
  // Gives the user what is in order, as far as it takes it.
  void deliver(LinkUser* user);
  void restart();

  std::uint64_t acknowledgement() const { return rules_.acknowledgement(arrived_); }
  std::uint64_t credit() const { return rules_.credit(taken_, settings_.credits, duplicates); }
  std::uint64_t arrived() const { return arrived_; }

  std::uint64_t duplicates = 0;  // dropped, since the beginning

 private:
  struct Slot {
    bool full = false;
    LinkFrame frame;
    std::vector<std::byte> payload;
  };
  Slot& slot(std::uint64_t sequence) { return slots_[sequence % slots_.size()]; }

  const LinkSettings& settings_;
  const LinkRules& rules_;
  std::uint64_t arrived_ = 0;  // all frames below have
  std::uint64_t taken_ = 0;    // by the user; what lies between the two is kept
  std::vector<Slot> slots_;    // frames from taken_ on; none until one has to be kept
};

}  // namespace gccl::fault
