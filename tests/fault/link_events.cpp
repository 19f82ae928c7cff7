// A link's events and actions one by one: two links on a wire that the test is.
#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "libgccl/fault/link.hpp"

using namespace gccl;
using namespace gccl::fault;

namespace link_events {

constexpr Nanos kMs = 1'000'000;

using Bytes = std::vector<std::byte>;

Bytes text(const std::string& s) {
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}

struct User : LinkUser {
  bool takes = true;
  std::string got;
  bool deliver(const LinkFrame& f, std::span<const std::byte> payload) override {
    if (!takes) return false;
    got.append(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (f.ends_message()) got += '|';
    return true;
  }
};

struct End {
  explicit End(const LinkSettings& s) : link(s, &user, 0) {}
  // What it sends now, each frame as bytes.
  std::vector<Bytes> frames(Nanos now) {
    std::vector<Bytes> all;
    Link::Outgoing out;
    while (link.next(now, &out)) {
      Bytes& b = all.emplace_back(out.header, out.header + kLinkHeaderBytes);
      b.insert(b.end(), out.payload.begin(), out.payload.end());
    }
    return all;
  }
  void send(const std::string& s, bool answer = false) { link.send({memory.emplace_back(text(s)), 0, answer}); }
  bool take(Nanos now, const std::vector<Bytes>& all) {
    bool whole = true;
    for (const Bytes& b : all) whole = link.received(now, b) && whole;
    return whole;
  }
  User user;
  std::deque<Bytes> memory;
  Link link;
};

LinkFrame header_of(const Bytes& frame) {
  LinkFrame f;
  REQUIRE(decode(frame.data(), &f) == nullptr);
  return f;
}

LinkSettings small() {
  LinkSettings s;
  s.frame_bytes_max = 4;
  s.credits = 4;
  s.rto_first = 10 * kMs;
  return s;
}

TEST_CASE("a message goes as frames, and is acknowledged at once where its sender asks for it") {
  End a(small()), b(small());
  a.send("abcdefghij", true);
  a.send("");
  const auto sent = a.frames(0);
  REQUIRE(sent.size() == 4);
  CHECK(b.take(0, sent));
  CHECK(b.user.got == "abcdefghij||");
  const auto answer = b.frames(0);
  REQUIRE(answer.size() == 1);
  CHECK(header_of(answer[0]).kind == LinkFrame::Kind::control);
  CHECK(header_of(answer[0]).acknowledged == 4);
  CHECK(a.link.acknowledged_messages() == 0);
  a.take(0, answer);
  CHECK(a.link.acknowledged_messages() == 2);
  CHECK(a.frames(0).empty());
  CHECK(a.link.deadline() == kNever);
}

TEST_CASE("an acknowledgement waits for a frame that takes it along, but not for ever") {
  End a(small()), b(small());
  a.send("abc");
  b.take(0, a.frames(0));
  CHECK(b.frames(0).empty());
  CHECK(b.link.deadline() == LinkSettings().acknowledge_after);
  b.send("x");
  const auto with = b.frames(1);
  REQUIRE(with.size() == 1);
  CHECK(header_of(with[0]).acknowledged == 1);
  CHECK(b.link.deadline() == 1 + 10 * kMs);  // its own frame's

  End c(small());
  End d(small());
  c.send("abc");
  d.take(0, c.frames(0));
  d.link.time_passed(d.link.deadline());
  CHECK(d.frames(kMs).size() == 1);
}

TEST_CASE(
    "frames that are not acknowledged are repeated, each time after twice as long, and dropped where they came twice") {
  End a(small()), b(small());
  a.send("abc");
  const auto first = a.frames(0);
  std::vector<Nanos> at;
  for (Nanos last = 0; at.size() < 4;) {
    const Nanos due = a.link.deadline();
    a.link.time_passed(due - 1);
    CHECK(a.frames(due - 1).empty());
    a.link.time_passed(due);
    const auto again = a.frames(due);
    REQUIRE(again.size() == 1);
    CHECK(header_of(again[0]).sequence == 0);
    at.push_back(due - last);
    last = due;
    b.take(due, again);
  }
  CHECK(at == std::vector<Nanos>{10 * kMs, 20 * kMs, 40 * kMs, 80 * kMs});
  b.take(200 * kMs, first);
  CHECK(b.user.got == "abc|");
  CHECK(b.link.counters().duplicates == 4);
  CHECK(a.link.counters().repeated == 4);
}

TEST_CASE("a frame is repeated at once where three others have come after it") {
  End a(small()), b(small());
  a.send("aaaabbbbccccdddd");
  const auto sent = a.frames(0);
  REQUIRE(sent.size() == 4);
  for (int i : {1, 2, 3}) {
    b.take(1, {sent[std::size_t(i)]});
    a.take(1, b.frames(1));
  }
  const auto again = a.frames(1);
  REQUIRE(again.size() == 1);
  CHECK(header_of(again[0]).sequence == 0);
  b.take(2, again);
  CHECK(b.user.got == "aaaabbbbccccdddd|");
}

TEST_CASE("no more is in flight than the receiver has room for, and it is asked for credit that got lost") {
  End a(small()), b(small());
  b.user.takes = false;
  a.send("aaaabbbbccccddddeeeeffff");
  const auto sent = a.frames(0);
  CHECK(sent.size() == 4);
  b.take(0, sent);
  a.take(0, b.frames(0));
  CHECK(a.frames(0).empty());  // acknowledged, but no room
  b.user.takes = true;
  b.link.take_more(1);
  CHECK(b.user.got == "aaaabbbbccccdddd");
  CHECK(b.frames(1).size() == 1);  // lost
  const Nanos due = a.link.deadline();
  REQUIRE(due < 100 * kMs);
  a.link.time_passed(due);
  const auto probe = a.frames(due);
  REQUIRE(probe.size() == 1);
  CHECK(header_of(probe[0]).kind == LinkFrame::Kind::control);
  b.take(due, probe);
  a.take(due, b.frames(due));
  b.take(due, a.frames(due));
  CHECK(b.user.got == "aaaabbbbccccddddeeeeffff|");
}

TEST_CASE("damaged frames are dropped, and any bytes may come") {
  End a(small()), b(small());
  a.send("abcd");
  const auto sent = a.frames(0);
  for (std::size_t i = 0; i < sent[0].size(); ++i) {
    Bytes bad = sent[0];
    bad[i] ^= std::byte(4);
    CHECK_FALSE(b.link.received(0, bad));
    bad.resize(i);
    CHECK_FALSE(b.link.received(0, bad));
  }
  CHECK(b.user.got == "");
  CHECK(b.link.counters().damaged == 2 * sent[0].size());
  CHECK(b.take(0, sent));
  CHECK(b.user.got == "abcd|");
}

TEST_CASE("frames of another epoch do not enter this one") {
  End a(small()), b(small());
  a.send("old.");
  const auto old = a.frames(0);
  b.link.enter_epoch(1, 1);
  b.take(1, old);
  CHECK(b.user.got == "");
  a.link.enter_epoch(2, 1);
  b.take(2, old);
  CHECK(b.link.counters().foreign == 2);
  a.send("new.");
  b.take(2, a.frames(2));
  CHECK(b.user.got == "new.|");
  // One that comes before its receiver has entered the epoch is sent again.
  a.link.enter_epoch(3, 7);
  a.send("7");
  b.take(3, a.frames(3));
  CHECK(b.user.got == "new.|");
  b.link.enter_epoch(4, 7);
  a.link.time_passed(a.link.deadline());
  b.take(500 * kMs, a.frames(500 * kMs));
  CHECK(b.user.got == "new.|7|");
}

TEST_CASE(
    "on an ordered wire nothing is repeated in time, and the next connection goes on where the last one stopped") {
  LinkSettings s = small();
  s.ordered_wire = true;
  s.credits = 100;
  End a(s), b(s);
  a.send("aaaabbbbcccc");
  CHECK(a.frames(0).empty());  // not connected
  for (End* e : {&a, &b}) e->link.connected(0);
  auto sent = a.frames(0);
  REQUIRE(sent.size() == 4);
  CHECK(header_of(sent[0]).kind == LinkFrame::Kind::resume);
  CHECK(a.link.deadline() == kNever);
  sent.resize(3);  // the last one is lost with the connection
  b.take(0, sent);
  b.send("back");
  b.frames(0);  // lost
  for (End* e : {&a, &b}) e->link.broken(1);
  CHECK(a.frames(1).empty());
  a.send("more");
  for (End* e : {&a, &b}) e->link.connected(2);
  const auto resume_a = a.frames(2), resume_b = b.frames(2);
  REQUIRE(resume_a.size() == 1);  // no data before it is known where to go on
  REQUIRE(resume_b.size() == 1);
  CHECK(header_of(resume_b[0]).acknowledged == 2);
  a.take(2, resume_b);
  b.take(2, resume_a);
  b.take(2, a.frames(2));
  a.take(2, b.frames(2));
  CHECK(b.user.got == "aaaabbbbcccc|more|");
  CHECK(a.user.got == "back|");
  CHECK(b.link.counters().duplicates == 0);
  CHECK(a.link.counters().reconnects == 1);
}

TEST_CASE("a reader that takes parts of frames is sent the rest alone") {
  LinkSettings s = small();
  s.ordered_wire = true;
  s.checksums = false;
  End a(s), b(s);
  for (End* e : {&a, &b}) e->link.connected(0);
  a.send("abcdefgh");
  auto sent = a.frames(0);
  REQUIRE(sent.size() == 3);
  const LinkFrame f = header_of(sent[1]);
  CHECK(b.link.begin(0, f) == Link::Verdict::take);  // and then three bytes of it come
  for (End* e : {&a, &b}) e->link.broken(1);
  a.link.connected(2);
  b.link.connected(2, 3);
  b.take(2, a.frames(2));
  a.take(2, b.frames(2));
  sent = a.frames(2);
  REQUIRE(sent.size() == 2);
  const LinkFrame rest = header_of(sent[0]);
  CHECK(rest.sequence == f.sequence);
  CHECK(rest.offset == 3);
  CHECK(rest.bytes == 1);
  CHECK(std::string(1, char(sent[0].back())) == "d");
  CHECK(b.link.begin(2, rest) == Link::Verdict::take);
  b.link.taken(2, rest);
  CHECK(b.link.begin(2, header_of(sent[1])) == Link::Verdict::take);
  CHECK(std::string(1, char(sent[1].back())) == "h");
  b.link.taken(2, header_of(sent[1]));
  // It was taken once.
  CHECK(b.link.begin(2, rest) == Link::Verdict::skip);
}

TEST_CASE("an idle link is kept alive, and a peer that says nothing for too long is lost") {
  LinkSettings s = small();
  s.keep_alive = 10 * kMs;
  s.lost_after = 35 * kMs;
  End a(s), b(s);
  Nanos now = 0;
  for (; now < 500 * kMs; now += 5 * kMs)
    for (End* e : {&a, &b}) {
      End& other = e == &a ? b : a;
      e->link.time_passed(now);
      other.take(now, e->frames(now));
    }
  CHECK_FALSE(a.link.lost());
  CHECK_FALSE(b.link.lost());
  // Only one way gets through: the other side is lost to the one that hears nothing.
  for (const Nanos end = now + 100 * kMs; now < end; now += 5 * kMs) {
    a.link.time_passed(now);
    b.link.time_passed(now);
    b.take(now, a.frames(now));
    b.frames(now);
  }
  CHECK(a.link.lost());
  CHECK(a.frames(now).empty());
  CHECK(a.link.deadline() == kNever);
}

TEST_CASE("a wire that stays broken for too long is lost, at the very time") {
  LinkSettings s = small();
  s.ordered_wire = true;
  s.lost_after = 35 * kMs;
  End a(s);
  a.link.connected(0);
  a.link.broken(10 * kMs);
  CHECK(a.link.deadline() == 45 * kMs);
  a.link.time_passed(45 * kMs - 1);
  CHECK_FALSE(a.link.lost());
  a.link.time_passed(45 * kMs);
  CHECK(a.link.lost());
  a.link.connected(46 * kMs);
  CHECK(a.frames(46 * kMs).empty());
}

}  // namespace link_events
