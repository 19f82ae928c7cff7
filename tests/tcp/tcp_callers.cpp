// Which peers may dial a rank's TCP listener, and what strangers can do there.
#include <dlfcn.h>
#include <openssl/hmac.h>

#include <map>

#include "libgccl/transports/tcp/settings.hpp"
#include "tests/support/tcp_ranks.hpp"

using namespace tcp_test;

namespace {

// Where a rank listens, as a further port of its instance says.
tcp::PortAddress listener_of(tcp_test::Rank& r) {
  const std::uint32_t node[2] = {}, world[2] = {0, 1};
  const GCCL_Port_spec spec{sizeof spec, r.rank, 2, 1, 55, node, world, 0};
  void* port = nullptr;
  std::byte wire[GCCL_BACKEND_ADDRESS_BYTES];
  char text[GCCL_BACKEND_TEXT_BYTES];
  REQUIRE(kTcp->open_port(r.instance, &spec, &port, wire, text) == GCCL_SUCCESS);
  tcp::PortAddress address;
  REQUIRE(decode(wire, &address));
  kTcp->close_port(port);
  return address;
}

// Connects, says nothing, and connects anew as soon as it is dropped, with so many connections at a time.
void hold_connections(const SocketAddress& to, std::size_t count, const std::atomic<bool>& stop) {
  std::deque<Fd> held;
  while (!stop) {
    for (int i = 0; i < 100 && held.size() < count; ++i) {
      Fd fd;
      if (!dial(to, &fd).ok()) break;
      held.push_back(std::move(fd));
    }
    std::erase_if(held, [](const Fd& fd) {
      char x;
      const ssize_t n = recv(fd.get(), &x, 1, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN);
    });
    std::this_thread::sleep_for(1ms);
  }
}

// So many of those to come.
std::atomic<int> hmacs_that_fail{0};

}  // namespace

// In place of OpenSSL's: it finds no memory where a test says so.
extern "C" unsigned char* HMAC(const EVP_MD* type, const void* key, int key_bytes, const unsigned char* data,
                               std::size_t bytes, unsigned char* mac, unsigned* mac_bytes) {
  if (hmacs_that_fail > 0 && hmacs_that_fail-- > 0) return nullptr;
  static const auto real = reinterpret_cast<decltype(&HMAC)>(dlsym(RTLD_NEXT, "HMAC"));
  return real(type, key, key_bytes, data, bytes, mac, mac_bytes);
}

TEST_CASE("garbage, silence and slowness at the listener disturb nobody") {
  Rank probe;
  World w(2);
  Random random(6);
  const tcp::PortAddress address = listener_of(w[1]);
  std::vector<Fd> callers(400);
  for (std::size_t i = 0; i < callers.size(); ++i) {
    REQUIRE(dial(address.addresses[0], &callers[i]).ok());
    if (i % 3 == 0) continue;  // says nothing
    unsigned char bytes[700];
    for (auto& b : bytes) b = static_cast<unsigned char>(random());
    if (i % 6 == 1) std::memset(bytes, 0xff, sizeof bytes);
    [[maybe_unused]] const auto n = ::send(callers[i].get(), bytes, i % 2 ? sizeof bytes : 1, MSG_NOSIGNAL);
    if (i % 7 == 0) callers[i].reset();
  }
  const auto data = pattern(4, 100000);
  std::vector<unsigned char> got(data.size());
  const auto begin = Clock::now();
  auto* s = w[0].send(1, data.data(), data.size());
  auto* r = w[1].receive(0, got.data(), got.size());
  REQUIRE(w.until_done({s, r}));
  // More connections than may be unauthenticated at a time: the oldest are dropped long before their deadline of 5 s.
  CHECK(Clock::now() - begin < 4s);
  CHECK(got == data);
  CHECK(logged().find("refused 127.0.0.1") != std::string::npos);
}

TEST_CASE("without a secret only loopback is listened on; with one, every interface") {
  const auto own = interface_addresses();
  {
    Rank r;
    const auto a = address_of(0, &r);
    REQUIRE(a.addresses.size() == 1);
    CHECK(a.addresses[0].is_loopback());
    CHECK(a.loopback_only);
    CHECK(connects(a.addresses[0]));
    for (const auto& o : own)
      if (!o.is_link_local()) CHECK(!connects(o.with_port(a.addresses[0].port())));
  }
  {
    Rank r;
    const auto a = address_of(0, &r, "secret");
    for (const auto& to : a.addresses) CHECK(connects(to));
    CHECK(a.addresses.back().is_loopback());
    CHECK(a.loopback_only == (a.addresses.size() == 1));
  }
  void* instance = nullptr;
  char text[GCCL_BACKEND_TEXT_BYTES] = "";
  for (const char* bad : {"0.0.0.0", "no-such-interface"}) {
    const GCCL_Backend_environment e{sizeof e, 0, 1, "here", "", bad, log, 0};
    CHECK(kTcp->open(&e, &instance, text) == GCCL_ERR_INVALID_ARGUMENT);
    CHECK(std::string(text).find(bad) != std::string::npos);
  }
  const GCCL_Backend_environment e{sizeof e, 0, 1, "here", "", "lo", log, 0};
  REQUIRE(kTcp->open(&e, &instance, text) == GCCL_SUCCESS);
  kTcp->close(instance);
}

TEST_CASE("a caller that does not know the secret is refused, on both sides") {
  std::byte addresses[2][GCCL_BACKEND_ADDRESS_BYTES];
  Rank a, b;
  a.rank = 0, b.rank = 1;
  a.open(2, "one");
  b.open(2, "another");
  a.open_port(2, 1, addresses[0]);
  b.open_port(2, 1, addresses[1]);
  a.connect(2, 1, addresses);
  b.connect(2, 1, addresses);
  char x = 0;
  a.send(1, &x, 1);
  const auto end = Clock::now() + 10s;
  while (a.poll() && Clock::now() < end) std::this_thread::yield();
  CHECK(a.fault.result == GCCL_ERR_AUTHENTICATION);
  CHECK(a.fault.peer == 1);
  CHECK(std::string(a.fault.text).find("GCCL_SECRET") != std::string::npos);
  b.receive(0, &x, 1);
  for (const auto t = Clock::now() + 300ms; Clock::now() < t;) REQUIRE(b.poll());
}

TEST_CASE("a rank that cannot compute a handshake tries again, and says then that it is itself to blame") {
  for (const bool passes : {true, false}) {
    CAPTURE(passes);
    World w(2);
    char x = 1, y = 0;
    hmacs_that_fail = passes ? 1 : 1 << 30;
    const auto* s = w[0].send(1, &x, 1);
    const auto* r = passes ? w[1].receive(0, &y, 1) : nullptr;
    CHECK(w.until([&] {
      return w[0].fault.result != GCCL_SUCCESS || (s->result == GCCL_SUCCESS && r && r->result == GCCL_SUCCESS);
    }));
    hmacs_that_fail = 0;
    CHECK_MESSAGE(w[0].fault.result == (passes ? GCCL_SUCCESS : GCCL_ERR_SYSTEM), w[0].fault.text);
    CHECK(y == passes);
    if (!passes) CHECK(std::string(w[0].fault.text).find("SHA-256 cannot be computed here") != std::string::npos);
  }
}

TEST_CASE("ranks without the backend are left out") {
  std::byte addresses[3][GCCL_BACKEND_ADDRESS_BYTES] = {};
  Rank a;
  a.open(3);
  a.open_port(3, 1, addresses[0]);
  std::memset(addresses[2], 0x5a, sizeof addresses[2]);
  a.connect(3, 1, addresses);
  CHECK(a.reaches == std::vector<std::uint8_t>{0, 0, 0});
}

TEST_CASE("the port of a number that is open already is refused") {
  World w(1);
  std::byte wire[GCCL_BACKEND_ADDRESS_BYTES];
  const std::uint32_t zero = 0;
  const GCCL_Port_spec spec{sizeof spec, 0, 1, 1, 1, &zero, &zero, 0};
  void* port = nullptr;
  char text[GCCL_BACKEND_TEXT_BYTES];
  CHECK(kTcp->open_port(w[0].instance, &spec, &port, wire, text) == GCCL_ERR_INVALID_USAGE);
  kTcp->close_port(w[0].port);
  w[0].port = nullptr;
  REQUIRE(kTcp->open_port(w[0].instance, &spec, &port, wire, text) == GCCL_SUCCESS);
  kTcp->close_port(port);
}

TEST_CASE("settings that are none are refused by name") {
  for (const auto& [name, value] : {std::pair{"GCCL_TCP_STREAMS", "0"},
                                    {"GCCL_TCP_STREAMS", "17"},
                                    {"GCCL_TCP_STREAMS", "2x"},
                                    {"GCCL_TCP_PEER_TIMEOUT_MS", "1999"},
                                    {"GCCL_TCP_PEER_TIMEOUT_MS", "86400001"},
                                    {"GCCL_TCP_PEER_TIMEOUT_MS", "60s"},
                                    {"GCCL_LINK_LOST_MS", "-1"},
                                    {"GCCL_LINK_LOST_MS", "86400001"},
                                    {"GCCL_TCP_CONGESTION", "nonsense"},
                                    {"GCCL_TCP_CONGESTION", "renorenorenorenoreno"},
                                    {"GCCL_TCP_ZEROCOPY", "yes"}}) {
    const Variable v(name, value);
    void* instance = nullptr;
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    const GCCL_Backend_environment e{sizeof e, 0, 1, "here", "", "", log, 0};
    CHECK(kTcp->open(&e, &instance, text) == GCCL_ERR_INVALID_ARGUMENT);
    CHECK(std::string(text).find(name) != std::string::npos);
  }
}

TEST_CASE("settings are those of the environment that is given, and an empty number counts as none") {
  const auto read = [](std::map<std::string, std::string> variables, gccl::tcp::Settings* out) {
    return gccl::tcp::read_settings(
        [&](const char* name) {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        out);
  };
  gccl::tcp::Settings s;
  REQUIRE(read({{"GCCL_TCP_STREAMS", "3"}, {"GCCL_TCP_PEER_TIMEOUT_MS", "2500"}, {"GCCL_TCP_ZEROCOPY", "1"}}, &s).ok());
  CHECK(s.streams == 3);
  CHECK(s.peer_timeout == std::chrono::milliseconds(2500));
  CHECK(s.zero_copy == gccl::tcp::Settings::ZeroCopyUse::always);
  CHECK_FALSE(s.congestion);
  s = {};
  REQUIRE(read({{"GCCL_TCP_STREAMS", ""}, {"GCCL_TCP_PEER_TIMEOUT_MS", ""}, {"GCCL_TCP_ZEROCOPY", ""}}, &s).ok());
  CHECK(s.streams == 1);
  CHECK(s.peer_timeout == std::chrono::milliseconds(60000));
  CHECK(s.zero_copy == gccl::tcp::Settings::ZeroCopyUse::automatic);
  CHECK(read({{"GCCL_TCP_STREAMS", "17"}}, &s).text() ==
        "GCCL_TCP_STREAMS is \"17\", expected a whole number from 1 to 16");
}

TEST_CASE("the system's congestion controls are taken, and nothing for its own choice") {
  for (const char* value : {"", "reno"}) {  // every Linux has the latter
    const Variable v("GCCL_TCP_CONGESTION", value);
    void* instance = nullptr;
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    const GCCL_Backend_environment e{sizeof e, 0, 1, "here", "", "", log, 0};
    CHECK_MESSAGE(kTcp->open(&e, &instance, text) == GCCL_SUCCESS, text);
    kTcp->close(instance);
  }
}

TEST_CASE("strangers that hold thousands of silent connections keep no rank from another") {
  allow_descriptors(20000);
  World w(2, 2);
  const SocketAddress listener = listener_of(w[1]).addresses[0];
  std::atomic<bool> stop{false};
  std::vector<std::thread> strangers;
  for (int i = 0; i < 3; ++i) strangers.emplace_back([&] { hold_connections(listener, 3000, stop); });
  std::this_thread::sleep_for(1s);
  char x = 7, y = 0, z = 0;
  auto* s = w[0].send(1, &x, 1);
  auto* r = w[1].receive(0, &y, 1);
  const bool done = w.until_done({s, r});
  auto* s2 = w[0].send(1, &x, 1, 0, 1);  // another connection
  auto* r2 = w[1].receive(0, &z, 1, 0, 1);
  const bool again = w.until_done({s2, r2});
  stop = true;
  for (auto& t : strangers) t.join();
  CHECK(done);
  CHECK(again);
  CHECK(w[0].fault.result == GCCL_SUCCESS);
  CHECK(y == 7);
  CHECK(z == 7);
}

TEST_CASE("what follows every failed job is no warning: aborts and dials that come to ranks that have left") {
  const std::size_t before = logged().size();
  for (int i = 0; i < 20; ++i) {
    World w(3);
    GCCL_Fault f{GCCL_ERR_ABORTED, 0, "over"};
    char x = 0;
    w[0].send(2, &x, 1);
    w[1].send(2, &x, 1);
    for (auto& r : w.ranks) kTcp->abort(r.port, &f);
    kTcp->close_port(w[2].port);  // its instance still answers
    w[2].port = nullptr;
    for (auto& r : w.ranks)
      for (int k = 0; k < 100 && r.port; ++k) r.poll();
  }
  CHECK(logged().substr(before) == "");
}

TEST_CASE("an abort does not keep a rank that leaves when the others have left already") {
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) {
    World w(3);
    w[1].close();
    w[2].close();
    GCCL_Fault f{GCCL_ERR_ABORTED, 0, "over"};
    kTcp->abort(w[0].port, &f);
    w[0].close();
  }
  CHECK(Clock::now() - begin < 3s);  // before: 0.4 s each
}

// Where each try at that address took seconds this would take minutes.
TEST_CASE("a peer whose first address leads nowhere is reached by the next one soon, and then at once") {
  const Deaf deaf;
  std::deque<tcp_test::Rank> first(2);
  Addresses addresses = open_ports(&first);
  const auto begun = Clock::now();
  for (std::uint64_t communicator = 1; communicator <= 21; ++communicator) {
    std::deque<tcp_test::Rank> further(2);
    std::deque<tcp_test::Rank>& ranks = communicator == 1 ? first : further;
    for (std::uint32_t r = 0; communicator > 1 && r < 2; ++r) {
      ranks[r].borrow(first[r]);
      ranks[r].open_port(2, 1, address(&addresses, r), communicator);
    }
    lead(&addresses, 1, deaf.at, Detour::before);
    for (auto& r : ranks) r.connect(2, 1, addresses.data(), communicator);
    char x = 0;
    const auto *s = ranks[0].send(1, "a", 1), *r = ranks[1].receive(0, &x, 1);
    Pauses pauses;
    while ((s->result == GCCL_IN_PROGRESS || r->result == GCCL_IN_PROGRESS) && Clock::now() < begun + 20s) {
      for (auto& rank : ranks) REQUIRE(rank.poll());
      pauses.between();
    }
    REQUIRE(x == 'a');
  }
  CHECK(Clock::now() - begun < 4s * GCCL_TEST_SLOWDOWN);
}
