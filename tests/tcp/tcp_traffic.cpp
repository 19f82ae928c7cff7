// Messages over the TCP backend: real sockets, several ranks in one process.
#include "tests/support/tcp_traffic.hpp"

#include "libgccl/transports/tcp/data/stream.hpp"
#include "tests/support/own_entries.hpp"

using namespace tcp_test;

TEST_CASE("random messages in random posting order arrive whole, in order, on every channel") {
  run_traffic(3, 2, 25, 1);
}

TEST_CASE("several ports of one instance, each used by a thread of its own") {
  constexpr std::uint32_t kPorts = 3;
  World w(2);
  std::deque<tcp_test::Rank> more(2 * kPorts);
  std::byte addresses[kPorts][2][GCCL_BACKEND_ADDRESS_BYTES];
  for (std::uint32_t i = 0; i < 2 * kPorts; ++i) {
    more[i].borrow(w[i % 2]);
    more[i].open_port(2, 2, addresses[i / 2][i % 2], 100 + i / 2);
  }
  std::vector<std::string> wrong(2 * kPorts);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 2 * kPorts; ++i) {
    more[i].connect(2, 2, addresses[i / 2], 100 + i / 2);
    threads.emplace_back([&, i] { wrong[i] = traffic(more[i], 2, 2, 20, 10 + i / 2); });
  }
  for (auto& t : threads) t.join();
  for (const auto& text : wrong) CHECK(text == "");
  more.clear();
}

TEST_CASE("random messages over several streams") {
  const Variable v("GCCL_TCP_STREAMS", "3");
  run_traffic(2, 2, 40, 2);
}

TEST_CASE("random messages sent from the user's pages") {
  const Variable v("GCCL_TCP_ZEROCOPY", "1");
  run_traffic(2, 1, 60, 3);
  const Variable s("GCCL_TCP_STREAMS", "2");
  run_traffic(2, 1, 60, 4);
}

TEST_CASE("a rank with many peers serves them all, in any order") {
  constexpr std::uint32_t kRanks = 40, kRounds = 30;
  const std::uint64_t seed = 8;
  CAPTURE(seed);
  for (const char* streams : {"1", "2"}) {
    const Variable v("GCCL_TCP_STREAMS", streams);
    World w(kRanks);
    Random random(seed);
    std::list<std::vector<unsigned char>> kept;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      std::vector<std::function<void()>> moves;
      std::vector<std::pair<GCCL_Transfer*, std::vector<unsigned char>*>> expected;
      std::vector<GCCL_Transfer*> sends;
      for (std::uint32_t p = 1; p < kRanks; ++p)
        for (const auto& [from, to] : {std::pair{0u, p}, std::pair{p, 0u}}) {
          const std::size_t bytes = random() % 8 ? random() % 3000 : random() % 700000;
          auto* data = &kept.emplace_back(pattern(random(), bytes));
          auto* got = &kept.emplace_back(bytes);
          moves.push_back(
              [&, from = from, to = to, data] { sends.push_back(w[from].send(to, data->data(), data->size())); });
          moves.push_back([&, from = from, to = to, got, data] {
            expected.emplace_back(w[to].receive(from, got->data(), got->size()), got);
            expected.emplace_back(nullptr, data);
          });
        }
      std::shuffle(moves.begin(), moves.end(), random);
      for (auto& move : moves) {
        move();
        if (random() % 3 == 0) w[0].poll();
      }
      REQUIRE(w.until([&] {
        for (auto& [t, got] : expected)
          if (t && t->result == GCCL_IN_PROGRESS) return false;
        for (auto* t : sends)
          if (t->result == GCCL_IN_PROGRESS) return false;
        return true;
      }));
      for (std::size_t i = 0; i < expected.size(); i += 2) {
        CHECK(expected[i].first->result == GCCL_SUCCESS);
        CHECK(*expected[i].second == *expected[i + 1].second);
      }
      kept.clear();
    }
  }
}

TEST_CASE("messages nobody receives yet do not hold up other channels") {
  World w(2, 2);
  const auto big = pattern(1, 32 << 20);
  std::vector<unsigned char> got(big.size());
  unsigned char a = 7, b = 0;
  auto* s = w[0].send(1, big.data(), big.size());
  auto* t = w[0].send(1, &a, 1, 5, 1);
  auto* r = w[1].receive(0, &b, 1, 5, 1);
  REQUIRE(w.until_done({t, r}));
  CHECK(b == 7);
  CHECK(s->result == GCCL_IN_PROGRESS);
  const std::uint64_t before = tcp_moved_bytes(w[1].port);
  auto* q = w[1].receive(0, got.data(), got.size());
  REQUIRE(w.until_done({s, q}));
  CHECK(got == big);
  CHECK(tcp_moved_bytes(w[1].port) - before >= big.size());
}

TEST_CASE("a message leaves although the other rank does nothing, whichever of the two dials") {
  struct Case {
    std::uint32_t sender;
    bool late;  // the receiver's port connects only once the sender has asked it to dial
  };
  for (const Case c : {Case{0, false}, Case{1, false}, Case{1, true}}) {
    CAPTURE(c.sender);
    CAPTURE(c.late);
    std::deque<tcp_test::Rank> ranks(2);
    const Addresses addresses = open_ports(&ranks, 2);
    tcp_test::Rank &from = ranks[c.sender], &to = ranks[1 - c.sender];
    if (!c.late) to.connect(2, 2, addresses.data());
    from.connect(2, 2, addresses.data());
    const unsigned char a = 7;
    unsigned char b = 0;
    const auto* s = from.send(to.rank, &a, 1, 5, 1);
    const auto complete = [](tcp_test::Rank& rank, const GCCL_Transfer* t, Clock::duration limit) {
      Pauses pauses;
      for (const auto end = Clock::now() + limit; t->result == GCCL_IN_PROGRESS && Clock::now() < end; pauses.between())
        REQUIRE(rank.poll());
      return t->result == GCCL_SUCCESS;
    };
    if (c.late) {
      CHECK(!complete(from, s, 200ms));
      to.connect(2, 2, addresses.data());
    }
    CHECK(complete(from, s, 20s));
    CHECK(complete(to, to.receive(from.rank, &b, 1, 5, 1), 20s));
    CHECK(b == 7);
  }
}

// Else a wait for a send of gigabytes, whose receiver keeps up, is inside one call beyond its limit of time.
TEST_CASE("one poll moves a part of a long message, however fast the other side is") {
  World w(2);
  constexpr std::size_t kBytes = 512 << 20;  // no machine sends that in 5 ms
  const std::vector<unsigned char> data(kBytes, 7);
  std::vector<unsigned char> got(kBytes);
  auto *r = w[1].receive(0, got.data(), 0), *s = w[0].send(1, data.data(), 0);
  REQUIRE(w.until_done({r, s}));  // connected
  for (const std::uint32_t watched : {0, 1}) {
    CAPTURE(watched);
    s = w[0].send(1, data.data(), kBytes);
    r = w[1].receive(0, got.data(), kBytes);
    const auto end = Clock::now() + 120s;
    const auto moves = [&](std::uint32_t rank, const GCCL_Transfer* t) {
      std::uint64_t most = 0;
      while (t->result == GCCL_IN_PROGRESS && Clock::now() < end) {
        const std::uint64_t before = tcp_moved_bytes(w[rank].port);
        if (!w[rank].poll()) break;
        most = std::max(most, tcp_moved_bytes(w[rank].port) - before);
      }
      return most;
    };
    std::thread other([&] { moves(1 - watched, watched == 0 ? r : s); });
    const std::uint64_t most = moves(watched, watched == 0 ? s : r);
    other.join();
    CHECK(s->result == GCCL_SUCCESS);
    CHECK(r->result == GCCL_SUCCESS);
    CHECK(most > 0);
    // A receiver's first bytes come with the header; a sender also goes on until its time is over.
    CHECK(most <= (watched == 0 ? kBytes - 1 : 2 * tcp::kVisitBytes + tcp::kFrameHeaderBytes));
    CHECK(got == data);
    std::fill(got.begin(), got.end(), 0);
  }
}

TEST_CASE("different lengths and signatures end the receive with what was found, and the link goes on") {
  World w(2);
  const std::vector<std::uint64_t> sizes = {0, 1, 100, 5000, 70000, 3 << 20};
  // A message and one behind it, and their receives.
  const auto exchange = [&](std::uint32_t from, std::uint64_t sent, std::uint64_t wanted, std::uint64_t signature) {
    CAPTURE(sent);
    CAPTURE(wanted);
    CAPTURE(signature);
    const auto data = pattern(sent, sent), more = pattern(9, 50000);
    std::vector<unsigned char> got(wanted), rest(more.size());
    auto* s = w[from].send(1 - from, data.data(), sent, 11);
    auto* s2 = w[from].send(1 - from, more.data(), more.size(), 12);
    auto* r = w[1 - from].receive(from, got.data(), wanted, signature);
    auto* r2 = w[1 - from].receive(from, rest.data(), rest.size(), 12);
    REQUIRE(w.until_done({s, s2, r, r2}));
    const bool fits = sent == wanted && signature == 11;
    CHECK(r->result == (fits ? GCCL_SUCCESS : GCCL_ERR_MISMATCH));
    if (!fits) {
      CHECK(r->bytes_found == sent);
      CHECK(r->signature_found == 11);
    }
    CHECK(r2->result == GCCL_SUCCESS);
    CHECK(rest == more);
  };
  for (const auto sent : sizes)
    for (const auto wanted : sizes) exchange(0, sent, wanted, 11);
  for (const auto bytes : sizes) exchange(1, bytes, bytes, 22);
}

TEST_CASE("what send accepted arrives even when the sender leaves at once") {
  for (const char* streams : {"1", "2", "4"}) {
    CAPTURE(streams);
    const Variable v("GCCL_TCP_STREAMS", streams);
    for (const std::size_t bytes : {1, 4000, 1 << 20, 8 << 20}) {
      CAPTURE(bytes);
      World w(2);
      const auto data = pattern(3, bytes);
      std::vector<unsigned char> got(bytes), unread(100);
      // Connected, and with a message in the other direction that nobody will ever receive.
      auto* s0 = w[1].send(0, unread.data(), unread.size());
      auto* s = w[0].send(1, data.data(), bytes > 1 << 20 ? 4000 : bytes);
      auto* r = w[1].receive(0, got.data(), 0, 99);  // a mismatch connects without taking the payload
      REQUIRE(w.until_done({r, s0, s}));
      auto* r2 = w[1].receive(0, got.data(), bytes);
      auto* s2 = w[0].send(1, data.data(), bytes);
      for (const auto end = Clock::now() + 20s; s2->result == GCCL_IN_PROGRESS && Clock::now() < end;) {
        // What is longer than sockets take is received meanwhile, and no more of it.
        for (int i = 0; i < 100 && s2->result == GCCL_IN_PROGRESS; ++i) w[0].poll();
        if (s2->result == GCCL_IN_PROGRESS) w[1].poll();
      }
      REQUIRE(s2->result == GCCL_SUCCESS);
      w[0].close();
      REQUIRE(w.until([&] { return r2->result != GCCL_IN_PROGRESS || w[1].fault.result != GCCL_SUCCESS; }));
      CHECK_MESSAGE(r2->result == GCCL_SUCCESS, w[1].fault.text);
      CHECK(got == data);
      // One more, and it is missed.
      w[1].receive(0, got.data(), 1);
      REQUIRE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }));
      CHECK(w[1].fault.result == GCCL_ERR_PEER_LOST);
    }
  }
}

TEST_CASE("a sender that leaves with its buffers full, and unread messages, loses nothing") {
  for (const char* streams : {"1", "2", "4"}) {
    CAPTURE(streams);
    const Variable v("GCCL_TCP_STREAMS", streams);
    // Longer ones go over several streams, of which each begins where another has no room.
    const auto data = pattern(5, streams == std::string("1") ? 64 << 10 : 1 << 20);
    World w(2);
    unsigned char unread[100] = {};
    auto* r = w[1].receive(0, unread, 0);
    auto* s = w[0].send(1, unread, 0);
    auto* ignored = w[1].send(0, unread, sizeof unread);
    REQUIRE(w.until_done({r, s, ignored}));
    std::size_t sent = 0, received = 0;
    const auto receive_one = [&] {
      std::vector<unsigned char> got(data.size());
      auto* t = w[1].receive(0, got.data(), got.size());
      REQUIRE(w.until([&] { return t->result != GCCL_IN_PROGRESS || w[1].fault.result != GCCL_SUCCESS; }));
      REQUIRE_MESSAGE(t->result == GCCL_SUCCESS, w[1].fault.text);
      CHECK(got == data);
      ++received;
    };
    const auto taken = [&] { return s->result == GCCL_SUCCESS; };
    for (bool full = false; !full; ++sent) {
      s = w[0].send(1, data.data(), data.size());
      for (int i = 0; i < 100 && !taken(); ++i) w.until(taken, 1ms);
      full = !taken();
    }
    // Until the last one has found room; how much that takes differs from kernel to kernel, and from time to time.
    while (received < sent && !w.until(taken, 300ms * GCCL_TEST_SLOWDOWN)) receive_one();
    REQUIRE(received < sent);
    w[0].close();
    while (received < sent) receive_one();
  }
}

TEST_CASE("cancelled transfers are forgotten, at any stage") {
  for (const bool zero_copy : {false, true}) {
    const Variable v("GCCL_TCP_ZEROCOPY", zero_copy ? "1" : "0");
    World w(2);
    std::vector<unsigned char> big(16 << 20), got(16 << 20);
    auto* s = w[0].send(1, big.data(), big.size());
    auto* unconnected = w[1].send(0, big.data(), 1);
    auto* r = w[1].receive(0, got.data(), got.size());
    const int rounds = zero_copy ? 3000 : 300;
    for (int i = 0; i < rounds && s->backend[1] == s->bytes; ++i) w.until([] { return true; });
    kTcp->cancel(w[0].port, s);
    kTcp->cancel(w[1].port, unconnected);
    kTcp->cancel(w[1].port, r);
    w[0].close();
    w[1].close();
  }
}

TEST_CASE("a thousand rounds leave no descriptor and no thread behind") {
  { World w(2); }
  const std::size_t fds = test::own("fd"), tasks = test::own_at_rest("task");
  for (int i = 0; i < 1000; ++i) {
    World w(2, 2);
    char x = 1, y = 0;
    // Some are closed with handshakes in flight.
    if (i % 10 == 0) {
      auto* s = w[i % 20 == 0].send(i % 20 != 0, &x, 1, 0, 1);
      auto* r = w[i % 20 != 0].receive(i % 20 == 0, &y, 1, 0, 1);
      REQUIRE(w.until_done({s, r}));
    } else if (i % 3 == 0) {
      w[0].receive(1, &y, 1);
      if (i % 2) w[0].poll();
    }
  }
  CHECK(test::own("fd") == fds);
  CHECK(test::comes_to("task", tasks));
}
