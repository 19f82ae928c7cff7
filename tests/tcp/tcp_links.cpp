// One link, without a port: what it makes of the ends of its streams, of later connections, of words behind resets.
#include "libgccl/transports/tcp/data/link.hpp"
#include "tests/support/tcp_ranks.hpp"

using namespace tcp_test;

namespace {

constexpr std::uint64_t kLong = 8 << 20;  // comes over several streams

tcp::Settings settings_of(bool mends, bool checks) {
  tcp::Settings s;
  if (mends) s.link_lost = 5s;
  s.checks = checks;
  return s;
}

// Its peer is the test, which has the far ends of its streams.
struct LinkAlone {
  explicit LinkAlone(bool mends = false, bool checks = false)
      : settings(settings_of(mends, checks)), link(1, 0, mends, checks) {}
  // All streams, or the one that is asked for; or the next connection of it.
  void connect(std::uint32_t streams) {
    for (std::uint32_t i = 0; i < streams; ++i) REQUIRE(connect({.stream = i, .streams = streams, .number = 1}));
  }
  bool connect(const tcp::Link::Connection& c) {
    std::array<Fd, 2> ends = connected_pair();
    far.resize(c.streams);
    const bool fits = link.connect(c, std::move(ends[0]), settings, &done);
    if (fits) far[c.stream] = std::move(ends[1]);
    return fits;
  }
  void advance() { REQUIRE_MESSAGE(link.advance(&done, &staging, &problem), problem); }
  bool advance_until(const std::function<bool()>& condition, Clock::duration limit = 20s) {
    for (const auto end = Clock::now() + limit; !condition() && Clock::now() < end; usleep(200)) advance();
    return condition();
  }
  // Its header and so much of its payload.
  void hear(std::uint32_t stream, const tcp::Frame& frame, std::size_t bytes) {
    std::vector<std::byte> all(tcp::kFrameHeaderBytes + bytes);
    tcp::encode(frame, all.data());
    REQUIRE(send(far[stream].get(), all.data(), all.size(), 0) == ssize_t(all.size()));
  }

  const tcp::Settings settings;
  tcp::Completions done;
  tcp::Staging staging;
  std::string problem;
  std::vector<Fd> far;
  tcp::Link link;
};

// A message of zeros, or room for one.
struct OneMessage {
  explicit OneMessage(std::size_t bytes) : data(bytes) {
    transfer.data = data.data(), transfer.bytes = bytes, transfer.result = GCCL_IN_PROGRESS;
  }
  std::vector<std::byte> data;
  GCCL_Transfer transfer{};
};

}  // namespace

// A peer with several addresses that was stopped in the midst of a handshake has given that up, and dials again.
TEST_CASE("of two connections the later one counts, unless something has moved over the first") {
  LinkAlone a;
  REQUIRE(a.connect({.number = 1}));
  a.far[0].reset();
  CHECK_FALSE(a.connect({.number = 1}));
  REQUIRE(a.connect({.number = 2}));
  OneMessage m(1);
  a.link.post_send(&m.transfer);
  a.advance();
  CHECK(a.done.take_only(&m.transfer));
  CHECK_FALSE(a.connect({.number = 3}));
  char got[tcp::kFrameHeaderBytes + 1];
  CHECK(recv(a.far[0].get(), got, sizeof got, MSG_WAITALL) == sizeof got);
}

// A peer that leaves ends them all, a device on the way perhaps one.
TEST_CASE("a receive is given up where one stream of its link ends, and the peer lives and says nothing more") {
  struct Case {
    const char* name;
    std::uint32_t ends;
    std::uint64_t begun, part;  // bytes of the message that come over the first stream, and over the one that ends
    bool at_once;
  };
  for (const Case& c : {Case{"the first stream, before anything came over it", 0, 0, 0, false},
                        Case{"the first stream, behind a part of the message", 0, 1000, 0, false},
                        Case{"the first stream, within its part", 0, 1000, 999, true},
                        Case{"another one, before the message", 1, 0, 0, false},
                        Case{"another one, behind a part of the message", 1, 1000, 0, false},
                        Case{"another one, within its part", 1, 1000, 999, true}}) {
    CAPTURE(std::string(c.name));
    LinkAlone a;
    a.connect(3);
    OneMessage m(kLong);
    a.link.post_receive(&m.transfer);
    CHECK_FALSE(a.link.timed());
    if (c.begun > 0) a.hear(0, {.message_bytes = kLong, .bytes = c.begun}, c.begun);
    if (c.part > 0) a.hear(c.ends, {.message_bytes = kLong, .offset = c.begun, .bytes = c.part + 1}, c.part);
    shutdown(a.far[c.ends].get(), SHUT_WR);
    bool well = true, waited = false;
    for (const auto end = Clock::now() + 20s; well && Clock::now() < end; usleep(500)) {
      well = a.link.advance(&a.done, &a.staging, &a.problem);
      waited = waited || (well && a.link.timed());  // it is tried again although no socket has anything to say
    }
    CHECK_FALSE(well);
    CHECK(a.problem == tcp::kClosed);
    CHECK(waited == !c.at_once);
  }
}

// As after an attempt that took too long for who dialled.
TEST_CASE("a stream that ended before anything came over it may be dialled again, and is as if it had not been") {
  for (const std::uint32_t stale : {0u, 1u}) {
    CAPTURE(stale);
    LinkAlone a;
    a.connect(2);
    OneMessage m(kLong);
    a.link.post_receive(&m.transfer);
    a.far[stale].reset();
    REQUIRE(a.advance_until([&] { return a.link.timed(); }));
    REQUIRE(a.connect({.stream = stale, .streams = 2, .number = 2}));
    CHECK_FALSE(a.link.timed());
    a.hear(0, {.message_bytes = kLong, .bytes = 1000}, 1000);
    for (int i = 0; i < 100; ++i) a.advance();
    CHECK_FALSE(a.link.timed());
  }
}

TEST_CASE("a message that comes over the first stream alone is waited for although another one has ended") {
  LinkAlone a;
  a.connect(2);
  OneMessage long_one(kLong), short_one(1000);
  const auto received = [&] { return !a.link.transfers(); };
  a.link.post_receive(&long_one.transfer);
  a.hear(0, {.message_bytes = kLong, .bytes = 1000}, 1000);
  shutdown(a.far[1].get(), SHUT_WR);
  REQUIRE(a.advance_until([&] { return a.link.timed(); }));
  a.hear(0, {.message_bytes = kLong, .offset = 1000, .bytes = kLong - 1000}, 0);
  const std::vector<std::byte> rest(kLong - 1000);
  std::size_t left = rest.size();
  CHECK(a.advance_until([&] {
    if (const ssize_t n = send(a.far[0].get(), rest.data(), left, MSG_DONTWAIT); n > 0) left -= std::size_t(n);
    return received();
  }));
  a.link.post_receive(&short_one.transfer);
  CHECK_FALSE(a.advance_until(received, 3s));
  a.hear(0, {.sequence = 1, .message_bytes = 1000, .bytes = 1000}, 1000);
  CHECK(a.advance_until(received));
}

TEST_CASE("nothing is said any more to a peer that leaves, nor on a connection that it makes anew meanwhile") {
  LinkAlone a(true);
  a.connect(1);
  CHECK_FALSE(a.link.streams()[0]->deaf);
  a.link.peer_leaves();
  CHECK(a.link.streams()[0]->deaf);
  REQUIRE(a.connect({.number = 2, .fresh = false}));
  CHECK(a.link.streams()[0]->deaf);
}

// Of ports that one thread closes one after the other the second does nothing while the first one waits.
TEST_CASE("what a port says as it takes leave is all that its peer waits for") {
  LinkAlone a(true, true);
  a.connect(1);
  LinkAlone b(true, true);
  REQUIRE(b.link.connect({.number = 1}, std::move(a.far[0]), b.settings, &b.done));
  OneMessage m(100), got(100);
  std::ranges::fill(m.data, std::byte(7));
  a.link.post_send(&m.transfer);
  b.link.post_receive(&got.transfer);
  a.advance();
  CHECK(b.advance_until([&] { return !b.link.transfers(); }));
  CHECK(got.data == m.data);
  CHECK_FALSE(a.link.delivered(true, &a.done));
  b.link.take_leave(&b.done);
  for (const auto end = Clock::now() + 20s; !a.link.delivered(true, &a.done) && Clock::now() < end;) usleep(100);
  CHECK(a.link.delivered(true, &a.done));
}

TEST_CASE("a link whose first stream is not there is left as it is, although another one owes an answer") {
  LinkAlone a(true);
  REQUIRE(a.connect({.stream = 1, .streams = 2, .number = 1}));
  a.link.streams()[1]->answer = true;
  a.advance();
  CHECK(a.link.streams()[1]->answer);
}

// The system says of a reset once, and of an end after that, which would be a peer's that wants nothing more.
TEST_CASE("a reset behind an acknowledgement breaks the connection, and the rest counts as undelivered") {
  LinkAlone a(true);
  a.connect(1);
  OneMessage first(100), second(100);
  a.link.post_send(&first.transfer);
  a.link.post_send(&second.transfer);
  a.advance();
  const std::uint64_t all = a.link.streams()[0]->sent.end();
  std::vector<std::byte> got(all / 2);
  REQUIRE(recv(a.far[0].get(), got.data(), got.size(), MSG_WAITALL) == ssize_t(got.size()));
  tcp::Frame word;
  word.control = true;
  word.acknowledged = all / 2;
  a.hear(0, word, 0);
  a.far[0].reset();  // with bytes that nobody has read
  for (int i = 0; i < 100; ++i, usleep(1000)) CHECK_FALSE(a.link.delivered(false, &a.done));
  CHECK(a.link.streams()[0]->acknowledged == all / 2);
}

// As a device on the way does, which the peer knows nothing of.
TEST_CASE("what lies on a stream that ended is undelivered where it broke for that, or has to be vouched for") {
  for (const bool checks : {false, true}) {
    CAPTURE(checks);
    LinkAlone a(true, checks);
    a.connect(2);
    OneMessage out(32 << 20), in(8 << 20);
    a.link.post_send(&out.transfer);
    a.link.post_receive(&in.transfer);
    tcp::Stream &first = *a.link.streams()[0], &other = *a.link.streams()[1];
    REQUIRE(a.advance_until([&] { return other.sent.end() > 0; }));
    shutdown(a.far[1].get(), SHUT_WR);
    REQUIRE(a.advance_until([&] { return other.ended; }));
    first.acknowledged = first.sent.end();  // so it is about the other one alone
    if (checks && other.state == tcp::Stream::State::open) CHECK_FALSE(a.link.delivered(true, &a.done));
    REQUIRE(a.advance_until([&] { return a.link.broken(); }));
    CHECK(other.sent.end() > other.acknowledged);
    first.acknowledged = first.sent.end();
    CHECK_FALSE(a.link.delivered(checks, &a.done));
    a.link.peer_leaves();
    CHECK(a.link.delivered(checks, &a.done));
  }
}
