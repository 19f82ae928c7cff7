// Peers that die, leave, stop or are cut off, seen by the TCP backend.
#include "libgccl/transports/tcp/connect/first_peers.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/tcp_ranks.hpp"

using namespace tcp_test;

TEST_CASE("a killed peer is named, whether or not it ever connected") {
  // Three processes; 1 is killed. 0 dials it, 2 waits for it to dial.
  struct Shared {
    std::atomic<int> opened, ready;
    std::byte addresses[3][GCCL_BACKEND_ADDRESS_BYTES];
  };
  for (const bool connect_first : {false, true}) {
    CAPTURE(connect_first);
    auto* const shared =
        static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto live = [&](std::uint32_t r) {
      alarm(30);
      Rank self;
      self.rank = r;
      self.open(3);
      self.open_port(3, 1, shared->addresses[r]);
      for (++shared->opened; shared->opened < 3;) usleep(100);
      self.connect(3, 1, shared->addresses);
      char x[2] = {};
      if (connect_first) {
        std::vector<GCCL_Transfer*> ts;
        for (std::uint32_t p = 0; p < 3; ++p)
          if (p != r) ts.insert(ts.end(), {self.send(p, &x[0], 1), self.receive(p, &x[1], 1)});
        for (bool all = false; !all;) {
          if (!self.poll()) _exit(100);
          all = true;
          for (auto* t : ts) all = all && t->result == GCCL_SUCCESS;
        }
      }
      ++shared->ready;
      if (r == 1) pause();
      while (shared->ready < 4) usleep(100);
      self.receive(1, &x[1], 1);
      while (self.poll()) usleep(500);
      // Short enough to be passed on behind the names of a rank and its call.
      const std::string text = self.fault.text;
      const bool named = self.fault.result == GCCL_ERR_PEER_LOST && self.fault.peer == 1 &&
                         text.find("world rank 1)") != std::string::npos && text.size() < 150;
      if (!named) std::fprintf(stderr, "rank %u: %d %u %s\n", r, self.fault.result, self.fault.peer, self.fault.text);
      _exit(named ? 0 : 101);
    };
    std::vector<test::Child> ranks;
    for (std::uint32_t r = 0; r < 3; ++r) ranks.emplace_back([&] { live(r); });
    while (shared->ready < 3) usleep(100);
    ranks[1].kill();
    ++shared->ready;
    for (const std::uint32_t r : {0, 1, 2}) CHECK(ranks[r].wait() == (r == 1 ? SIGKILL : 0));
    munmap(shared, sizeof(Shared));
  }
}

TEST_CASE("a peer that came late, and has closed cleanly, is not lost to those who want nothing more of it") {
  World w(3);
  char x[4] = {};
  // Rank 1 waits so long for 0, on its own node, to dial that it watches it.
  auto* from0 = w[1].receive(0, &x[0], 1);
  auto* from2 = w[1].receive(2, &x[1], 1);
  CHECK_FALSE(w.until([&] { return from0->result != GCCL_IN_PROGRESS; }, 1500ms));
  auto* s0 = w[0].send(1, "a", 1);
  REQUIRE(w.until_done({s0, from0}));
  w[0].close();
  CHECK_FALSE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }, 500ms));
  auto* s2 = w[2].send(1, "b", 1);
  REQUIRE(w.until([&] { return from2->result != GCCL_IN_PROGRESS || w[1].fault.result != GCCL_SUCCESS; }));
  CHECK(from2->result == GCCL_SUCCESS);
  CHECK(s2->result == GCCL_SUCCESS);
  // More is wanted of one that has left: it is missed.
  w[1].receive(0, &x[2], 1);
  REQUIRE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }));
  CHECK(w[1].fault.result == GCCL_ERR_PEER_LOST);
  CHECK(w[1].fault.peer == 0);
}

TEST_CASE("a peer that leaves without having come is missed, even where another link with it waited before") {
  World w(2, 2);
  char x[3] = {};
  auto* r0 = w[1].receive(0, &x[0], 1);
  CHECK_FALSE(w.until([&] { return r0->result != GCCL_IN_PROGRESS; }, 1500ms));
  auto* s0 = w[0].send(1, "a", 1);
  REQUIRE(w.until_done({s0, r0}));
  w[0].close();
  CHECK_FALSE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }, 300ms));
  w[1].receive(0, &x[1], 1, 0, 1);  // over a channel that was never connected
  REQUIRE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }));
  CHECK(w[1].fault.result == GCCL_ERR_PEER_LOST);
}

TEST_CASE("an abort reaches every rank, connected or not, even when its caller leaves at once") {
  for (const bool leave : {false, true}) {
    CAPTURE(leave);
    World w(4);
    char x[4] = {}, y = 0;
    auto* s = w[2].send(0, &x[2], 1);
    auto* r = w[0].receive(2, &y, 1);
    REQUIRE(w.until_done({s, r}));
    for (std::uint32_t i : {0u, 1u, 3u}) w[i].receive(2, &x[i], 1);
    GCCL_Fault f{GCCL_ERR_ABORTED, 2, "rank 2 called GCCL_Abort with code 5"};
    std::thread([&] { kTcp->abort(w[2].port, &f); }).join();
    if (leave) w[2].close();
    REQUIRE(w.until([&] {
      return w[0].fault.result != GCCL_SUCCESS && w[1].fault.result != GCCL_SUCCESS &&
             w[3].fault.result != GCCL_SUCCESS;
    }));
    for (std::uint32_t i : {0u, 1u, 3u}) {
      CHECK(w[i].fault.result == GCCL_ERR_ABORTED);
      CHECK(w[i].fault.peer == 2);
      CHECK(std::string(w[i].fault.text) == f.text);
    }
  }
}

TEST_CASE("a peer that aborts and leaves is lost to nobody, however long its abort is on the way") {
  const Variable quick("GCCL_TCP_PEER_TIMEOUT_MS", "2000");
  const Deaf deaf;
  for (const std::uint32_t leaver : {0u, 1u}) {  // watched by the other, or connected to it
    CAPTURE(leaver);
    const std::uint32_t stayer = 1 - leaver;
    std::deque<tcp_test::Rank> ranks(2);
    const Addresses addresses = open_ports(&ranks);
    // The leaver tries for a quarter of a second where nobody answers before it comes to the stayer.
    Addresses detour = addresses;
    lead(&detour, stayer, deaf.at, Detour::before);
    ranks[stayer].connect(2, 1, addresses.data());
    ranks[leaver].connect(2, 1, detour.data());
    char x[3] = {};
    ranks[stayer].receive(leaver, &x[0], 1);
    const auto poll_for = [&](Clock::duration limit) {
      Pauses pauses;
      for (const auto end = Clock::now() + limit; !ranks[stayer].fault.result && Clock::now() < end; pauses.between())
        ranks[stayer].poll();
    };
    if (leaver == 1) {  // dialled by the other
      ranks[leaver].send(stayer, "a", 1);
      for (const auto end = Clock::now() + 20s; ranks[stayer].transfers.back().result && Clock::now() < end;) {
        ranks[leaver].poll();
        ranks[stayer].poll();
      }
      REQUIRE(ranks[stayer].transfers.back().result == GCCL_SUCCESS);
      ranks[stayer].receive(leaver, &x[1], 1);
    }
    poll_for(1500ms * GCCL_TEST_SLOWDOWN);  // until it watches the leaver
    REQUIRE(ranks[stayer].fault.result == GCCL_SUCCESS);
    GCCL_Fault f{GCCL_ERR_MISMATCH, leaver, "it calls something else"};
    kTcp->abort(ranks[leaver].port, &f);
    kTcp->close_port(ranks[leaver].port);
    ranks[leaver].port = nullptr;
    poll_for(20s);
    CHECK(ranks[stayer].fault.result == GCCL_ERR_MISMATCH);
    CHECK(std::string(ranks[stayer].fault.text) == f.text);
  }
}

TEST_CASE("a rank that hears of a lost one passes it on, as the rank that said so may be killed before all know") {
  const Deaf deaf;
  for (const GCCL_Result result : {GCCL_ERR_PEER_LOST, GCCL_ERR_REVOKED}) {
    CAPTURE(result);
    // Rank 4 lives, and hears that it is called lost; one that has revoked knows that.
    const std::uint32_t n = 5, hear = result == GCCL_ERR_PEER_LOST ? 4 : 3;
    std::deque<tcp_test::Rank> ranks(n);
    const Addresses addresses = open_ports(&ranks);
    // Rank 0 reaches rank 1 alone.
    Addresses detour = addresses;
    for (std::uint32_t r = 2; r < n; ++r) lead(&detour, r, deaf.at);
    for (std::uint32_t r = 0; r < n; ++r) ranks[r].connect(n, 1, (r == 0 ? detour : addresses).data());
    const GCCL_Fault f{result, 4, "rank 4 is no more"};
    kTcp->abort(ranks[0].port, &f);
    bool passed_on[5] = {};
    Pauses pauses;
    for (const auto end = Clock::now() + 20s; Clock::now() < end; pauses.between()) {
      std::uint32_t heard = 0;
      for (std::uint32_t r = 1; r <= hear; ++r) {
        ranks[r].poll();
        if (ranks[r].fault.result == GCCL_SUCCESS) continue;
        ++heard;
        if (!std::exchange(passed_on[r], true)) kTcp->abort(ranks[r].port, &ranks[r].fault);
      }
      if (heard == hear) break;
    }
    for (std::uint32_t r = 1; r <= hear; ++r) {
      CHECK(ranks[r].fault.result == result);
      CHECK(std::string(ranks[r].fault.text) == f.text);
    }
  }
}

// A rank that ends because it has heard an abort is not the culprit for those that hear it later.
TEST_CASE("an abort counts where a rank that has heard it leaves before this one looks") {
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    World w(3);
    if (i % 2)
      for (Rank& rank : w.ranks) tcp_serves_alone(rank.instance);
    char x = 0, y = 0;
    auto* s = w[1].send(2, "a", 1);
    auto* r = w[2].receive(1, &x, 1);
    REQUIRE(w.until_done({s, r}));
    w[2].receive(1, &y, 1);
    GCCL_Fault f{GCCL_ERR_MISMATCH, 0, "rank 0 calls something else"};
    kTcp->abort(w[0].port, &f);
    while (w[1].fault.result == GCCL_SUCCESS) w[1].poll();
    w[1].close();
    REQUIRE(w.until([&] { return w[2].fault.result != GCCL_SUCCESS; }));
    CHECK(std::string(w[2].fault.text) == f.text);
  }
}

TEST_CASE("what a peer that left had to say counts where it was only watched, too") {
  World w(3);
  char x = 0;
  w[1].receive(0, &x, 1);  // and 0 does not dial
  CHECK_FALSE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }, 1500ms));
  GCCL_Fault f{GCCL_ERR_MISMATCH, 2, "rank 2 calls something else"};
  kTcp->abort(w[2].port, &f);
  while (w[0].fault.result == GCCL_SUCCESS) w[0].poll();
  w[0].close();
  REQUIRE(w.until([&] { return w[1].fault.result != GCCL_SUCCESS; }));
  CHECK(std::string(w[1].fault.text) == f.text);
}

TEST_CASE("a process that is stopped while it dials goes on afterwards") {
  Fd listener;
  REQUIRE(listen_on(SocketAddress::loopback(0), &listener).ok());
  const SocketAddress at = SocketAddress::local_end(listener.get());
  const auto taken = [&](int timeout_ms) {
    pollfd p{listener.get(), POLLIN, 0};
    Fd fd;
    SocketAddress who;
    if (poll(&p, 1, timeout_ms) == 1) (void)accept_from(listener.get(), &fd, &who);
    return fd;
  };
  test::Child dialler([&] {
    alarm(120);
    setenv("GCCL_TCP_PEER_TIMEOUT_MS", "4000", 1);
    std::byte addresses[2][GCCL_BACKEND_ADDRESS_BYTES];
    Rank self;
    tcp::PortAddress peer = address_of(0, &self);
    encode(peer, addresses[0]);
    peer.world_rank = 1;
    peer.addresses = {at};  // whose listener children close
    encode(peer, addresses[1]);
    self.connect(2, 1, addresses);
    self.send(1, "a", 1);
    while (self.fault.result == GCCL_SUCCESS) self.poll(), usleep(1000);
  });
  Fd first = taken(20000);
  REQUIRE(first);
  pollfd said{first.get(), POLLIN, 0};
  CHECK(poll(&said, 1, 20000) == 1);
  std::this_thread::sleep_for(500ms);  // its thread waits for an answer now
  dialler.kill(SIGSTOP);
  std::this_thread::sleep_for(5s);
  first.reset();  // somebody who waits for its next word no longer
  dialler.kill(SIGCONT);
  CHECK(taken(20000));
  dialler.kill();
  CHECK(dialler.wait() == SIGKILL);
}

TEST_CASE("a peer that cannot be reached is found while ports connect; one that is silent is not waited for") {
  // Ranks 0 and 2 are on different nodes, 0 dials. Somebody else is where rank 2's address leads.
  const SocketAddress loopback = SocketAddress::loopback(0);
  Fd listener;
  REQUIRE(listen_on(loopback, &listener).ok());
  const SocketAddress silent = SocketAddress::local_end(listener.get());
  const Deaf deaf;
  // Bound, so that nobody else gets its port, but not listening.
  const Fd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(bound.get(), loopback.data(), loopback.bytes()) == 0);
  const SocketAddress closed = SocketAddress::local_end(bound.get());

  struct Case {
    SocketAddress at;
    const char* said;  // null: it connects
  };
  for (const Case& c : {Case{deaf.at, "no answer"}, Case{closed, "Connection refused"}, Case{silent, nullptr}}) {
    CAPTURE(std::string(c.said ? c.said : "silent"));
    std::deque<tcp_test::Rank> ranks(3);
    Addresses addresses = open_ports(&ranks);
    lead(&addresses, 2, c.at);
    const std::uint32_t node[3] = {0, 0, 1}, world[3] = {0, 1, 2};
    const GCCL_Port_spec spec{sizeof spec, 0, 3, 1, 1, node, world, 1500};
    std::uint8_t reaches[3] = {};
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    const auto begin = Clock::now();
    const GCCL_Result result = kTcp->connect_port(ranks[0].port, &spec, addresses.data(), reaches, text);
    CHECK(Clock::now() - begin < 10s);
    if (!c.said) {
      CHECK(result == GCCL_SUCCESS);
      continue;
    }
    CHECK(result == GCCL_ERR_PEER_LOST);
    for (const std::string& part :
         {std::string("rank 0 at 127.0.0.1 cannot reach rank 2"), c.at.text(), std::string(c.said)})
      CHECK_MESSAGE(std::string(text).find(part) != std::string::npos, text);
  }
}

// Multicast: TCP has no way there, whatever the machine's networks are.
TEST_CASE("a peer to which there is no way is waited for until the limit; a refusal elsewhere says that it has ended") {
  const Variable limit("GCCL_TCP_PEER_TIMEOUT_MS", "2500");
  const SocketAddress no_way = SocketAddress::numeric("224.0.0.1", 1), nearby = SocketAddress::loopback(0);
  const Fd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(bound.get(), nearby.data(), nearby.bytes()) == 0);
  for (const bool refuses : {false, true}) {
    CAPTURE(refuses);
    std::deque<tcp_test::Rank> ranks(2);
    Addresses addresses = open_ports(&ranks);
    lead(&addresses, 1, refuses ? SocketAddress::local_end(bound.get()) : no_way);
    if (refuses) lead(&addresses, 1, no_way, Detour::before);
    ranks[0].connect(2, 1, addresses.data());
    const auto begin = Clock::now();
    ranks[0].send(1, "a", 1);
    while (ranks[0].poll() && Clock::now() < begin + 20s) std::this_thread::sleep_for(500us);
    const auto took = Clock::now() - begin;
    CHECK(ranks[0].fault.result == GCCL_ERR_PEER_LOST);
    CHECK(std::string(ranks[0].fault.text).find("Network is unreachable") != std::string::npos);
    if (!refuses) CHECK(took >= 2500ms);
    CHECK(took < 10s);
  }
}

// The peer's address is of a network that this machine has no part in, and then it has.
TEST_CASE("where a rank's network is down for a moment, first connections wait for it, and aborts") {
  enum : int { kGood, kFailed, kNoNetwork };
  for (const bool aborts : {false, true}) {
    CAPTURE(aborts);
    test::Child child([&]() -> int {
      if (!own_network() || !set_loopback(true)) return kNoNetwork;
      const char* const elsewhere = "10.99.99.1";
      std::deque<tcp_test::Rank> ranks(2);
      const Addresses addresses = open_ports(&ranks, 1, "secret");  // with one, every interface is listened on
      tcp::PortAddress peer;
      if (!tcp::decode(addresses.data() + GCCL_BACKEND_ADDRESS_BYTES, &peer)) return kFailed;
      Addresses cut_off = addresses;
      lead(&cut_off, 1, SocketAddress::numeric(elsewhere, peer.addresses[0].port()));
      ranks[0].connect(2, 1, cut_off.data());
      ranks[1].connect(2, 1, addresses.data());
      const auto both_poll_for = [&](Clock::duration limit, const std::function<bool()>& until) {
        for (const auto end = Clock::now() + limit; Clock::now() < end; std::this_thread::sleep_for(500us)) {
          const bool well = ranks[0].poll() && ranks[1].poll();
          if (!well || until()) return well;
        }
        return true;
      };
      char x = 0;
      const auto *s = aborts ? nullptr : ranks[0].send(1, "a", 1), *r = ranks[1].receive(0, &x, 1);
      const GCCL_Fault f{GCCL_ERR_ABORTED, 0, "over"};
      if (aborts) kTcp->abort(ranks[0].port, &f);
      if (!both_poll_for(1500ms, [] { return false; }) || !add_address(elsewhere)) return kFailed;
      const bool well = both_poll_for(20s, [&] { return s && s->result == GCCL_SUCCESS && r->result == GCCL_SUCCESS; });
      return (aborts ? !well && ranks[1].fault.result == GCCL_ERR_ABORTED : well && x == 'a') ? kGood : kFailed;
    });
    const int status = child.wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNetwork) {
      MESSAGE("skipped: this system gives no network namespace to this user");
      return;
    }
    CHECK(status == kGood);
  }
}

TEST_CASE("a rank that an abort does not reach has lost the one that aborts, rather than waiting for it") {
  Fd stranger;  // is where the abort goes
  REQUIRE(listen_on(SocketAddress::loopback(0), &stranger).ok());
  for (const std::uint32_t aborter : {0u, 1u}) {  // the other waits for it to dial, or dials it
    CAPTURE(aborter);
    const std::uint32_t other = 1 - aborter;
    std::deque<tcp_test::Rank> ranks(2);
    const Addresses addresses = open_ports(&ranks);
    Addresses astray = addresses;
    lead(&astray, other, SocketAddress::local_end(stranger.get()));
    ranks[other].connect(2, 1, addresses.data());
    ranks[aborter].connect(2, 1, astray.data());
    const GCCL_Fault f{GCCL_ERR_ABORTED, aborter, "over"};
    kTcp->abort(ranks[aborter].port, &f);
    pollfd called{stranger.get(), POLLIN, 0};
    REQUIRE(poll(&called, 1, 20000) == 1);
    Fd fd;
    SocketAddress who;
    REQUIRE(accept_from(stranger.get(), &fd, &who).ok());
    const std::vector<char> nonsense(700, 'x');
    REQUIRE(::send(fd.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL) == ssize_t(nonsense.size()));
    for (ssize_t n = 1; n > 0 || (n < 0 && errno == EAGAIN);) {  // until it is given up
      pollfd said{fd.get(), POLLIN, 0};
      REQUIRE(poll(&said, 1, 20000) == 1);
      char bytes[700];
      n = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    }
    char x = 0;
    ranks[other].receive(aborter, &x, 1);
    for (const auto end = Clock::now() + 20s; ranks[other].poll() && Clock::now() < end;)
      std::this_thread::sleep_for(500us);
    CHECK(ranks[other].fault.result == GCCL_ERR_PEER_LOST);
    CHECK(ranks[other].fault.peer == aborter);
  }
}

TEST_CASE("a lost peer is said to be where its connection led, not where it could not be reached") {
  const SocketAddress nearby = SocketAddress::numeric("127.0.0.9", 0);
  const Fd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(bound.get(), nearby.data(), nearby.bytes()) == 0);
  std::deque<tcp_test::Rank> ranks(2);
  Addresses addresses = open_ports(&ranks);
  lead(&addresses, 1, SocketAddress::local_end(bound.get()), Detour::before);
  for (tcp_test::Rank& r : ranks) r.connect(2, 1, addresses.data());
  char x = 1, y = 0;
  auto *s = ranks[0].send(1, &x, 1), *r = ranks[1].receive(0, &y, 1);
  while (s->result != GCCL_SUCCESS || r->result != GCCL_SUCCESS) {
    REQUIRE(ranks[0].poll());
    REQUIRE(ranks[1].poll());
  }
  ranks[0].receive(1, &y, 1);
  ranks[1].close();
  while (ranks[0].poll()) usleep(100);
  CHECK_MESSAGE(std::string(ranks[0].fault.text).find(" at 127.0.0.1 ") != std::string::npos, ranks[0].fault.text);
}

TEST_CASE("the first peers are few, on other nodes, and agreed upon") {
  for (const std::uint32_t size : {1u, 2u, 5u, 16u, 17u, 40u, 100u, 1000u})
    for (const std::uint32_t per_node : {1u, 3u, 8u}) {
      CAPTURE(size);
      CAPTURE(per_node);
      std::vector<std::uint32_t> node(size), world(size);
      for (std::uint32_t r = 0; r < size; ++r) node[r] = r / per_node, world[r] = r;
      std::vector<std::vector<std::uint32_t>> peers;
      for (std::uint32_t r = 0; r < size; ++r)
        peers.push_back(tcp::first_peers({sizeof(GCCL_Port_spec), r, size, 1, 1, node.data(), world.data(), 0}));
      bool agreed = true, near = true;
      std::size_t most = 0;
      for (std::uint32_t r = 0; r < size; ++r) {
        for (const std::uint32_t p : peers[r]) {
          agreed = agreed && node[p] != node[r] && std::ranges::binary_search(peers[p], r);
        }
        const std::uint32_t next = (r + 1) % size;
        near = near && (node[next] == node[r] || std::ranges::binary_search(peers[r], next));
        most = std::max(most, peers[r].size());
      }
      CHECK(agreed);
      CHECK(near);
      if (size > 16) CHECK(most <= 60);
    }
}
