// A complete backend as a plug-in: messages over Unix domain sockets, between ranks of one machine.
//
//   GCCL_BACKEND_PATH=FOLDER_OF_THIS_LIBRARY GCCL_BACKENDS=sample gccl launch -n 4 -- ./app
//
// Each pair of ranks has one socket for each channel, because channels must not wait for each other, and one more for
// faults. A message is a header and its bytes. docs/backends.md explains what a backend must do and why.
#include <gccl/backend.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;  // handed to consume at a time
constexpr int kConnectTimeoutMs = 20000;        // for the peers' side of connect_port
constexpr unsigned kPollsBetweenLooks = 64;     // polls that find nothing before the sockets for faults are looked at

struct Header {
  std::uint64_t signature, bytes;
};
struct alignas(64) Line {
  std::byte bytes[64];
};
struct Hello {
  std::uint32_t rank, channel;  // of who connects
};

// Transfers in the order in which they were begun, linked through GCCL_Transfer::next.
struct Queue {
  GCCL_Transfer *first = nullptr, *last = nullptr;
  void push(GCCL_Transfer* t) {
    t->next = nullptr;
    (first ? last->next : first) = t;
    last = t;
  }
  void remove(const GCCL_Transfer* t) {  // nothing is pushed afterwards: the port is to be closed
    for (GCCL_Transfer** at = &first; *at; at = &(*at)->next)
      if (*at == t) return void(*at = t->next);
  }
};

// One channel to one peer. backend[0] of a transfer counts its bytes that have passed, with the header's.
struct Link {
  Link() = default;
  Link(const Link&) = delete;
  ~Link() {
    if (socket >= 0) ::close(socket);
  }
  int socket = -1;
  std::uint32_t peer = 0;
  Queue sends, receives;
  Header header{};          // of the message that arrives
  std::vector<Line> piece;  // of it, for consume
};

enum class Step { passed, later, lost };

// What a call on a non-blocking socket came to; *done grows by what passed.
Step passed(ssize_t n, std::uint64_t* done) {
  if (n > 0) {
    *done += std::uint64_t(n);
    return Step::passed;
  }
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? Step::later : Step::lost;  // 0: the peer has closed
}

class Port {
 public:
  explicit Port(const GCCL_Port_spec& spec)
      : rank_(spec.rank), channels_(spec.channels), links_(spec.size * (spec.channels + 1)) {
    for (std::uint32_t i = 0; i < links_.size(); ++i) links_[i].peer = i / (channels_ + 1);
  }

  // Listens under a name that no file stands for, so that none can be left behind.
  bool listen(void* address) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    std::random_device random;
    std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "gccl-sample-%u-%08x%08x", unsigned(::getpid()),
                  random(), random());
    std::memcpy(address, &name, sizeof name);
    listener_.socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return ::bind(listener_.socket, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0 &&
           ::listen(listener_.socket, SOMAXCONN) == 0;
  }

  // Calls the ranks above, answers those below. All sides do this at the same time.
  bool connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches) {
    std::uint32_t below = 0;
    for (std::uint32_t r = 0; r < spec.size; ++r) {
      sockaddr_un name;
      std::memcpy(&name, static_cast<const std::byte*>(addresses) + std::size_t(r) * GCCL_BACKEND_ADDRESS_BYTES,
                  sizeof name);
      if (r == rank_ || name.sun_family != AF_UNIX || spec.node[r] != spec.node[rank_]) continue;
      reaches[r] = 1;
      if (r < rank_) ++below;
      for (std::uint32_t c = 0; r > rank_ && c <= channels_; ++c) {
        const int s = link(r, c).socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const Hello hello{rank_, c};
        if (::connect(s, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
            ::send(s, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
          return false;
      }
    }
    for (std::uint32_t left = below * (channels_ + 1); left > 0;) {
      pollfd ready{listener_.socket, POLLIN, 0};
      if (::poll(&ready, 1, kConnectTimeoutMs) != 1) return errno = ETIMEDOUT, false;
      Link caller;
      caller.socket = ::accept4(listener_.socket, nullptr, nullptr, SOCK_CLOEXEC);
      const timeval limit{kConnectTimeoutMs / 1000, 0};
      ucred who{};
      socklen_t length = sizeof who;
      Hello hello;
      // Any process of the machine may call: only our own user's ranks are let in.
      if (::getsockopt(caller.socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::geteuid() ||
          ::setsockopt(caller.socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
          ::recv(caller.socket, &hello, sizeof hello, MSG_WAITALL) != sizeof hello || hello.rank >= rank_ ||
          hello.channel > channels_ || link(hello.rank, hello.channel).socket >= 0)
        continue;
      std::swap(link(hello.rank, hello.channel).socket, caller.socket);
      --left;
    }
    return true;
  }

  int send(GCCL_Transfer* t) { return begin(t, link(t->peer, t->channel).sends, &Port::advance_send); }
  int receive(GCCL_Transfer* t) { return begin(t, link(t->peer, t->channel).receives, &Port::advance_receive); }

  int poll(GCCL_Transfer** done, int max) {
    int count = 0;
    for (std::size_t i = 0; i < active_.size() && count < max && fault_.result == GCCL_SUCCESS;) {
      Link& l = *active_[i];
      for (Queue* q : {&l.sends, &l.receives})
        while (q->first && count < max && (q == &l.sends ? advance_send(l, q->first) : advance_receive(l, q->first))) {
          done[count++] = q->first;
          q->first = q->first->next;
        }
      if (l.sends.first || l.receives.first) {
        ++i;
      } else {
        active_.erase(active_.begin() + std::ptrdiff_t(i));
      }
    }
    // A caller that polls for nothing wants to know how the others are.
    if (count == 0 && (max == 0 || ++idle_polls_ % kPollsBetweenLooks == 0)) hear_all();
    return count == 0 && fault_.result != GCCL_SUCCESS ? -1 : count;
  }

  void cancel(GCCL_Transfer* t) {
    for (Queue Link::*q : {&Link::sends, &Link::receives}) (link(t->peer, t->channel).*q).remove(t);
  }

  // From any thread: touches nothing but the sockets, and one small send is never torn.
  void abort(const GCCL_Fault& fault) {
    for (std::uint32_t i = channels_; i < links_.size(); i += channels_ + 1)
      if (const int s = links_[i].socket; s >= 0)
        static_cast<void>(::send(s, &fault, sizeof fault, MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  const GCCL_Fault& fault() const { return fault_; }

 private:
  Link& link(std::uint32_t peer, std::uint32_t channel) { return links_[peer * (channels_ + 1) + channel]; }

  int begin(GCCL_Transfer* t, Queue& queue, bool (Port::*advance)(Link&, GCCL_Transfer*)) {
    Link& l = link(t->peer, t->channel);
    t->result = GCCL_SUCCESS;
    t->backend[0] = 0;
    // At once, unless others are before it.
    if (!queue.first && (this->*advance)(l, t)) return 1;
    if (!l.sends.first && !l.receives.first) active_.push_back(&l);
    queue.push(t);
    return 0;
  }

  // Both: true once the transfer is complete; false when the socket can do no more, or has failed.
  bool advance_send(Link& l, GCCL_Transfer* t) {
    Header header{t->signature, t->bytes};
    while (t->backend[0] < sizeof header + t->bytes) {
      const std::uint64_t at = t->backend[0];
      const bool in_header = at < sizeof header;
      const std::byte* const from = in_header ? reinterpret_cast<std::byte*>(&header) + at
                                              : static_cast<std::byte*>(t->data) + (at - sizeof header);
      const std::uint64_t bytes = in_header ? sizeof header - at : t->bytes - (at - sizeof header);
      if (!usable(l, passed(::send(l.socket, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL), &t->backend[0]))) return false;
    }
    return true;
  }

  bool advance_receive(Link& l, GCCL_Transfer* t) {
    while (t->backend[0] < sizeof(Header)) {
      auto* const to = reinterpret_cast<std::byte*>(&l.header) + t->backend[0];
      if (!take(l, to, sizeof(Header) - t->backend[0], t)) return false;
    }
    if (l.header.signature != t->signature || l.header.bytes != t->bytes) {
      t->signature_found = l.header.signature;
      t->bytes_found = l.header.bytes;
      t->result = GCCL_ERR_MISMATCH;  // the port is of no use any more, and nobody will use it
      return true;
    }
    while (t->backend[0] < sizeof(Header) + t->bytes) {
      const std::uint64_t at = t->backend[0] - sizeof(Header);
      if (!t->consume) {
        if (!take(l, static_cast<std::byte*>(t->data) + at, t->bytes - at, t)) return false;
        continue;
      }
      // Pieces are as long as whole elements fit, so that how much has come says where the last one begins.
      const std::uint64_t whole = std::max<std::uint64_t>(kPieceBytes / t->grain, 1) * t->grain;
      const std::uint64_t filled = at % whole, bytes = std::min(whole - filled, t->bytes - at);
      l.piece.resize(std::max<std::size_t>(l.piece.size(), (whole + sizeof(Line) - 1) / sizeof(Line)));
      auto* const piece = reinterpret_cast<std::byte*>(l.piece.data());
      if (!take(l, piece + filled, bytes, t)) return false;
      const std::uint64_t now = t->backend[0] - sizeof(Header);
      if (now == t->bytes || now % whole == 0) t->consume(t, piece, at - filled, now - (at - filled));
    }
    return true;
  }

  bool take(Link& l, void* to, std::uint64_t bytes, GCCL_Transfer* t) {
    return usable(l, passed(::recv(l.socket, to, bytes, MSG_DONTWAIT), &t->backend[0]));
  }

  bool usable(Link& l, Step s) {
    if (s == Step::lost) {
      // A rank that gave up said why before closing: that is the better reason.
      hear_all();
      if (fault_.result == GCCL_SUCCESS) {
        fault_.result = GCCL_ERR_PEER_LOST;
        fault_.peer = l.peer;
        std::snprintf(fault_.text, sizeof fault_.text, "its end of the socket is closed");
      }
    }
    return s == Step::passed;
  }
  // What the peers have to say about faults; the first one counts.
  void hear_all() {
    for (std::uint32_t i = channels_; i < links_.size() && fault_.result == GCCL_SUCCESS; i += channels_ + 1) {
      GCCL_Fault fault;
      const int s = links_[i].socket;
      if (s < 0 || ::recv(s, &fault, sizeof fault, MSG_DONTWAIT) != sizeof fault) continue;
      fault_ = fault;
      fault_.text[sizeof fault_.text - 1] = 0;
    }
  }

  std::uint32_t rank_, channels_;
  std::vector<Link> links_;    // peer * (channels + 1) + channel; the last one for faults
  std::vector<Link*> active_;  // with transfers
  Link listener_;              // until the port is closed
  GCCL_Fault fault_{};
  unsigned idle_polls_ = 0;
};

Port* port_of(void* port) { return static_cast<Port*>(port); }

GCCL_Result done(bool worked, char* text, const char* what) {
  if (!worked) std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "cannot %s: %s", what, std::strerror(errno));
  return worked ? GCCL_SUCCESS : GCCL_ERR_SYSTEM;
}
GCCL_Result open_port(void*, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
  auto made = std::make_unique<Port>(*spec);
  const GCCL_Result result = done(made->listen(address), text, "listen");
  if (result == GCCL_SUCCESS) *port = made.release();
  return result;
}
GCCL_Result connect_port(void* port, const GCCL_Port_spec* spec, const void* all, std::uint8_t* reaches, char* text) {
  return done(port_of(port)->connect(*spec, all, reaches), text, "connect");
}

const GCCL_Backend kBackend = {
    .abi = GCCL_BACKEND_ABI,
    .name = "sample",
    .open = [](const GCCL_Backend_environment*, void**, char*) { return GCCL_SUCCESS; },  // ports share nothing
    .close = [](void*) {},
    .open_port = open_port,
    .connect_port = connect_port,
    .port_connected = [](void*) {},
    .close_port = [](void* port) { delete port_of(port); },
    .send = [](void* port, GCCL_Transfer* t) { return port_of(port)->send(t); },
    .receive = [](void* port, GCCL_Transfer* t) { return port_of(port)->receive(t); },
    .poll = [](void* port, GCCL_Transfer** done, int max) { return port_of(port)->poll(done, max); },
    .fault = [](void* port, GCCL_Fault* fault) { *fault = port_of(port)->fault(); },
    .cancel = [](void* port, GCCL_Transfer* t) { port_of(port)->cancel(t); },
    .abort = [](void* port, const GCCL_Fault* fault) { port_of(port)->abort(*fault); },
};

}  // namespace

extern "C" GCCL_API const GCCL_Backend* GCCL_Backend_entry_v1(void) { return &kBackend; }
