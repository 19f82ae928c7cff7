// Sockets, addresses and the log of refusals.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "gccl/gccl.h"
#include "libgccl/net/bytes.hpp"
#include "libgccl/net/datagrams.hpp"
#include "libgccl/net/refusal_log.hpp"
#include "libgccl/net/socket.hpp"
#include "tests/support/child.hpp"

using namespace gccl;

namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

bool ready(int fd, short events, int timeout_ms = 2000) {
  pollfd p{fd, events, 0};
  return poll(&p, 1, timeout_ms) == 1;
}

// A listener and its address; empty where the machine lacks the family.
std::pair<Fd, SocketAddress> listener(int family) {
  Fd fd;
  if (!listen_on(SocketAddress::loopback(0, family), &fd).ok()) return {};
  const SocketAddress at = SocketAddress::local_end(fd.get());
  return {std::move(fd), at};
}

// From now on the process has no IPv6, as on a machine without it.
bool lose_ipv6() {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof steps / sizeof steps[0], steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("a descriptor closes itself once, whichever owner is the last") {
  Fd a(open("/dev/null", O_RDONLY));
  const int number = a.get();
  Fd b(std::move(a));
  CHECK(!a);
  CHECK(b.get() == number);
  Fd& same = b;
  b = std::move(same);
  CHECK(is_open(number));
  Fd c(open("/dev/null", O_RDONLY));
  const int other = c.get();
  c = std::move(b);
  CHECK(!is_open(other));
  CHECK(c.release() == number);
  c.reset();
  CHECK(is_open(number));
  Fd(number).reset();
  CHECK(!is_open(number));
}

// What happens just before a descriptor is closed: set, it is called once.
std::function<void()> before_close;

TEST_CASE("a child that is forked while a descriptor closes does not keep it open") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Fd reader(ends[0]);
  Fd writer = not_for_children([&] { return ends[1]; });
  std::atomic<bool> closes{false}, forked{false};
  std::optional<test::Child> child;
  std::thread other([&] {
    while (!closes) std::this_thread::yield();
    child.emplace([] { pause(); });
    forked = true;
    while (closes) usleep(1000);  // the child dies with this thread
  });
  before_close = [&] {
    closes = true;
    for (int i = 0; i < 300 && !forked; ++i) usleep(1000);
  };
  writer.reset();
  CHECK(ready(reader.get(), POLLIN));  // its end, although the child lives
  CHECK_FALSE(before_close);
  closes = false;
  other.join();
  REQUIRE(child);
  child->kill();
  CHECK(child->wait() == SIGKILL);
}

TEST_CASE("HOST:PORT is taken apart, and what is none is explained") {
  const auto parsed = [](const char* text) {
    HostPort at;
    REQUIRE(parse_host_port(text, &at).ok());
    return at.host + "|" + std::to_string(at.port);
  };
  CHECK(parsed("node-1.example:29500") == "node-1.example|29500");
  CHECK(parsed("127.0.0.1:2") == "127.0.0.1|2");
  CHECK(parsed("[::1]:65535") == "::1|65535");
  CHECK(parsed("[fe80::1%eth0]:1") == "fe80::1%eth0|1");
  for (const char* bad : {"", ":", "host", "host:", ":80", "host:65536", "host:0", "host:-1", "host: 1", "host:1x",
                          "::1:80", "[::1]", "[::1]80", "[::1:80", "[]:80", "host:99999999999999999999"}) {
    HostPort at;
    const Status s = parse_host_port(bad, &at);
    CHECK_MESSAGE(s.code() == GCCL_ERR_INVALID_ARGUMENT, bad);
    CHECK_MESSAGE(s.text().find("expected") != std::string::npos, bad);
  }
}

TEST_CASE("addresses know their text, kind and wire form") {
  const auto v4 = SocketAddress::numeric("10.1.2.3", 80), v6 = SocketAddress::numeric("2001:db8::7", 443);
  CHECK(v4.text() == "10.1.2.3:80");
  CHECK(v6.text() == "[2001:db8::7]:443");
  CHECK(v6.host() == "2001:db8::7");
  CHECK(!SocketAddress::numeric("localhost", 1).valid());
  CHECK(SocketAddress().text() == "?");
  CHECK(v4.with_port(81).port() == 81);
  // What a socket that takes both families reports of an IPv4 peer is written, and compared, as IPv4.
  CHECK(SocketAddress::numeric("::ffff:10.0.0.1", 80).text() == "10.0.0.1:80");
  CHECK(SocketAddress::numeric("::ffff:10.0.0.1", 80) == SocketAddress::numeric("10.0.0.1", 80));
  for (const char* loopback : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"})
    CHECK_MESSAGE(SocketAddress::numeric(loopback, 1).is_loopback(), loopback);
  for (const char* remote : {"10.0.0.1", "0.0.0.0", "::", "fe80::1", "::ffff:10.0.0.1"})
    CHECK_MESSAGE(!SocketAddress::numeric(remote, 1).is_loopback(), remote);
  CHECK(SocketAddress::numeric("::", 1).is_any());
  CHECK(SocketAddress::any(1).is_any());
  CHECK(SocketAddress::numeric("fe80::1", 1).is_link_local());
  CHECK(SocketAddress::numeric("169.254.3.4", 1).is_link_local());
  CHECK(SocketAddress::from_wire(v4.wire()) == v4);
  CHECK(SocketAddress::from_wire(v6.wire()).text() == v6.text());
  CHECK(!SocketAddress::from_wire({}).valid());

  constexpr unsigned seed = 1;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 10000; ++i) {
    SocketAddress::Wire wire;
    for (std::byte& b : wire) b = std::byte(random());
    wire[0] = std::byte(random() % 8);
    const auto a = SocketAddress::from_wire(wire);
    CHECK(a.valid() == (wire[0] == std::byte(4) || wire[0] == std::byte(6)));
    CHECK(SocketAddress::from_wire(a.wire()) == a);
    CHECK(!a.text().empty());
  }
}

TEST_CASE("an address of a family that is not there is out of reach, and descriptors that run out are a shortage") {
  const auto six = SocketAddress::loopback(9, AF_INET6), four = SocketAddress::loopback(9, AF_INET);
  gccl::test::Child without([&] {
    Fd fd;
    int error = 0;
    if (!lose_ipv6()) return 2;
    const Status s = dial(six, &fd, &error);
    if (s.code() != GCCL_ERR_PEER_LOST || s.text().find(six.text()) == std::string::npos) return 3;
    const Status other = dial(four, &fd, &error);
    return other.ok() || other.code() == GCCL_ERR_PEER_LOST ? 0 : 4;
  });
  CHECK(without.wait() == 0);
  gccl::test::Child shortage([&] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    Fd fd;
    const Status s = dial(four, &fd);
    return s.code() == GCCL_ERR_SYSTEM && s.text().find("ulimit -n") != std::string::npos ? 0 : 3;
  });
  CHECK(shortage.wait() == 0);
}

TEST_CASE("a connection is made without waiting, over both families") {
  for (const int family : {AF_INET, AF_INET6}) {
    auto [listening, at] = listener(family);
    if (!listening) continue;  // no IPv6 here
    Fd none, dialling, accepted;
    SocketAddress peer;
    CHECK(accept_from(listening.get(), &none, &peer).ok());
    CHECK(!none);
    REQUIRE(dial(at, &dialling).ok());
    REQUIRE(ready(dialling.get(), POLLOUT));
    CHECK(dialled(dialling.get(), at).ok());
    REQUIRE(ready(listening.get(), POLLIN));
    REQUIRE(accept_from(listening.get(), &accepted, &peer).ok());
    REQUIRE(bool(accepted));
    CHECK(peer == SocketAddress::local_end(dialling.get()));
    CHECK(SocketAddress::remote_end(dialling.get()) == at);
    for (const int fd : {listening.get(), dialling.get(), accepted.get()}) {
      CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
      CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    }
    for (const int fd : {dialling.get(), accepted.get()}) {
      int nodelay = 0;
      socklen_t bytes = sizeof nodelay;
      getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &bytes);
      CHECK(nodelay == 1);
    }
  }
}

TEST_CASE("a wildcard of IPv6 takes IPv4 as well") {
  Fd listening, dialling;
  if (!listen_on(SocketAddress::any(0, AF_INET6), &listening).ok()) return;
  const auto at = SocketAddress::loopback(SocketAddress::local_end(listening.get()).port());
  REQUIRE(dial(at, &dialling).ok());
  REQUIRE(ready(dialling.get(), POLLOUT));
  CHECK(dialled(dialling.get(), at).ok());
}

TEST_CASE("refused connections, and those to oneself, are reported with the address") {
  // Bound, so that nobody else gets its port, but not listening.
  const Fd self(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress any = SocketAddress::loopback(0);
  REQUIRE(bind(self.get(), any.data(), any.bytes()) == 0);
  const SocketAddress at = SocketAddress::local_end(self.get());
  Fd fd;
  Status s = dial(at, &fd);
  if (s.ok()) {
    REQUIRE(ready(fd.get(), POLLOUT));
    s = dialled(fd.get(), at);
  }
  CHECK(s.code() == GCCL_ERR_PEER_LOST);
  CHECK(s.text() == at.text() + ": Connection refused");

  // What the kernel does by chance when it picks the port that is dialled.
  REQUIRE(connect(self.get(), at.data(), at.bytes()) == 0);
  CHECK(dialled(self.get(), at).code() == GCCL_ERR_PEER_LOST);
}

TEST_CASE("a port can be listened on again at once, and is not shared") {
  auto [first, at] = listener(AF_INET);
  Fd second;
  const Status s = listen_on(at, &second);
  CHECK(s.code() == GCCL_ERR_SYSTEM);
  CHECK(s.text() == "cannot listen on " + at.text() + ": Address already in use");
  Fd dialling, accepted;
  SocketAddress peer;
  REQUIRE(dial(at, &dialling).ok());
  REQUIRE(ready(first.get(), POLLIN));
  REQUIRE(accept_from(first.get(), &accepted, &peer).ok());
  accepted.reset();  // closed first here: this side keeps TIME_WAIT
  dialling.reset();
  first.reset();
  CHECK(listen_on(at, &second).ok());
}

TEST_CASE("where to listen follows the wish, and stays on loopback without a secret") {
  ListeningPlace place;
  const auto bound = [&](const char* wanted, bool have_secret) {
    place = {};
    REQUIRE(listening_place(wanted, have_secret, &place).ok());
    return place.binds[0].text();
  };
  CHECK(bound("", false) == "127.0.0.1:0");
  CHECK(place.addresses.empty());
  CHECK(bound("::1", false) == "[::1]:0");
  CHECK(bound("lo", false).starts_with("127."));
  CHECK(bound("10.9.8.7", true) == "10.9.8.7:0");
  CHECK(place.addresses.empty());
  for (const char* wide : {"0.0.0.0", "::", "10.9.8.7", "fe80::1%lo"}) {
    const Status s = listening_place(wide, false, &place);
    CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
    CHECK(s.text().find("GCCL_SECRET") != std::string::npos);
  }
  CHECK(listening_place("no-such-interface", true, &place).text().find("expected an IP address") != std::string::npos);
}

TEST_CASE("of many addresses the first ones are published, and one of IPv6 where they are all of IPv4") {
  std::vector<SocketAddress> all;
  for (const char* a : {"10.0.0.1", "10.0.1.1", "10.0.2.1", "10.0.3.1", "fd00::1", "fd00::2"})
    all.push_back(SocketAddress::numeric(a, 0));
  const auto kept = [&](std::size_t most) {
    std::string text;
    for (const SocketAddress& a : first_of(all, most)) text += a.host() + " ";
    return text;
  };
  CHECK(kept(6) == "10.0.0.1 10.0.1.1 10.0.2.1 10.0.3.1 fd00::1 fd00::2 ");
  CHECK(kept(5) == "10.0.0.1 10.0.1.1 10.0.2.1 10.0.3.1 fd00::1 ");
  CHECK(kept(3) == "10.0.0.1 10.0.1.1 fd00::1 ");
  all.resize(4);
  CHECK(kept(3) == "10.0.0.1 10.0.1.1 10.0.2.1 ");
}

TEST_CASE(
    "who listens everywhere names the addresses of its interfaces, and none that means something else elsewhere") {
  for (const std::string wanted : {"", "::", "0.0.0.0"}) {
    CAPTURE(wanted);
    ListeningPlace place;
    REQUIRE(listening_place(wanted, true, &place).ok());
    Fd listener;
    REQUIRE(listen_on(place, &listener).ok());
    CHECK(place.binds[0].is_any());
    const std::uint16_t port = SocketAddress::local_end(listener.get()).port();
    const auto published = place.published(listener.get());
    REQUIRE(published.size() <= ListeningPlace::kAddressesMax);
    CHECK(published.back() == SocketAddress::loopback(port));
    for (const SocketAddress& a : published) {
      CAPTURE(a.text());
      CHECK(a.port() == port);
      CHECK(!a.is_any());
      CHECK(!a.is_link_local());
      if (wanted == "0.0.0.0") CHECK(a.family() == AF_INET);
      Fd dialling;
      REQUIRE(dial(a, &dialling).ok());
      REQUIRE(ready(dialling.get(), POLLOUT));
      CHECK(dialled(dialling.get(), a).ok());
    }
    for (const SocketAddress& own : interface_addresses())
      if (own.family() == AF_INET && !own.is_link_local())
        CHECK(std::ranges::find(published, own.with_port(port)) != published.end());
  }
  ListeningPlace place;
  const Status s = listening_place("fe80::1%lo", true, &place);
  CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(s.text().find("link-local") != std::string::npos);
}

TEST_CASE("resolving knows names and numbers, and says what it could not find") {
  std::vector<SocketAddress> found;
  REQUIRE(resolve("localhost", 7, &found).ok());
  CHECK(found[0].is_loopback());
  CHECK(found[0].port() == 7);
  REQUIRE(resolve("::1", 7, &found).ok());
  CHECK(found[0].text() == "[::1]:7");
  const Status s = resolve("no-such-host.invalid", 7, &found);
  CHECK(s.code() == GCCL_ERR_SYSTEM);
  CHECK(s.text().starts_with("host \"no-such-host.invalid\": "));
}

TEST_CASE("bytes are read back as written, and never beyond their end") {
  const auto bytes = BytesOut().u8(1).u16(0x203).u32(0x4050607).u64(0x8090a0b0c0d0e0f).raw("end").take();
  for (std::size_t i = 0; i < 15; ++i) CHECK(std::size_t(bytes[i]) == i + 1);
  BytesIn in(bytes);
  CHECK(in.u8() == 1);
  CHECK(in.u16() == 0x203);
  CHECK(in.u32() == 0x4050607);
  CHECK(in.u64() == 0x8090a0b0c0d0e0f);
  CHECK(to_text(in.rest()) == "end");
  CHECK(in.u32() == 0);
  CHECK(!in.ok());
  CHECK(in.u8() == 0);  // not even what would fit
  CHECK(starts_with(bytes, "\1\2"));
  CHECK(!starts_with(std::span(bytes).first(1), "\1\2"));
}

TEST_CASE("datagrams go between addresses of two families, and their refusals are heard") {
  if (!listener(AF_INET6).first) {
    MESSAGE("not checked: there is no IPv6 here");
    return;
  }
  std::unique_ptr<Datagrams> of[2];
  REQUIRE(Datagrams::open("127.0.0.1", false, &of[0]).ok());
  REQUIRE(Datagrams::open("::1", false, &of[1]).ok());
  CHECK(of[0]->family() == AF_INET);
  CHECK(of[1]->family() == AF_INET6);
  for (const auto& d : of) {
    CHECK(d->second_error() == 0);
    CHECK(d->second_fd() >= 0);
  }
  for (const int i : {0, 1}) {
    const std::byte word[1] = {std::byte(7 + i)};
    of[i]->send(of[1 - i]->addresses()[0], word);
    std::vector<std::byte> got;
    SocketAddress from;
    REQUIRE(ready(of[1 - i]->fd(), POLLIN));
    REQUIRE(of[1 - i]->receive(&got, &from));
    CHECK(got == std::vector<std::byte>(word, word + 1));
    CHECK(from.family() == of[1 - i]->addresses()[0].family());
  }
  const SocketAddress there = of[1]->addresses()[0];
  of[1].reset();
  of[0]->send(there, {});
  REQUIRE(ready(of[0]->second_fd(), 0));
  CHECK(of[0]->refused() == there);
  of[0]->close_second();
  CHECK(of[0]->second_fd() < 0);
  of[0]->send(there, {});  // goes nowhere
}

TEST_CASE("refusals are reported ten at a time, and the rest counted") {
  std::vector<std::string> lines;
  RefusalLog log("rank 0", [&](const std::string& line) { lines.push_back(line); });
  const auto peer = SocketAddress::numeric("10.0.0.9", 1234);
  const auto begin = RefusalLog::Clock::time_point(std::chrono::hours(1));
  for (int i = 0; i < 25; ++i) log.refused(peer, "why", begin);
  REQUIRE(lines.size() == 10);
  CHECK(lines[0] == "rank 0: refused 10.0.0.9:1234: why");
  log.refused(peer, "why", begin + RefusalLog::kPeriod);
  REQUIRE(lines.size() == 12);
  CHECK(lines[10] == "rank 0: refused 15 more");
}

// In place of the C library's, for the hook above.
extern "C" int close(int fd) {
  if (const auto hook = std::exchange(before_close, nullptr)) hook();
  return int(syscall(SYS_close, fd));
}
