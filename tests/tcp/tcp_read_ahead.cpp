// What a link that listens reads before it is received: who polls it hears that it goes on, and its memory is bounded.
#include <doctest/doctest.h>
#include <netinet/tcp.h>

#include <array>
#include <string>
#include <vector>

#include "libgccl/transports/tcp/data/link.hpp"
#include "tests/support/tcp_ranks.hpp"

using namespace gccl;
using namespace gccl::tcp;

namespace {

// Of a connection's two ends the first receives into small buffers, and the second sends from small ones.
void set_buffers(int first, int second) {
  const int small = 200 << 10, large = 4 << 20;
  setsockopt(first, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt(first, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  setsockopt(second, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
  setsockopt(second, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
}

std::array<Fd, 2> connection() {
  auto ends = tcp_test::connected_pair();
  set_buffers(ends[0].get(), ends[1].get());
  return ends;
}

// The same for all connections in this process, to the rank that listens there.
void set_buffers_of_those_to(std::uint16_t port) {
  for (int fd = 3; fd < 1024; ++fd) {
    if (SocketAddress::remote_end(fd).port() == port) set_buffers(fd, -1);
    if (SocketAddress::local_end(fd).port() == port && SocketAddress::remote_end(fd).valid()) set_buffers(-1, fd);
  }
}

GCCL_Transfer transfer(std::vector<char>* data) {
  GCCL_Transfer t{};
  t.data = data->data();
  t.bytes = data->size();
  t.signature = 7;
  t.grain = 4;
  return t;
}

}  // namespace

TEST_CASE("a link that takes a message out of what it had read ahead says so, over several streams") {
  constexpr std::uint32_t kStreams = 2;
  Settings settings;
  settings.link_lost = std::chrono::seconds(5);
  settings.zero_copy = Settings::ZeroCopyUse::never;
  Link a(1, 0, true, false), b(0, 0, true, false);
  Completions done;
  Staging staging;
  std::string problem;
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    auto ends = connection();
    REQUIRE(a.connect({i, kStreams, 1, true}, std::move(ends[0]), settings, &done));
    REQUIRE(b.connect({i, kStreams, 1, true}, std::move(ends[1]), settings, &done));
  }
  std::vector<char> sent_by_a(160 << 20, 1), got_by_b(sent_by_a.size()), sent_by_b(8 << 20, 2), got_by_a;
  got_by_a.resize(sent_by_b.size());
  GCCL_Transfer a_sends = transfer(&sent_by_a), b_receives = transfer(&got_by_b), b_sends = transfer(&sent_by_b),
                a_receives = transfer(&got_by_a);
  a_receives.consume = [](GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes) {
    std::copy_n(static_cast<const char*>(piece), bytes, static_cast<char*>(t->data) + offset);
  };
  int complete = 0;
  const auto advance = [&](Link& link) {
    REQUIRE(link.advance(&done, &staging, &problem));
    GCCL_Transfer* some[4];
    complete += done.take(some, 4);
  };
  // While it sends, the first listens for what the other acknowledges, and reads of the other's message meanwhile.
  a.post_send(&a_sends);
  b.post_send(&b_sends);
  for (int i = 0; i < 3000; ++i) advance(a), advance(b);
  b.post_receive(&b_receives);
  for (int i = 0; i < 1000000 && complete < 3; ++i) advance(a), advance(b);
  REQUIRE(complete == 3);
  a.post_receive(&a_receives);
  while (complete < 4) {
    const std::uint64_t before = a.moved_bytes() + a.taken_from_ahead();
    advance(a);
    // Else Port::poll() would wait for an event of its sockets, in which nothing is left.
    REQUIRE((complete == 4 || a.moved_bytes() + a.taken_from_ahead() > before || a.timed()));
  }
  CHECK(got_by_a == sent_by_b);
  CHECK(got_by_b == sent_by_a);
}

TEST_CASE("a port with many links takes a message out of what one of them had read ahead, with nothing more to come") {
  constexpr std::uint32_t kChannels = 20;
  const tcp_test::Variable streams("GCCL_TCP_STREAMS", "2"), lost("GCCL_LINK_LOST_MS", "5000");
  std::deque<tcp_test::Rank> w(2);
  tcp_test::Addresses addresses = tcp_test::open_ports(&w, kChannels);
  for (auto& r : w) r.connect(2, kChannels, addresses.data());
  std::vector<char> long_one(160 << 20, 1), long_got(long_one.size()), sent(8 << 20, 2), got(sent.size());
  char waits[kChannels] = {};
  const auto poll = [&] {
    if (!w[0].poll()) FAIL(w[0].fault.text);
    if (!w[1].poll()) FAIL(w[1].fault.text);
  };
  const auto until = [&](std::initializer_list<GCCL_Transfer*> all) {
    for (const auto limit = tcp_test::Clock::now() + std::chrono::seconds(20);
         std::ranges::any_of(all, [](const GCCL_Transfer* t) { return t->result != GCCL_SUCCESS; }); poll())
      if (tcp_test::Clock::now() > limit) return false;
    return true;
  };
  // All streams are connected once one has carried a part of a long message.
  std::vector<char> first(4 << 20), first_got(first.size());
  auto *first_in = w[1].receive(0, first_got.data(), first.size()),
       *first_out = w[0].send(1, first.data(), first.size());
  REQUIRE(until({first_in, first_out}));
  PortAddress there;
  REQUIRE(decode(tcp_test::address(&addresses, 1), &there));
  set_buffers_of_those_to(there.addresses[0].port());
  for (std::uint32_t c = 1; c < kChannels; ++c) w[0].receive(1, &waits[c], 1, 0, c);
  auto *early = w[1].send(0, sent.data(), sent.size()), *other = w[0].send(1, long_one.data(), long_one.size());
  for (int i = 0; i < 3000; ++i) poll();
  auto* const other_got = w[1].receive(0, long_got.data(), long_got.size());
  REQUIRE(until({early, other, other_got}));
  for (int i = 0; i < 2000; ++i) poll();
  GCCL_Transfer* const in = w[0].make(1, 0, got.data(), got.size(), 0);
  in->grain = 1;
  in->consume = [](GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes) {
    std::copy_n(static_cast<const char*>(piece), bytes, static_cast<char*>(t->data) + offset);
  };
  tcp_test::kTcp->receive(w[0].port, in);
  CHECK(until({in}));
  CHECK(got == sent);
  for (std::uint32_t c = 1; c < kChannels; ++c) w[1].send(0, &waits[c], 1, 0, c);
  for (int i = 0; i < 100; ++i) poll();
  tcp_test::close_all(&w);
}

TEST_CASE("what is read ahead by a receiver that is always one message behind takes no more memory with time") {
  constexpr std::size_t kMessage = 1 << 20, kPiece = 64 << 10;
  ReadAhead ahead;
  std::uint64_t in = 0, out = 0;
  for (int messages = 0; messages < 300; ++messages) {
    for (std::size_t got = 0; got < kMessage; got += kPiece) {
      const auto room = ahead.more_room(kPiece);
      for (std::byte& b : room) b = std::byte(in++ / 1000);
      ahead.grew(room.size());
    }
    while (ahead.size() > kMessage) {
      REQUIRE(*ahead.data() == std::byte(out / 1000));
      ahead.drop(kPiece);
      out += kPiece;
    }
  }
  CHECK(ahead.dropped() == out);
  CHECK(ahead.held_bytes() <= 8 * kMessage);
}
