// One end of a link over a simulated wire: what I/O is to a real one.
#pragma once

#include <cstring>

#include "libgccl/fault/link.hpp"
#include "libgccl/fault/link_reader.hpp"
#include "sim/fault/faulty_wire.hpp"

namespace gccl::sim {

class LinkEnd : public WireEnd {
 public:
  // All outlive it, and the wire's events too.
  LinkEnd(VirtualTime* time, Wire* wire, unsigned side, const fault::LinkSettings& settings, fault::LinkUser* user,
          const fault::LinkRules& rules)
      : time_(time),
        wire_(wire),
        side_(side),
        user_(user),
        stream_(settings.ordered_wire),
        by_parts_(stream_ && !settings.checksums),
        link_(settings, user, time->now(), 0, rules) {
    wire->attach(side, this);
  }

  const fault::Link& link() const { return link_; }
  void send(const fault::LinkSender::Message& m) {
    link_.send(m);
    act();
  }
  void take_more() {
    link_.take_more(time_->now());
    act();
  }
  void enter_epoch(std::uint32_t epoch) {
    link_.enter_epoch(time_->now(), epoch);
    takes_ = false;
    taken_ = 0;
    act();
  }

  // Its process is stopped, and goes on: meanwhile nothing is read, and nothing sent.
  void hold() { held_ = true; }
  void go_on() {
    if (!std::exchange(held_, false)) return;
    if (timer_ <= time_->now()) timer_ = fault::kNever, link_.time_passed(time_->now());
    for (const auto& bytes : std::exchange(kept_, {})) arrived(bytes);
    act();
  }

  void arrived(std::span<const std::byte> bytes) override {
    if (held_) return void(kept_.emplace_back(bytes.begin(), bytes.end()));
    if (!stream_) {
      link_.received(time_->now(), bytes);
    } else if (!(by_parts_ ? read_parts(bytes) : read_frames(bytes))) {
      static_cast<StreamWire*>(wire_)->break_now();
      reader_.restart();
    }
    act();
  }
  void connected() override {
    kept_.clear();
    reader_.restart();
    link_.connected(time_->now(), std::exchange(taken_, 0));
    header_.clear();
    in_frame_ = false;
    act();
  }
  void broken() override {
    link_.broken(time_->now());
    act();
  }
  void writable() override { act(); }
  // What left the link, and when: two runs are the same if these are.
  std::uint64_t trace() const { return trace_; }

 private:
  bool read_frames(std::span<const std::byte> bytes) {
    return reader_.read(bytes, [&](auto frame) { return link_.received(time_->now(), frame); });
  }
  // As a reader does that puts payloads where they belong: each part as it comes.
  bool read_parts(std::span<const std::byte> bytes) {
    const auto first = [&](std::size_t n) {
      const auto head = bytes.first(std::min(n, bytes.size()));
      bytes = bytes.subspan(head.size());
      return head;
    };
    while (!bytes.empty()) {
      if (!in_frame_) {
        const auto part = first(fault::kLinkHeaderBytes - header_.size());
        header_.insert(header_.end(), part.begin(), part.end());
        if (header_.size() < fault::kLinkHeaderBytes) return true;
        if (fault::decode(header_.data(), &frame_) != nullptr) return false;
        header_.clear();
        in_frame_ = true;
        left_ = frame_.bytes;
        takes_ = link_.begin(time_->now(), frame_) == fault::Link::Verdict::take;
      }
      const auto part = first(left_);
      if (takes_) {
        fault::LinkFrame of_part = frame_;
        of_part.offset += frame_.bytes - left_;
        of_part.bytes = std::uint32_t(part.size());
        if (!part.empty() || frame_.bytes == 0) user_->deliver(of_part, part);
        taken_ += part.size();
      }
      left_ -= part.size();
      if (left_ > 0) continue;
      in_frame_ = false;
      taken_ = 0;
      if (takes_) link_.taken(time_->now(), frame_);
    }
    return true;
  }

  void act() {
    if (held_) return;
    fault::Link::Outgoing out;
    while (wire_->takes(side_) && link_.next(time_->now(), &out)) {
      note(std::uint64_t(time_->now()));
      for (std::size_t i = 0; i < sizeof out.header; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, out.header + i, sizeof word);
        note(word);
      }
      wire_->write(side_, out.header, out.payload);
    }
    const Nanos due = link_.deadline();
    if (due == fault::kNever || due >= timer_) return;
    timer_ = std::max(due, time_->now());
    time_->at(timer_, [this, at = timer_] { tick(at); });
  }
  void tick(Nanos at) {
    if (at != timer_ || held_) return;  // an earlier one was asked for meanwhile
    timer_ = fault::kNever;
    link_.time_passed(time_->now());
    act();
  }
  void note(std::uint64_t word) { trace_ = splitmix::mix(trace_ ^ word) + splitmix::kGolden; }

  VirtualTime* const time_;
  Wire* const wire_;
  const unsigned side_;
  fault::LinkUser* const user_;
  const bool stream_, by_parts_;
  fault::Link link_;
  fault::LinkReader reader_;
  // By parts.
  std::vector<std::byte> header_;
  fault::LinkFrame frame_;
  bool in_frame_ = false, takes_ = false;
  std::size_t left_ = 0;
  std::uint64_t taken_ = 0;  // of a frame that is not complete
  Nanos timer_ = fault::kNever;
  std::uint64_t trace_ = 0;
  bool held_ = false;
  std::vector<std::vector<std::byte>> kept_;
};

}  // namespace gccl::sim
