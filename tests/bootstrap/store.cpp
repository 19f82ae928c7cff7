// The TCP store: real ranks that meet over it, and real nuisances.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/net/handshake.hpp"
#include "tests/bootstrap/stores.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

// Collects what this process writes to standard error while it lives.
class CapturedErrors {
 public:
  CapturedErrors() : old_(dup(2)) {
    std::fflush(stderr);
    const Fd file(open((folder_.path / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    dup2(file.get(), 2);
  }
  ~CapturedErrors() { restore(); }
  std::string text() {
    restore();
    std::ifstream in(folder_.path / "err");
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  void restore() {
    std::fflush(stderr);
    if (old_) dup2(old_.get(), 2);
    old_.reset();
  }
  Folder folder_;
  Fd old_;
};

Fd connected_to(std::uint16_t port) {
  const auto at = SocketAddress::loopback(port);
  for (int i = 0; i < 400; ++i) {
    Fd fd;
    pollfd p{-1, POLLOUT, 0};
    if (dial(at, &fd).ok() && (p.fd = fd.get(), poll(&p, 1, 1000) == 1) && dialled(fd.get(), at).ok()) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

}  // namespace

// A name with two addresses, of which the system asks no name server: 127.0.0.2, then 127.0.0.1.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** out) {
  const auto next = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!name || std::strcmp(name, "two-addresses") != 0) return next(name, service, hints, out);
  if (const int error = next("127.0.0.2", service, hints, out)) return error;
  addrinfo* last = *out;
  while (last->ai_next) last = last->ai_next;
  return next("127.0.0.1", service, hints, &last->ai_next);
}

TEST_CASE("frames are understood, and others are not") {
  const auto head = Contribution{60000, 59000, 7}.head();
  CHECK(head.size() == Contribution::kHeadBytes);
  Contribution c;
  REQUIRE(Contribution::parse(head, &c));
  CHECK(c.limit_ms == 60000);
  CHECK(c.remaining_ms == 59000);
  CHECK(c.bytes == 7);
  CHECK(!Contribution::parse(std::span(head).first(head.size() - 1), &c));
  CHECK(!Contribution::parse(Bytes(Contribution::kHeadBytes), &c));
  CHECK(!Contribution::parse(Contribution{-1, 0, 0}.head(), &c));
  Answer a;
  CHECK(Answer::parse(Answer{0, 40}.head(), 40, &a));
  CHECK(!Answer::parse(Answer{0, 41}.head(), 40, &a));
  CHECK(Answer::parse(Answer{101, 4096}.head(), 40, &a));
  CHECK(!Answer::parse(Answer{101, 4097}.head(), 40, &a));
  CHECK(error_answer(Status::error(std::string(10000, 'x'))).size() == Answer::kHeadBytes + Answer::kTextBytesMax);
}

TEST_CASE("TCP store: ranks of every number meet") {
  for (Rank size : {1, 2, 3, 4, 5, 8, 13, 64}) check_all_ok(in_threads(size, tcp(free_port(), size)));
  check_all_ok(in_threads(3, tcp(free_port(), 3, "")));
}

TEST_CASE("TCP store: large contributions do not get stuck in buffers") {
  const std::uint16_t port = free_port();
  constexpr Rank size = 5;
  constexpr std::size_t bytes = 3 << 20;
  std::atomic<int> right = 0;
  check_all_ok(in_threads(size, [&](Rank r, std::unique_ptr<Exchange>*) {
    std::unique_ptr<Exchange> e;
    if (Status s = tcp(port, size)(r, &e); !s.ok()) return s;
    Bytes all;
    const Status s = e->all_gather(contribution(r, 0, bytes), &all, 20000);
    bool same = all.size() == bytes * size;
    for (Rank q = 0; same && q < size; ++q) {
      const Bytes theirs = contribution(q, 0, bytes);
      same = std::equal(theirs.begin(), theirs.end(), all.begin() + std::ptrdiff_t(q * bytes));
    }
    right += same;
    return s;
  }));
  CHECK(right == size);
}

TEST_CASE("TCP store: a thousand rounds at one address leave no descriptor open") {
  const std::uint16_t port = free_port();
  check_all_ok(in_threads(3, tcp(port, 3)));
  const std::size_t before = open_descriptors();
  // Ranks do not wait for each other between rounds: the fast call while the slow still end the round before.
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    for (int i = 0; i < 1000; ++i) {
      std::unique_ptr<Exchange> e;
      if (Status s = tcp(port, 3)(r, &e); !s.ok()) return s;
      if (Status s = meet(*e, r, 3, 1); !s.ok()) return s;
    }
    return Status();
  }));
  CHECK(open_descriptors() == before);
}

TEST_CASE("TCP store: rank 0 may come last") {
  const std::uint16_t port = free_port();
  check_all_ok(in_threads(4, [&](Rank r, std::unique_ptr<Exchange>* e) {
    if (r == 0) pause_ms(300);
    return tcp(port, 4)(r, e);
  }));
}

TEST_CASE("TCP store: once all are there, nobody listens any more") {
  const std::uint16_t port = free_port();
  std::atomic<int> refused = 0;
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    std::unique_ptr<Exchange> e;
    if (Status s = tcp(port, 3)(r, &e); !s.ok()) return s;
    if (Status s = meet(*e, r, 3, 1); !s.ok()) return s;
    if (r == 1) {
      const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto at = SocketAddress::loopback(port);
      refused += connect(fd.get(), at.data(), at.bytes()) != 0;
    }
    return meet(*e, r, 3, 1);
  }));
  CHECK(refused == 1);
}

TEST_CASE("TCP store: ranks that are missing are named on every rank, within the shortest of their time limits") {
  const auto begin = Clock::now();
  check_missing_are_named(tcp(free_port(), 8));
  CHECK(seconds_since(begin) < 1.6);
}

TEST_CASE("TCP store: different lengths are a mismatch on every rank, the late ones too") {
  check_different_lengths(tcp(free_port(), 3));
}

TEST_CASE("TCP store: a rank that rank 0 never answers says so") {
  const std::uint16_t port = free_port();
  std::unique_ptr<Exchange> e;
  REQUIRE(tcp(port, 3)(2, &e).ok());
  const Status s = meet(*e, 2, 3, 1, 200);
  CHECK(s.code() == GCCL_ERR_TIMEOUT);
  CHECK(has(s.text(),
            "rank 2: rank 0 of 3 did not answer at tcp://127.0.0.1:" + std::to_string(port) + " within 200 ms"));
  CHECK(has(s.text(), "Connection refused"));
  Fd silent;  // takes the call and says nothing
  REQUIRE(listen_on(SocketAddress::loopback(port), &silent).ok());
  REQUIRE(tcp(port, 3)(2, &e).ok());
  CHECK(has(meet(*e, 2, 3, 1, 200).text(), "connected, but it does not answer"));
}

TEST_CASE("TCP store: a wrong secret is refused and logged, and the others report who is missing, and why") {
  for (const char* level : {"0", "1"}) {
    setenv("GCCL_LOG", level, 1);
    CapturedErrors errors;
    const std::uint16_t port = free_port();
    const auto results = in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
      return open_and_meet(tcp(port, 3, r == 1 ? "wrong" : "right"), r, 3, 1, 600);
    });
    const std::string log = errors.text();
    CHECK(results[1].code() == GCCL_ERR_AUTHENTICATION);
    CHECK(has(results[1].text(), "GCCL_SECRET"));
    CHECK(results[0].code() == GCCL_ERR_TIMEOUT);
    for (const Rank r : {0, 2}) {
      CHECK(has(results[r].text(), "rank 1 of 3 did not come"));
      CHECK_MESSAGE(has(results[r].text(), "; refused 127.0.0.1: the peer does not know the secret"),
                    results[r].text());
    }
    if (*level == '0') {
      CHECK(log == "");
      continue;
    }
    CHECK_MESSAGE(
        has(log, "gccl warning: rank 0, store tcp://127.0.0.1:" + std::to_string(port) + ": refused 127.0.0.1:"), log);
    CHECK(has(log, "the peer does not know the secret"));
  }
  unsetenv("GCCL_LOG");
}

TEST_CASE("TCP store: a rank that gives another size ends the start at once, on every rank") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  const auto results = in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    const Rank size = r == 2 ? 4 : 3;
    return open_and_meet(tcp(port, size), r, size, 1);
  });
  // At the limit the text would be about a rank that did not come. Rank 1 hears the same, if it was there in time.
  for (const Rank r : {0, 2})
    CHECK_MESSAGE(has(results[r].text(), "rank 2 of a job of 4 ranks dialled the store of a job of 3"),
                  results[r].text());
  CHECK(!results[1].ok());
}

TEST_CASE("TCP store: the second of two processes with one rank reports that") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  const auto rank = [&](Rank r, std::int64_t timeout_ms) { return open_and_meet(tcp(port, 3), r, 3, 1, timeout_ms); };
  Status zero;
  std::thread server([&] { zero = rank(0, 20000); });
  std::thread first([&] { CHECK(rank(1, 20000).ok()); });
  pause_ms(300);
  const Status twin = rank(1, 5000);
  CHECK(has(twin.text(), "rank 1 is here already, from 127.0.0.1:"));
  CHECK(rank(2, 20000).ok());
  server.join();
  first.join();
  CHECK(zero.ok());
  CHECK(has(errors.text(), "refused"));
}

TEST_CASE("TCP store: a rank that dies before the others have come may come again") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  const auto rank = [&](Rank r) { return open_and_meet(tcp(port, 3), r, 3, 2); };
  Status zero;
  std::thread server([&] { zero = rank(0); });
  {
    const Child killed([&] { (void)rank(1); });
    pause_ms(200);
  }
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) { return r == 0 ? Status() : rank(r); }));
  server.join();
  CHECK_MESSAGE(zero.ok(), zero.text());
}

TEST_CASE("TCP store: a rank that is killed between rounds is named at once") {
  const std::uint16_t port = free_port();
  const auto begin = Clock::now();
  Child child([&] {
    std::unique_ptr<Exchange> e;
    if (tcp(port, 3)(2, &e).ok() && meet(*e, 2, 3, 1).ok()) kill(getpid(), SIGKILL);
  });
  const auto results =
      in_threads(2, [&](Rank r, std::unique_ptr<Exchange>*) { return open_and_meet(tcp(port, 3), r, 3, 2); });
  CHECK(child.wait() == SIGKILL);
  for (Rank r : {0, 1}) {
    CHECK(results[r].code() == GCCL_ERR_PEER_LOST);
    CHECK_MESSAGE(has(results[r].text(), "rank 2 of 3 was lost"), results[r].text());
  }
  CHECK(seconds_since(begin) < 5);
}

TEST_CASE("TCP store: strangers who are silent, slow, rude or repeat others do not keep honest ranks apart") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  // What rank 1 of an earlier job said to its rank 0, recorded by one who sat in between.
  Bytes recorded;
  {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    const Fd a(ends[0]), b(ends[1]);
    Handshake dialling = Handshake::dial("s", tcp_store_hello(1, 6)), accepting = Handshake::accept("s");
    for (int i = 0; i < 6; ++i) {
      dialling.advance(a.get());
      std::byte buffer[1024];
      const ssize_t n = recv(b.get(), buffer, sizeof buffer, MSG_PEEK);
      if (n > 0) recorded.insert(recorded.end(), buffer, buffer + n);
      accepting.advance(b.get());
    }
    REQUIRE(accepting.advance(b.get()) == Handshake::State::done);
  }
  Status zero;
  std::atomic<bool> over = false;
  std::thread server([&] { zero = open_and_meet(tcp(port, 6), 0, 6); });
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connected_to(port));  // more than rank 0 keeps
  const Fd rude = connected_to(port), replay = connected_to(port), slow = connected_to(port);
  const std::string garbage(100000, 'x');
  (void)!send(rude.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)!send(replay.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL);
  std::thread loris([&] {
    for (std::size_t i = 0; i < 40 && !over; ++i, pause_ms(20)) (void)!send(slow.get(), &recorded[i], 1, MSG_NOSIGNAL);
  });
  pause_ms(100);
  const auto begin = Clock::now();
  check_all_ok(
      in_threads(6, [&](Rank r, std::unique_ptr<Exchange>* e) { return r == 0 ? Status() : tcp(port, 6)(r, e); }));
  CHECK(seconds_since(begin) < 2);
  over = true;
  server.join();
  loris.join();
  CHECK_MESSAGE(zero.ok(), zero.text());
  const std::string log = errors.text();
  CHECK_MESSAGE(has(log, "too many connections"), log);
}

TEST_CASE("TCP store: strangers who hold all descriptors that rank 0 may have do not keep honest ranks apart") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  Child zero([&] {
    const rlim_t few_more = open_descriptors() + 20;
    const rlimit few{few_more, few_more};
    return setrlimit(RLIMIT_NOFILE, &few) == 0 && open_and_meet(tcp(port, 3), 0, 3).ok() ? 0 : 1;
  });
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connected_to(port));
  check_all_ok(
      in_threads(3, [&](Rank r, std::unique_ptr<Exchange>* e) { return r == 0 ? Status() : tcp(port, 3)(r, e); }));
  CHECK(zero.wait() == 0);
}

TEST_CASE("TCP store: without descriptors for all ranks rank 0 says so at once, and takes no rank for a stranger") {
  for (const rlim_t more : {2, 3, 4, 5}) {
    CapturedErrors errors;
    const std::uint16_t port = free_port();
    Child zero([&] {
      const rlim_t few_more = open_descriptors() + more;  // one is the listener's
      const rlimit few{few_more, few_more};
      if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
      const auto begin = Clock::now();
      const Status s = open_and_meet(tcp(port, 9), 0, 9);
      return s.code() == GCCL_ERR_SYSTEM && has(s.text(), "ulimit -n") && seconds_since(begin) < 5 ? 0 : 2;
    });
    const auto others = in_threads(
        9, [&](Rank r, std::unique_ptr<Exchange>* e) { return r == 0 ? Status() : tcp(port, 9)(r, e); }, 1, 2000);
    for (Rank r = 1; r < 9; ++r) CHECK_MESSAGE(!others[r].ok(), others[r].text());
    CHECK(zero.wait() == 0);
    CHECK_MESSAGE(!has(errors.text(), "introduce"), errors.text());
  }
}

TEST_CASE("TCP store: a rank that has no descriptor to dial rank 0 says so, and does not wait for it") {
  const std::uint16_t port = free_port();
  Child rank([&] {
    std::unique_ptr<Exchange> e;
    if (!tcp(port, 2)(1, &e).ok()) return 1;
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
    const auto begin = Clock::now();
    const Status s = meet(*e, 1, 2);
    return s.code() == GCCL_ERR_SYSTEM && has(s.text(), "ulimit -n") && seconds_since(begin) < 5 ? 0 : 2;
  });
  CHECK(rank.wait() == 0);
}

TEST_CASE("TCP store: strangers at one address of its host do not keep ranks from another, on which rank 0 listens") {
  for (const std::string says : {"", "HTTP/1.1 400 Bad Request\r\n\r\n"}) {
    CAPTURE(says);
    const std::uint16_t port = free_port();
    Fd listener;
    REQUIRE(listen_on(SocketAddress::numeric("127.0.0.2", port), &listener).ok());
    std::atomic<bool> over = false;
    std::thread stranger([&] {
      std::vector<Fd> all;
      for (; !over; pause_ms(1)) {
        Fd fd;
        SocketAddress peer;
        if (!accept_from(listener.get(), &fd, &peer).ok() || !fd) continue;
        (void)!send(fd.get(), says.data(), says.size(), MSG_NOSIGNAL);
        all.push_back(std::move(fd));
      }
    });
    const auto open = [&](Rank r, std::unique_ptr<Exchange>* out) {
      if (r == 0) pause_ms(100);  // nobody listens at the other address at first
      return open_tcp_store({{"two-addresses", port}, r, 2, "", 4000}, out);
    };
    check_all_ok(in_threads(2, open, 3, 4000));
    // Without rank 0 what each address did in the last attempt is reported. A stranger whose thread has no core for the
    // 40 ms that are left then is silent, too, which does not happen time and again.
    const std::string did = ":" + std::to_string(port) +
                            (says.empty() ? ": connected, but it does not answer; 127" : ": not a GCCL handshake");
    Status s;
    for (int i = 0; i < 10 && !has(s.text(), did); ++i) {
      std::unique_ptr<Exchange> e;
      REQUIRE(open(1, &e).ok());
      s = meet(*e, 1, 2, 1, 600);
    }
    over = true;
    stranger.join();
    CHECK(s.code() == GCCL_ERR_TIMEOUT);
    CHECK_MESSAGE(has(s.text(), did), s.text());
    CHECK_MESSAGE(has(s.text(), "; 127.0.0.1:" + std::to_string(port) + ": Connection refused"), s.text());
  }
}

TEST_CASE("TCP store: garbage and replays are refused with a reason, silence with its deadline") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  Status zero;
  std::thread server([&] { zero = open_and_meet(tcp(port, 2), 0, 2, 1, 6500); });
  const Fd silent = connected_to(port), rude = connected_to(port), gone = connected_to(port);
  (void)!send(rude.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
  shutdown(gone.get(), SHUT_RDWR);
  server.join();
  CHECK(has(zero.text(), "rank 1 of 2 did not come"));
  const std::string log = errors.text();
  CHECK_MESSAGE(has(log, "not a GCCL handshake"), log);
  CHECK_MESSAGE(has(log, "did not introduce itself within 5 s"), log);
  CHECK_MESSAGE(has(log, "closed the connection"), log);
}

TEST_CASE("TCP store: without a secret only loopback will do") {
  for (const char* host : {"10.1.2.3", "0.0.0.0"})
    for (Rank r : {0, 1}) {
      std::unique_ptr<Exchange> e;
      Status s = open_tcp_store({{host, 29555}, r, 2, "", 1000}, &e);
      if (r == 1) s = meet(*e, 1, 2, 1, 300);
      CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
      CHECK_MESSAGE(has(s.text(), "set GCCL_SECRET"), s.text());
    }
}

TEST_CASE("TCP store: where nobody comes to an address that is not this machine's, that is said") {
  for (const std::string host : {"192.0.2.1", "127.0.0.1", "0.0.0.0", "::"}) {
    CAPTURE(host);
    std::unique_ptr<Exchange> e;
    REQUIRE(open_tcp_store({{host, free_port()}, 0, 2, "secret", 1000}, &e).ok());
    const Status s = meet(*e, 0, 2, 1, 100);
    CHECK(s.code() == GCCL_ERR_TIMEOUT);
    CHECK(has(s.text(), "; rank 0 is on a machine without the address " + host) == (host == "192.0.2.1"));
  }
}

TEST_CASE("TCP store: a port that is in use is waited for, and then reported") {
  Fd other;
  REQUIRE(listen_on(SocketAddress::loopback(0), &other).ok());
  const std::uint16_t port = SocketAddress::local_end(other.get()).port();
  std::unique_ptr<Exchange> e;
  const Status s = open_tcp_store({{"127.0.0.1", port}, 0, 2, "", 100}, &e);
  CHECK(s.code() == GCCL_ERR_SYSTEM);
  CHECK_MESSAGE(has(s.text(), "Address already in use"), s.text());
  std::thread leaves([&] {
    pause_ms(150);
    other.reset();
  });
  CHECK(open_tcp_store({{"127.0.0.1", port}, 0, 2, "", 5000}, &e).ok());
  leaves.join();
}
