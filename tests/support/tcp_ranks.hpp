// Ranks of this process on the TCP backend's own ports, without the library above it: what ranks over the C interface
// (rank_job.hpp) cannot show.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "libgccl/net/socket.hpp"
#include "libgccl/transports/tcp/connect/connection_request.hpp"
#include "libgccl/transports/tcp/connect/port_address.hpp"
#include "libgccl/transports/tcp/data/frame.hpp"
#include "libgccl/transports/tcp/tcp_backend.hpp"
#include "tests/support/child.hpp"

namespace tcp_test {

using namespace gccl;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

inline const GCCL_Backend* const kTcp = tcp_backend();

inline std::mutex log_mutex;
inline std::string log_text;
// Warnings and errors; information is not kept.
inline void log(int level, const char* text) {
  if (level > 1) return;
  const std::lock_guard lock(log_mutex);
  log_text += std::string(text) + "\n";
}
inline std::string logged() {
  const std::lock_guard lock(log_mutex);
  return log_text;
}

// An environment variable for the length of a scope.
struct Variable {
  Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
  const char* name;
};

// Between two looks: what comes soon is seen soon, and a long wait leaves the processors to others.
class Pauses {
 public:
  void between() {
    if (Clock::now() < asleep_) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(500us);
    }
  }

 private:
  Clock::time_point asleep_ = Clock::now() + 5ms;
};

// One rank's instance and port.
struct Rank {
  std::uint32_t rank = 0;
  void *instance = nullptr, *port = nullptr;
  std::vector<std::uint8_t> reaches;
  GCCL_Fault fault{};
  std::list<GCCL_Transfer> transfers;

  ~Rank() { close(); }
  void close() {
    if (port) kTcp->close_port(port);
    if (instance && !borrowed) kTcp->close(instance);
    port = instance = nullptr;
  }
  void open(std::uint32_t size, const std::string& shared_secret = "") {
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    secret = shared_secret;
    const GCCL_Backend_environment e{sizeof e, rank, size, "here", secret.c_str(), "", log, 0};
    REQUIRE_MESSAGE(kTcp->open(&e, &instance, text) == GCCL_SUCCESS, text);
  }
  // A further port of another's instance.
  void borrow(const Rank& other) {
    rank = other.rank;
    instance = other.instance;
    borrowed = true;
  }
  void open_port(std::uint32_t size, std::uint32_t channels, void* address, std::uint64_t communicator = 1) {
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    std::vector<std::uint32_t> node(size), world(size);
    for (std::uint32_t r = 0; r < size; ++r) world[r] = r, node[r] = r / 2;
    const GCCL_Port_spec s{sizeof s, rank, size, channels, communicator, node.data(), world.data(), 0};
    REQUIRE_MESSAGE(kTcp->open_port(instance, &s, &port, address, text) == GCCL_SUCCESS, text);
  }
  void connect(std::uint32_t size, std::uint32_t channels, const void* addresses, std::uint64_t communicator = 1) {
    char text[GCCL_BACKEND_TEXT_BYTES] = "";
    std::vector<std::uint32_t> node(size), world(size);
    for (std::uint32_t r = 0; r < size; ++r) world[r] = r, node[r] = r / 2;
    const GCCL_Port_spec s{sizeof s, rank, size, channels, communicator, node.data(), world.data(), 0};
    reaches.assign(size, 0);
    REQUIRE_MESSAGE(kTcp->connect_port(port, &s, addresses, reaches.data(), text) == GCCL_SUCCESS, text);
    kTcp->port_connected(port);
  }

  GCCL_Transfer* make(std::uint32_t peer, std::uint32_t channel, void* data, std::uint64_t bytes,
                      std::uint64_t signature) {
    GCCL_Transfer& t = transfers.emplace_back();
    t.peer = peer, t.channel = channel, t.data = data, t.bytes = bytes, t.signature = signature;
    t.result = GCCL_IN_PROGRESS;
    return &t;
  }
  GCCL_Transfer* send(std::uint32_t peer, const void* data, std::uint64_t bytes, std::uint64_t signature = 0,
                      std::uint32_t channel = 0) {
    GCCL_Transfer* t = make(peer, channel, const_cast<void*>(data), bytes, signature);
    kTcp->send(port, t);
    return t;
  }
  GCCL_Transfer* receive(std::uint32_t peer, void* data, std::uint64_t bytes, std::uint64_t signature = 0,
                         std::uint32_t channel = 0) {
    GCCL_Transfer* t = make(peer, channel, data, bytes, signature);
    kTcp->receive(port, t);
    return t;
  }
  // False once the port has failed.
  bool poll() {
    GCCL_Transfer* done[3];
    const int n = kTcp->poll(port, done, 3);
    if (n < 0) kTcp->fault(port, &fault);
    return n >= 0;
  }

 private:
  std::string secret;  // outlives the instance
  bool borrowed = false;
};

// What the ports of all ranks exchange, one after the other.
using Addresses = std::vector<std::byte>;
inline std::byte* address(Addresses* all, std::uint32_t rank) { return &(*all)[rank * GCCL_BACKEND_ADDRESS_BYTES]; }

// Opens an instance and a port of each; connecting them is left to the caller.
inline Addresses open_ports(std::deque<Rank>* ranks, std::uint32_t channels = 1, const std::string& secret = "") {
  const auto size = std::uint32_t(ranks->size());
  Addresses addresses(size * GCCL_BACKEND_ADDRESS_BYTES);
  for (std::uint32_t r = 0; r < size; ++r) {
    Rank& rank = (*ranks)[r];
    rank.rank = r;
    rank.open(size, secret);
    rank.open_port(size, channels, address(&addresses, r));
  }
  return addresses;
}

// All at the same time: where links are mended, one that leaves waits for the others' word.
inline void close_all(std::deque<Rank>* ranks) {
  std::vector<std::thread> threads;
  for (Rank& r : *ranks) threads.emplace_back([&r] { r.close(); });
  for (auto& t : threads) t.join();
}

// A peer that dials the rank by these addresses comes to `to` instead, or tries there before it comes to the rank.
enum class Detour : bool { instead, before };
inline void lead(Addresses* all, std::uint32_t rank, const SocketAddress& to, Detour how = Detour::instead) {
  tcp::PortAddress a;
  REQUIRE(tcp::decode(address(all, rank), &a));
  if (how == Detour::instead) a.addresses.clear();
  a.addresses.insert(a.addresses.begin(), to);
  tcp::encode(a, address(all, rank));
}

// Where nobody answers who dials: a listener whose queue is full.
struct Deaf {
  Deaf() : fill(4) {
    REQUIRE(listen_on(SocketAddress::loopback(0), &listener).ok());
    REQUIRE(::listen(listener.get(), 0) == 0);
    at = SocketAddress::local_end(listener.get());
    for (Fd& fd : fill) REQUIRE(dial(at, &fd).ok());
    pollfd first{fill[0].get(), POLLOUT, 0};
    REQUIRE(::poll(&first, 1, 20000) == 1);  // no place is left
  }
  Fd listener;
  SocketAddress at;
  std::vector<Fd> fill;
};

// Ranks of this process that one thread drives.
struct World {
  explicit World(std::uint32_t size, std::uint32_t channels = 1, const std::string& secret = "") : ranks(size) {
    const Addresses addresses = open_ports(&ranks, channels, secret);
    for (auto& r : ranks) r.connect(size, channels, addresses.data());
  }
  ~World() { close_all(&ranks); }
  Rank& operator[](std::size_t r) { return ranks[r]; }
  // Polls all ranks until the condition holds; false when that takes longer than the limit.
  bool until(const std::function<bool()>& condition, Clock::duration limit = 20s) {
    Pauses pauses;
    for (const auto end = Clock::now() + limit; Clock::now() < end; pauses.between()) {
      for (auto& r : ranks)
        if (r.port && r.fault.result == GCCL_SUCCESS) r.poll();
      if (condition()) return true;
    }
    return false;
  }
  bool until_done(std::initializer_list<GCCL_Transfer*> ts) {
    return until([&] {
      for (auto* t : ts)
        if (t->result == GCCL_IN_PROGRESS) return false;
      return true;
    });
  }
  std::deque<Rank> ranks;
};

inline std::vector<unsigned char> pattern(std::uint64_t seed, std::size_t bytes) {
  Random random(seed);
  std::vector<unsigned char> v(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t x = random();
    std::memcpy(&v[i], &x, std::min<std::size_t>(8, bytes - i));
  }
  return v;
}

// A connection's two ends.
inline std::array<Fd, 2> connected_pair() {
  Fd listener, dialling, accepted;
  REQUIRE(listen_on(SocketAddress::loopback(0), &listener).ok());
  REQUIRE(dial(SocketAddress::local_end(listener.get()), &dialling).ok());
  SocketAddress peer;
  while (!accepted) REQUIRE(accept_from(listener.get(), &accepted, &peer).ok());
  return {std::move(dialling), std::move(accepted)};
}

inline tcp::PortAddress address_of(std::uint32_t rank, Rank* self, const std::string& secret = "") {
  self->rank = rank;
  self->open(2, secret);
  std::byte bytes[GCCL_BACKEND_ADDRESS_BYTES];
  self->open_port(2, 1, bytes);
  tcp::PortAddress a;
  REQUIRE(tcp::decode(bytes, &a));
  return a;
}

inline bool connects(const SocketAddress& to) {
  Fd fd;
  if (!dial(to, &fd).ok()) return false;
  pollfd p{fd.get(), POLLOUT, 0};
  return ::poll(&p, 1, 2000) == 1 && dialled(fd.get(), to).ok();
}

}  // namespace tcp_test
