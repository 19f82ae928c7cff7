// Bytes that change on their way although TCP's checksum fits (GCCL_LINK_CHECK): a device between two ranks does that.
#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include "tests/support/from_environment.hpp"
#include "tests/support/tcp_traffic.hpp"

using namespace tcp_test;

namespace {

// Between a rank and those that dial it: passes on what comes, in both directions, and changes a bit of one in so many
// pieces of up to 16 KiB, but for the first ones of each connection, in which the two prove who they are.
class Device {
 public:
  Device(SocketAddress to, std::uint64_t seed, unsigned one_in) : to_(to), random_(seed), one_in_(one_in) {
    REQUIRE(listen_on(SocketAddress::loopback(0), &listener_).ok());
    at = SocketAddress::local_end(listener_.get());
    thread_ = std::thread([this] { run(); });
  }
  ~Device() {
    stop_ = true;
    thread_.join();
  }
  // Ends all connections. Of the next one it changes a bit of the byte at `place`, of what comes from that end (1: from
  // the rank).
  void cut(int from, std::uint64_t place, unsigned bit) {
    const std::lock_guard lock(mutex_);
    next_ = {from, place, bit};
    cuts_ = true;
  }
  // Changes a bit of the next frame's payload that comes from that end.
  void spoil(int from) { spoils_[from] = true; }
  SocketAddress at;
  std::atomic<unsigned> damaged{0};

 private:
  struct Strike {
    int from = 0;
    std::uint64_t place = ~std::uint64_t(0);
    unsigned bit = 0;
  };
  struct Way {
    Fd ends[2];
    std::uint64_t passed[2] = {};
    std::vector<std::byte> kept[2];
    bool over = false;
    Strike strike{};
  };
  static constexpr std::uint64_t kProofBytes = 400;

  void run() {
    while (!stop_) {
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const Way& w : ways_)
        for (int i = 0; i < 2; ++i)
          polled.push_back(
              {w.ends[i].get(), short((w.kept[i].empty() ? POLLIN : 0) | (w.kept[1 - i].empty() ? 0 : POLLOUT)), 0});
      ::poll(polled.data(), polled.size(), 20);
      Fd fd;
      SocketAddress who;
      if (accept_from(listener_.get(), &fd, &who).ok() && fd) {
        Way& w = ways_.emplace_back();
        w.ends[0] = std::move(fd);
        const std::lock_guard lock(mutex_);
        w.strike = std::exchange(next_, {});
        if (!dial(to_, &w.ends[1]).ok()) ways_.pop_back();
      }
      if (cuts_.exchange(false)) ways_.clear();
      for (Way& w : ways_)
        for (int i = 0; i < 2; ++i) pass(w, i);
      ways_.remove_if([](const Way& w) { return w.over; });
    }
  }
  // What the other side does not take yet is kept, and no more is read: a way that is full holds up no other.
  void pass(Way& w, int from) {
    if (w.over) return;
    std::vector<std::byte>& kept = w.kept[from];
    if (kept.empty()) {
      kept.resize(16384);
      const ssize_t n = ::recv(w.ends[from].get(), kept.data(), kept.size(), MSG_DONTWAIT);
      w.over = n == 0 || (n < 0 && errno != EAGAIN);
      kept.resize(std::size_t(std::max<ssize_t>(n, 0)));
      if (kept.empty()) return;
      if (const Strike& s = w.strike; s.from == from && s.place - w.passed[from] < kept.size()) {
        kept[s.place - w.passed[from]] ^= std::byte(1u << s.bit);
        ++damaged;
      }
      if (w.passed[from] > kProofBytes && one_in_ > 0 && random_() % one_in_ == 0) {
        kept[random_() % kept.size()] ^= std::byte(1u << random_() % 8);
        ++damaged;
      }
      if (kept.size() > tcp::kFrameHeaderBytes && spoils_[from].exchange(false)) {
        kept[tcp::kFrameHeaderBytes] ^= std::byte(1);
        ++damaged;
      }
      w.passed[from] += kept.size();
    }
    const ssize_t n = ::send(w.ends[1 - from].get(), kept.data(), kept.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    w.over = n < 0 && errno != EAGAIN;
    if (n > 0) kept.erase(kept.begin(), kept.begin() + n);
  }

  const SocketAddress to_;
  Random random_;
  const unsigned one_in_;
  Fd listener_;
  std::list<Way> ways_;
  std::mutex mutex_;
  Strike next_;
  std::atomic<bool> cuts_{false}, stop_{false}, spoils_[2] = {};
  std::thread thread_;
};

// Two ranks with such a device between them.
struct DamagedPair {
  DamagedPair(std::uint64_t seed, unsigned one_in) : ranks(2), addresses(open_ports(&ranks, 2)) {
    tcp::PortAddress a;
    REQUIRE(tcp::decode(address(&addresses, 1), &a));
    device.emplace(a.addresses[0], seed, one_in);
    lead(&addresses, 1, device->at);
    for (auto& r : ranks) r.connect(2, 2, addresses.data());
  }
  ~DamagedPair() { close_all(&ranks); }
  // Polls both until that holds; false: that took longer, or a port has failed.
  bool until(const std::function<bool()>& condition, Clock::duration limit) {
    Pauses pauses;
    for (const auto end = Clock::now() + limit; Clock::now() < end; pauses.between()) {
      if (condition()) return true;
      if (!ranks[0].poll() || !ranks[1].poll()) return false;
    }
    return false;
  }
  std::deque<tcp_test::Rank> ranks;
  Addresses addresses;
  std::optional<Device> device;
};

}  // namespace

// GCCL_TEST_DAMAGE_SEEDS=N GCCL_TEST_DAMAGE_SEED=first.
TEST_CASE("what is damaged on its way is found, and sent again, wherever in headers and messages it is") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000"), checks("GCCL_LINK_CHECK", "1");
  const std::uint64_t first = test::from_environment("GCCL_TEST_DAMAGE_SEED", 1),
                      seeds = test::from_environment("GCCL_TEST_DAMAGE_SEEDS", 4);
  unsigned damaged = 0;
  std::uint64_t found = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    const Variable streams("GCCL_TCP_STREAMS", seed % 3 == 0 ? "3" : "1");
    const Variable zero_copy("GCCL_TCP_ZEROCOPY", seed % 2 == 0 ? "1" : "0");
    DamagedPair pair(seed, seed % 2 == 0 ? 40 : 200);
    std::string wrong[2];
    std::atomic<int> through{0};
    std::vector<std::thread> threads;
    for (const std::uint32_t r : {0u, 1u})
      threads.emplace_back([&, r] {
        wrong[r] = traffic(pair.ranks[r], 2, 2, 25, seed);
        for (++through; through < 2 && wrong[r].empty() && pair.ranks[r].poll();) std::this_thread::yield();
      });
    for (auto& t : threads) t.join();
    for (const auto& text : wrong) CHECK(text == "");
    for (auto& r : pair.ranks) found += tcp_link_counts(r.port).frames_damaged;
    damaged += pair.device->damaged;
  }
  MESSAGE(damaged << " bits changed, " << found << " frames found damaged");
  CHECK(damaged > 0);
  CHECK(found > 0);
  CHECK(found <= damaged);
}

TEST_CASE("without connections that resume a damaged message ends the port, which names the peer and the damage") {
  const Variable checks("GCCL_LINK_CHECK", "1");
  for (const bool consumed : {false, true}) {
    CAPTURE(consumed);
    DamagedPair pair(7, 8);
    const auto data = pattern(1, 8 << 20);
    Incoming in;
    in.got.resize(data.size());
    pair.ranks[0].send(1, data.data(), data.size());
    GCCL_Transfer* const r = pair.ranks[1].receive(0, in.got.data(), data.size());
    if (consumed) r->consume = consume, r->grain = 24, r->owner = &in, r->data = nullptr;
    for (const auto end = Clock::now() + 20s; Clock::now() < end && pair.ranks[1].poll();)
      if (pair.ranks[0].fault.result == GCCL_SUCCESS) pair.ranks[0].poll();
    CHECK(r->result == GCCL_IN_PROGRESS);
    CHECK(pair.ranks[1].fault.result == GCCL_ERR_PEER_LOST);
    CHECK(pair.ranks[1].fault.peer == 0);
    CHECK(std::string(pair.ranks[1].fault.text).find("damaged on its way (wrong checksum)") != std::string::npos);
    CHECK(tcp_link_counts(pair.ranks[1].port).frames_damaged == 1);
    // Nothing of what was damaged went on.
    if (consumed) CHECK(std::equal(data.begin(), data.begin() + std::ptrdiff_t(in.consumed), in.got.begin()));
  }
}

// Where the first stream takes no more the rest of a long message goes over others; that of a short one never does.
TEST_CASE("messages of all lengths arrive over several streams that are checked and resume, however full these are") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000"), checks("GCCL_LINK_CHECK", "1"), streams("GCCL_TCP_STREAMS", "3");
  World w(2);
  std::list<std::vector<unsigned char>> sent, got;
  std::vector<GCCL_Transfer*> all;
  for (int i = 0; i < 80; ++i)
    for (const std::size_t bytes : {65537, 100000, 200000, 262144, 262145, 290000, 294912, 600000}) {
      sent.push_back(pattern(bytes + std::size_t(i), bytes));
      all.push_back(w[0].send(1, sent.back().data(), bytes));
    }
  for (int i = 0; i < 200; ++i) w[0].poll();  // as full as they get
  for (const auto& s : sent) {
    got.emplace_back(s.size());
    all.push_back(w[1].receive(0, got.back().data(), s.size()));
  }
  REQUIRE(w.until([&] { return std::ranges::all_of(all, [](auto* t) { return t->result == GCCL_SUCCESS; }); }, 60s));
  CHECK(got == sent);
}

// Both sides may notice first that the connection ended. The bytes are those of the first frame, of the verdict and of
// the answer by which the peer takes the connection, which no proof covers.
TEST_CASE("a connection is made anew where a byte of its handshake is damaged, whichever side begins") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000"), checks("GCCL_LINK_CHECK", "1");
  constexpr std::uint64_t kVerdict = 40, kAnswer = kVerdict + 33;
  for (const std::uint32_t first : {0u, 1u})
    for (const int from : {0, 1})
      for (const std::uint64_t place : {std::uint64_t(0), std::uint64_t(6), std::uint64_t(7), kVerdict, kAnswer})
        for (unsigned bit = 0; bit < (from == 1 && place == kAnswer ? 8 : 1); ++bit) {
          CAPTURE(first);
          CAPTURE(from);
          CAPTURE(place);
          CAPTURE(bit);
          DamagedPair pair(1, 0);
          int x[2] = {1, 2}, y[2] = {};
          const auto exchange = [&] {
            std::vector<GCCL_Transfer*> all;
            for (const std::uint32_t r : {first, 1 - first}) {
              all.push_back(pair.ranks[r].receive(1 - r, &y[r], sizeof y[r]));
              for (int i = 0; r == first && i < 100; ++i) pair.ranks[r].poll(), std::this_thread::sleep_for(50us);
            }
            for (const std::uint32_t r : {0u, 1u}) all.push_back(pair.ranks[r].send(1 - r, &x[r], sizeof x[r]));
            return pair.until(
                [&] { return std::ranges::all_of(all, [](auto* t) { return t->result == GCCL_SUCCESS; }); }, 10s);
          };
          REQUIRE(exchange());
          pair.device->cut(from, place, bit);
          x[0] = 7, x[1] = 8;
          CHECK(exchange());
          CHECK(pair.ranks[0].fault.text == std::string());
          CHECK(y[0] == 8);
          CHECK(y[1] == 7);
        }
}

TEST_CASE("a peer is lost where what it sends comes damaged each time") {
  const Variable mends("GCCL_LINK_LOST_MS", "500"), checks("GCCL_LINK_CHECK", "1");
  DamagedPair pair(7, 1);
  const auto data = pattern(1, 8 << 20);
  std::vector<unsigned char> got(data.size());
  pair.ranks[0].send(1, data.data(), data.size());
  pair.ranks[1].receive(0, got.data(), got.size());
  CHECK(!pair.until([&] { return pair.ranks[1].fault.result != GCCL_SUCCESS; }, 20s));
  CHECK(pair.ranks[1].fault.result == GCCL_ERR_PEER_LOST);
  CHECK(pair.ranks[1].fault.peer == 0);
  CHECK(std::string(pair.ranks[1].fault.text).find("damaged on its way (wrong checksum) for 500 ms") !=
        std::string::npos);
}

// Each side dials in turn: rank 0 does.
TEST_CASE("the last message of a rank that leaves is sent again where it came damaged") {
  const Variable mends("GCCL_LINK_LOST_MS", "20000"), checks("GCCL_LINK_CHECK", "1");
  for (const std::uint32_t leaver : {0u, 1u})
    for (const std::size_t bytes : {std::size_t(8), std::size_t(60000), std::size_t(3) << 20}) {
      CAPTURE(leaver);
      CAPTURE(bytes);
      DamagedPair pair(1, 0);
      tcp_test::Rank &leaves = pair.ranks[leaver], &stays = pair.ranks[1 - leaver];
      char x = 1, y = 0;
      const GCCL_Transfer* t = leaves.receive(1 - leaver, &y, 1);
      stays.send(leaver, &x, 1);
      REQUIRE(pair.until([&] { return t->result == GCCL_SUCCESS; }, 20s));
      const auto data = pattern(bytes, bytes);
      std::vector<unsigned char> got(bytes);
      pair.device->spoil(int(leaver));
      const GCCL_Transfer* const s = leaves.send(1 - leaver, data.data(), bytes);
      // What is long leaves its sender once it is copied; the receiver looks when that has left, as far as it does.
      for (const auto end = Clock::now() + 20s; s->result == GCCL_IN_PROGRESS && Clock::now() < end;) leaves.poll();
      REQUIRE(s->result == GCCL_SUCCESS);
      std::thread closing([&] {
        kTcp->close_port(leaves.port);
        leaves.port = nullptr;
      });
      std::this_thread::sleep_for(50ms);
      const GCCL_Transfer* const r = stays.receive(leaver, got.data(), bytes);
      for (const auto end = Clock::now() + 20s; r->result == GCCL_IN_PROGRESS && stays.poll() && Clock::now() < end;)
        std::this_thread::sleep_for(50us);
      CHECK_MESSAGE(r->result == GCCL_SUCCESS, stays.fault.text);
      CHECK(got == data);
      CHECK(pair.device->damaged == 1);
      stays.close();  // which says what it has taken
      closing.join();
    }
}
