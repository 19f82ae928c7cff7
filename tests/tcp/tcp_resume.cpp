// Connections that break, dialled again: traffic goes on where it stopped (GCCL_LINK_LOST_MS).
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "libgccl/transports/tcp/connect/accept.hpp"
#include "libgccl/transports/tcp/data/link.hpp"
#include "libgccl/transports/tcp/data/unacknowledged.hpp"
#include "tests/support/from_environment.hpp"
#include "tests/support/resets.hpp"
#include "tests/support/tcp_traffic.hpp"
#include "tests/support/wide.hpp"

using namespace tcp_test;

namespace {

double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

// A message in each direction, so that the two are connected.
void meet(World* w) {
  char x[2] = {1, 2}, y[2] = {};
  auto *s0 = (*w)[0].send(1, &x[0], 1), *s1 = (*w)[1].send(0, &x[1], 1);
  auto *r0 = (*w)[0].receive(1, &y[0], 1), *r1 = (*w)[1].receive(0, &y[1], 1);
  REQUIRE(w->until_done({s0, s1, r0, r1}));
}

// Until it is: a signal takes its time.
void stop(const test::Child& child) {
  child.kill(SIGSTOP);
  int status = 0;
  REQUIRE(waitpid(child.pid(), &status, WUNTRACED) == child.pid());
}

// Two ranks; 1 is a process of its own. Once they are connected it says so, and then does what `then` says.
struct Pair {
  struct Shared {
    std::atomic<int> opened, ready;
    std::byte addresses[2][GCCL_BACKEND_ADDRESS_BYTES];
  };
  explicit Pair(const std::function<void(tcp_test::Rank&)>& then)
      : shared(static_cast<Shared*>(
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        child([&] {
          alarm(60);
          tcp_test::Rank self;
          begin(&self, 1);
          ++shared->ready;
          then(self);
        }) {
    begin(&here, 0);
    while (shared->ready < 1) usleep(100);
  }
  ~Pair() { munmap(shared, sizeof(Shared)); }
  void begin(tcp_test::Rank* self, std::uint32_t rank) const {
    self->rank = rank;
    self->open(2);
    self->open_port(2, 1, shared->addresses[rank]);
    for (++shared->opened; shared->opened < 2;) usleep(100);
    self->connect(2, 1, shared->addresses);
    char x = 1, y = 0;
    auto *s = self->send(1 - rank, &x, 1), *r = self->receive(1 - rank, &y, 1);
    while (s->result != GCCL_SUCCESS || r->result != GCCL_SUCCESS)
      if (!self->poll()) _exit(100);
  }
  // How long rank 0 takes to have lost the other, from now on.
  double lost_after_ms() {
    const auto begun = Clock::now();
    while (here.poll() && ms_since(begun) < 20000) usleep(200);
    return ms_since(begun);
  }

  Shared* const shared;
  tcp_test::Rank here;
  test::Child child;
};

}  // namespace

// First it hurts, then all must come, once and unchanged. GCCL_TEST_RESUME_SEEDS=N GCCL_TEST_RESUME_SEED=first.
TEST_CASE("connections that are reset at random moments go on in the middle of messages, in both directions") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000");
  const std::uint64_t first = test::from_environment("GCCL_TEST_RESUME_SEED", 1),
                      seeds = test::from_environment("GCCL_TEST_RESUME_SEEDS", test::wide() ? 12 : 3);
  unsigned resets = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    const Variable streams("GCCL_TCP_STREAMS", seed % 3 == 0 ? "3" : "1");
    const Variable zero_copy("GCCL_TCP_ZEROCOPY", seed % 2 == 0 ? "1" : "0");
    // So often also handshakes are hit, and what both sides say when they go on.
    test::Resets breaks(seed, std::chrono::microseconds(seed % 2 ? 400 : 3000));
    run_traffic(2 + seed % 2, 2, 40, seed);
    resets += breaks.stop();
  }
  CHECK(resets > 10 * seeds);
}

TEST_CASE("a long message goes on after each of many resets, whichever end hears of them, and is counted") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000");
  World w(2);
  meet(&w);
  const auto data = pattern(5, 64 << 20), back = pattern(6, 64 << 20);
  std::vector<unsigned char> got(data.size()), got_back(back.size());
  auto *s = w[0].send(1, data.data(), data.size()), *r = w[1].receive(0, got.data(), got.size());
  auto *s2 = w[1].send(0, back.data(), back.size()), *r2 = w[0].receive(1, got_back.data(), got_back.size());
  unsigned resets = 0;
  for (const GCCL_Transfer* t : {s, r, s2, r2})
    while (t->result == GCCL_IN_PROGRESS && resets < 20) {
      const std::uint64_t before = tcp_moved_bytes(w[0].port);
      REQUIRE(w.until([&] { return tcp_moved_bytes(w[0].port) - before > (3 << 20) || t->result == GCCL_SUCCESS; }));
      const auto all = test::tcp_connections();
      if (!all.empty()) resets += test::reset_connection(all[resets % all.size()]);
    }
  REQUIRE(w.until_done({s, r, s2, r2}));
  CHECK(got == data);
  CHECK(got_back == back);
  CHECK(resets >= 10);
  std::uint64_t repeated = 0;
  for (const std::uint32_t rank : {0u, 1u}) {
    const LinkCounts c = tcp_link_counts(w[rank].port);
    CHECK(c.reconnects > 0);
    CHECK(c.reconnects <= 2 * resets);
    repeated += c.bytes_repeated;
  }
  CHECK(repeated > 0);
  CHECK(repeated < resets * (std::uint64_t(32) << 20));
}

// As a device on the way does that is shut down in good order. The other connections of the link stay as they are.
TEST_CASE("a connection that ends while its peer lives is made anew, also where others of the link may bring more") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000");
  const Variable streams("GCCL_TCP_STREAMS", "3");
  World w(2);
  meet(&w);
  const auto data = pattern(5, 32 << 20), back = pattern(6, 32 << 20);
  for (unsigned round = 0; round < 12; ++round) {
    CAPTURE(round);
    std::vector<unsigned char> got(data.size()), got_back(back.size());
    auto *s = w[0].send(1, data.data(), data.size()), *r = w[1].receive(0, got.data(), got.size());
    auto *s2 = w[1].send(0, back.data(), back.size()), *r2 = w[0].receive(1, got_back.data(), got_back.size());
    const std::uint64_t before = tcp_moved_bytes(w[0].port);
    REQUIRE(w.until([&] { return tcp_moved_bytes(w[0].port) - before > (3 << 20) || s->result == GCCL_SUCCESS; }));
    const auto all = test::tcp_connections();
    REQUIRE(!all.empty());
    shutdown(all[round % all.size()], SHUT_RD);
    REQUIRE(w.until_done({s, r, s2, r2}));
    CHECK(got == data);
    CHECK(got_back == back);
  }
  CHECK(tcp_link_counts(w[0].port).reconnects + tcp_link_counts(w[1].port).reconnects > 0);
}

TEST_CASE("without GCCL_LINK_LOST_MS a connection that is reset is a lost peer") {
  World w(2);
  meet(&w);
  char x = 0;
  w[0].receive(1, &x, 1);
  for (const int fd : test::tcp_connections()) test::reset_connection(fd);
  REQUIRE(w.until([&] { return w[0].fault.result != GCCL_SUCCESS; }));
  CHECK(w[0].fault.result == GCCL_ERR_PEER_LOST);
  CHECK(tcp_link_counts(w[0].port).reconnects == 0);
}

TEST_CASE("without it a connection that ends is one, too, where both ranks wait and neither says anything more") {
  const Variable v("GCCL_TCP_STREAMS", "2");
  for (std::size_t which = 0; which < 4; ++which) {
    CAPTURE(which);
    World w(2);
    std::vector<unsigned char> got(8 << 20), back(8 << 20);
    meet(&w);
    REQUIRE(w.until([] { return test::tcp_connections().size() >= 4; }));
    w[0].receive(1, back.data(), back.size());
    w[1].receive(0, got.data(), got.size());
    const auto all = test::tcp_connections();
    REQUIRE(all.size() == 4);
    shutdown(all[which], SHUT_RD);
    REQUIRE(w.until([&] { return w[0].fault.result != GCCL_SUCCESS || w[1].fault.result != GCCL_SUCCESS; }));
    const GCCL_Fault& f = w[0].fault.result != GCCL_SUCCESS ? w[0].fault : w[1].fault;
    CHECK(f.result == GCCL_ERR_PEER_LOST);
    CHECK_MESSAGE(std::string(f.text).find(tcp::kClosed) != std::string::npos, f.text);
  }
}

TEST_CASE("a peer that is killed is missed long before the limit, also while its link is broken") {
  const Variable mends("GCCL_LINK_LOST_MS", "15000");
  for (const bool broken : {false, true}) {
    CAPTURE(broken);
    Pair pair([](tcp_test::Rank&) { pause(); });
    char x = 0;
    pair.here.receive(1, &x, 1);
    if (broken) {
      stop(pair.child);  // it does not answer any more
      for (const int fd : test::tcp_connections()) test::reset_connection(fd);
      for (const auto end = Clock::now() + 300ms; Clock::now() < end; usleep(200)) REQUIRE(pair.here.poll());
    }
    pair.child.kill(SIGKILL);
    CHECK(pair.lost_after_ms() < 5000);
    CHECK(pair.here.fault.result == GCCL_ERR_PEER_LOST);
    CHECK(pair.here.fault.peer == 1);
    CHECK(std::string(pair.here.fault.text).find("world rank 1)") != std::string::npos);
  }
}

TEST_CASE("a peer that cannot be dialled again is lost after the limit, and not before") {
  const Variable mends("GCCL_LINK_LOST_MS", "700");
  Pair pair([](tcp_test::Rank&) { pause(); });
  char x = 0;
  pair.here.receive(1, &x, 1);
  stop(pair.child);
  for (const int fd : test::tcp_connections()) test::reset_connection(fd);
  const double took = pair.lost_after_ms();
  CHECK(took >= 690);
  CHECK(took < 3000 * GCCL_TEST_SLOWDOWN);
  CHECK(pair.here.fault.result == GCCL_ERR_PEER_LOST);
  CHECK(pair.here.fault.peer == 1);
  pair.child.kill(SIGKILL);
}

TEST_CASE("a peer that computes for longer than the limit while its link breaks is waited for, whichever side dials") {
  const Variable mends("GCCL_LINK_LOST_MS", "500");
  const auto computes = [] { std::this_thread::sleep_for(1500ms); };
  const auto waits = [](tcp_test::Rank& rank, const GCCL_Transfer* t) {
    while (t->result == GCCL_IN_PROGRESS && rank.poll()) usleep(200);
    return t->result == GCCL_SUCCESS;
  };
  for (const bool here_computes : {false, true}) {
    CAPTURE(here_computes);
    std::atomic<int>* const broken =
        new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            std::atomic<int>(0);
    Pair pair([&](tcp_test::Rank& self) {
      char x = 7;
      const GCCL_Transfer* t = here_computes ? self.receive(0, &x, 1) : nullptr;
      while (*broken == 0) here_computes ? void(self.poll()) : void(usleep(100));
      if (!here_computes) computes(), t = self.send(0, &x, 1);
      const bool good = waits(self, t);
      self.close();
      _exit(good && x == 7 ? 0 : 1);
    });
    char x = here_computes ? 7 : 0;
    const GCCL_Transfer* t = here_computes ? nullptr : pair.here.receive(1, &x, 1);
    for (const int fd : test::tcp_connections()) test::reset_connection(fd);
    *broken = 1;
    if (here_computes) computes(), t = pair.here.send(1, &x, 1);
    CHECK_MESSAGE(waits(pair.here, t), pair.here.fault.text);
    CHECK(x == 7);
    pair.here.close();
    CHECK(pair.child.wait() == 0);
    munmap(broken, sizeof *broken);
  }
}

TEST_CASE("a peer that has left the communicator is missed at once, although its process lives") {
  const Variable mends("GCCL_LINK_LOST_MS", "15000");
  for (const std::uint32_t leaver : {0u, 1u}) {
    CAPTURE(leaver);
    World w(2);
    meet(&w);
    kTcp->close_port(w[leaver].port);
    w[leaver].port = nullptr;
    char x = 0;
    w[1 - leaver].receive(leaver, &x, 1);
    const auto begun = Clock::now();
    REQUIRE(w.until([&] { return w[1 - leaver].fault.result != GCCL_SUCCESS; }));
    CHECK(ms_since(begun) < 5000);
    CHECK(w[1 - leaver].fault.result == GCCL_ERR_PEER_LOST);
  }
}

// What it says when it goes on must not be answered with a reset, which would drop what is still in this rank's
// buffers.
TEST_CASE("what was sent to a peer that is stopped comes to it, although this rank has left before it goes on") {
  const Variable mends("GCCL_LINK_LOST_MS", "15000");
  std::atomic<unsigned>* const messages =
      new (mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<unsigned>(0);
  const auto data = pattern(9, 20000);
  Pair pair([&](tcp_test::Rank& self) {
    while (*messages == 0) self.poll(), usleep(100);
    std::vector<std::vector<unsigned char>> got(*messages, std::vector<unsigned char>(data.size()));
    for (auto& g : got) {
      const auto* r = self.receive(0, g.data(), g.size());
      while (r->result == GCCL_IN_PROGRESS && self.poll()) usleep(10);
      if (r->result != GCCL_SUCCESS) std::fprintf(stderr, "%s\n", self.fault.text), _exit(1);
      if (g != data) _exit(2);
    }
    self.close();
    _exit(0);
  });
  tcp_test::Rank& here = pair.here;
  stop(pair.child);
  // More than its end of the connection holds.
  const auto unsent = [] {
    int most = 0;
    for (const int fd : test::tcp_connections())
      if (int n = 0; ioctl(fd, SIOCOUTQ, &n) == 0) most = std::max(most, n);
    return most;
  };
  unsigned sent = 0;
  for (bool stays = false; !stays; ++sent) {
    const auto* s = here.send(1, data.data(), data.size());
    for (const auto end = Clock::now() + 20s; s->result == GCCL_IN_PROGRESS && Clock::now() < end;)
      REQUIRE(here.poll());
    REQUIRE(s->result == GCCL_SUCCESS);
    for (int i = 0; i < 300 && (stays = unsent() > 150000); ++i) usleep(1000);
  }
  *messages = sent;
  kTcp->close_port(here.port);
  here.port = nullptr;
  pair.child.kill(SIGCONT);
  CHECK(pair.child.wait() == 0);
  munmap(messages, sizeof *messages);
}

// All of it is in this machine's buffers. What is acknowledged then nobody reads: the system answers by a reset.
TEST_CASE("what has arrived of a peer that has ended is received, however often it is acknowledged") {
  const Variable mends("GCCL_LINK_LOST_MS", "15000");
  constexpr std::size_t kMessages = 12;
  const auto data = pattern(6, 64 << 10);
  Pair pair([&](tcp_test::Rank& self) {
    for (std::size_t i = 0; i < kMessages; ++i)
      for (const auto* s = self.send(0, data.data(), data.size()); s->result != GCCL_SUCCESS;)
        if (!self.poll()) _exit(100);
    _exit(0);
  });
  CHECK(pair.child.wait() == 0);
  tcp_test::Rank& here = pair.here;
  for (std::size_t i = 0; i < kMessages; ++i) {
    std::vector<unsigned char> got(data.size());
    const auto* r = here.receive(1, got.data(), got.size());
    while (r->result == GCCL_IN_PROGRESS && here.poll()) usleep(100);
    REQUIRE_MESSAGE(r->result == GCCL_SUCCESS, here.fault.text);
    CHECK(got == data);
    for (int k = 0; k < 10; ++k) here.poll(), usleep(100);  // what is owed is said, and answered
  }
  char x = 0;
  here.receive(1, &x, 1);
  CHECK(pair.lost_after_ms() < 5000);
  CHECK(here.fault.result == GCCL_ERR_PEER_LOST);
}

// Its last word and the end of its connection are read at once.
TEST_CASE("a send completes that the peer has received before it left, also where this rank looks later") {
  const Variable mends("GCCL_LINK_LOST_MS", "15000");
  for (const std::uint32_t leaver : {0u, 1u}) {
    CAPTURE(leaver);
    World w(2);
    meet(&w);
    tcp_test::Rank &stays = w[1 - leaver], &leaves = w[leaver];
    const auto data = pattern(8, 300000);  // too long to be complete before the peer has it
    std::vector<unsigned char> got(data.size());
    const auto *s = stays.send(leaver, data.data(), data.size()),
               *r = leaves.receive(1 - leaver, got.data(), got.size());
    for (const auto end = Clock::now() + 20s; r->result == GCCL_IN_PROGRESS && Clock::now() < end; usleep(100))
      REQUIRE(leaves.poll());
    REQUIRE(r->result == GCCL_SUCCESS);
    CHECK(s->result == GCCL_IN_PROGRESS);
    kTcp->close_port(leaves.port);
    leaves.port = nullptr;
    const auto polls = [&](Clock::duration limit, const std::function<bool()>& until) {
      for (const auto end = Clock::now() + limit; Clock::now() < end && !until() && stays.poll();) usleep(200);
    };
    polls(20s, [&] { return s->result != GCCL_IN_PROGRESS; });
    CHECK(s->result == GCCL_SUCCESS);
    polls(500ms, [] { return false; });  // in which a broken connection would be missed
    CHECK_MESSAGE(stays.fault.result == GCCL_SUCCESS, stays.fault.text);
    CHECK(got == data);
  }
}

TEST_CASE("a stranger who claims to be a peer's next connection is refused, and nothing is disturbed") {
  const Variable mends("GCCL_LINK_LOST_MS", "2000");
  World w(2, 1, "the secret");
  meet(&w);
  const std::uint32_t node[2] = {}, world[2] = {0, 1};
  const GCCL_Port_spec spec{sizeof spec, 1, 2, 1, 55, node, world, 0};
  void* port = nullptr;
  std::byte wire[GCCL_BACKEND_ADDRESS_BYTES];
  char text[GCCL_BACKEND_TEXT_BYTES];
  REQUIRE(kTcp->open_port(w[1].instance, &spec, &port, wire, text) == GCCL_SUCCESS);
  tcp::PortAddress address;
  REQUIRE(tcp::decode(wire, &address));
  kTcp->close_port(port);
  for (const char* secret : {"", "another"})
    for (const auto kind : {tcp::ConnectionRequest::Kind::stream, tcp::ConnectionRequest::Kind::ask}) {
      tcp::ConnectionRequest request;
      request.kind = kind;
      request.communicator = 1;
      request.nonce = address.nonce;
      request.from = 0, request.to = 1;
      request.connection = 1000;
      request.fresh = false;
      Fd fd;
      REQUIRE(dial(SocketAddress::loopback(address.addresses[0].port()), &fd).ok());
      Handshake handshake = Handshake::dial(secret, encode(request));
      Handshake::State state;
      do {
        pollfd p{fd.get(), POLLIN | POLLOUT, 0};
        ::poll(&p, 1, 100);
        state = handshake.advance(fd.get());
      } while (state == Handshake::State::wants_read || state == Handshake::State::wants_write);
      CHECK(state == Handshake::State::failed);
    }
  meet(&w);
  CHECK(tcp_link_counts(w[1].port).reconnects == 0);
}

// Against a plain copy of all bytes: after any history of writes, acknowledgements, copies and breaks, what is sent
// again is what was written, and a transfer's memory is let go of exactly once, when it is needed no more.
TEST_CASE("what is not acknowledged is kept, wherever it lies") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    tcp::Unacknowledged kept;
    std::vector<unsigned char> all;  // that was ever written
    std::deque<std::pair<GCCL_Transfer, std::vector<unsigned char>>> transfers;
    std::size_t released = 0;
    const auto release = [&](GCCL_Transfer* t) {
      ++released;
      // Its owner may write to it now.
      for (auto& [transfer, bytes] : transfers)
        if (&transfer == t) std::fill(bytes.begin(), bytes.end(), 0xee);
    };
    const auto anyone = [](const GCCL_Transfer*) { return true; };
    for (int step = 0; step < 200; ++step) {
      switch (random() % 6) {
        case 0:
        case 1: {  // a copied part, and perhaps a part of a transfer in two writes
          if (kept.behind()) break;
          const auto head = pattern(random(), random() % 3 ? random() % 100 : random() % 100000);
          const std::size_t bytes = random() % 2 ? 0 : 2 + random() % 5000;
          auto& [t, data] = transfers.emplace_back(GCCL_Transfer{}, pattern(random(), bytes));
          std::byte* const at = reinterpret_cast<std::byte*>(data.data());
          const std::size_t now = bytes > 0 && random() % 4 ? 1 + random() % bytes : 0;
          const std::size_t wrote = now > 0 || head.empty() ? head.size() : random() % (head.size() + 1);
          std::byte* const copy = kept.prepare(head.size(), bytes > 0 ? &t : nullptr, at);
          if (!head.empty()) std::memcpy(copy, head.data(), head.size());
          kept.wrote(wrote, now, bytes > 0 ? &t : nullptr, at);
          all.insert(all.end(), head.begin(), head.begin() + std::ptrdiff_t(wrote));
          if (now > 0 && now < bytes) {
            kept.prepare(0, &t, at + now);
            kept.wrote(0, bytes - now, &t, at + now);
          }
          if (now > 0) all.insert(all.end(), data.begin(), data.end());
          if (now == 0) transfers.pop_back();
          break;
        }
        case 2: kept.copy_some(1 + random() % 4000, anyone, release); break;
        case 3: {
          const std::uint64_t to = kept.begin() + random() % (kept.sent() - kept.begin() + 1);
          REQUIRE(kept.acknowledge(to, release));
          break;
        }
        case 4: REQUIRE(kept.go_on_at(kept.begin() + random() % (kept.size() + 1), release)); break;
        case 5:
          while (kept.behind()) {
            iovec pieces[4];
            const int n = kept.unsent(pieces, 1 + random() % 60000);
            REQUIRE(n > 0);
            for (int i = 0; i < n; ++i) {
              REQUIRE(std::memcmp(pieces[i].iov_base, &all[kept.sent()], pieces[i].iov_len) == 0);
              kept.sent(pieces[i].iov_len);
            }
          }
      }
      REQUIRE(kept.end() == all.size());
    }
    CHECK_FALSE(kept.acknowledge(kept.end() + 1, release));
    CHECK_FALSE(kept.go_on_at(kept.end() + 1, release));
    REQUIRE(kept.go_on_at(kept.end(), release));
    CHECK(released == transfers.size());
    CHECK(kept.size() == 0);
  }
}
