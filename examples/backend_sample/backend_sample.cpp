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

class Fd {  // closes itself
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Transfers in the order in which they were begun, linked through GCCL_Transfer::next.
struct Queue {
  GCCL_Transfer *first = nullptr, *last = nullptr;
  void push(GCCL_Transfer* t) {
    t->next = nullptr;
    (first ? last->next : first) = t;
    last = t;
  }
  void pop() { first = first->next; }
  bool remove(GCCL_Transfer* t) {
    for (GCCL_Transfer *x = first, *before = nullptr; x; before = x, x = x->next) {
      if (x != t) continue;
      (before ? before->next : first) = x->next;
      if (last == x) last = before;
      return true;
    }
    return false;
  }
};

// One channel to one peer. backend[0] of a transfer counts its bytes that have passed, with the header's.
struct Link {
  Fd socket;
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
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listener_.get() < 0 || ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0)
      return false;
    std::memcpy(address, &name, sizeof name);
    return ::listen(listener_.get(), SOMAXCONN) == 0;
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
        Fd s(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const Hello hello{rank_, c};
        if (s.get() < 0 || ::connect(s.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
            ::send(s.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
          return false;
        link(r, c).socket = std::move(s);
      }
    }
    for (std::uint32_t left = below * (channels_ + 1); left > 0;) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, kConnectTimeoutMs) != 1) return errno = ETIMEDOUT, false;
      Fd s(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const timeval limit{kConnectTimeoutMs / 1000, 0};
      ucred who{};
      socklen_t length = sizeof who;
      Hello hello;
      // Any process of the machine may call: only our own user's ranks are let in.
      if (s.get() < 0 || ::getsockopt(s.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::geteuid() ||
          ::setsockopt(s.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
          ::recv(s.get(), &hello, sizeof hello, MSG_WAITALL) != sizeof hello || hello.rank >= rank_ ||
          hello.channel > channels_ || link(hello.rank, hello.channel).socket.get() >= 0)
        continue;
      link(hello.rank, hello.channel).socket = std::move(s);
      --left;
    }
    listener_ = Fd();
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
          q->pop();
        }
      if (l.sends.first || l.receives.first) {
        ++i;
      } else {
        active_.erase(active_.begin() + std::ptrdiff_t(i));
      }
    }
    // Who polls for nothing wants to know how the others are.
    if (count == 0 && (max == 0 || ++idle_polls_ % kPollsBetweenLooks == 0))
      for (std::uint32_t r = 0; r < links_.size() / (channels_ + 1); ++r) hear(r);
    return count == 0 && fault_.result != GCCL_SUCCESS ? -1 : count;
  }

  void cancel(GCCL_Transfer* t) {
    Link& l = link(t->peer, t->channel);
    if (!l.sends.remove(t)) l.receives.remove(t);
  }

  // From any thread: touches nothing but the sockets, and one small send is never torn.
  void abort(const GCCL_Fault& fault) {
    for (std::uint32_t r = 0; r < links_.size() / (channels_ + 1); ++r)
      if (const int s = link(r, channels_).socket.get(); s >= 0)
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
      if (!usable(l, passed(::send(l.socket.get(), from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL), &t->backend[0])))
        return false;
    }
    return true;
  }

  bool advance_receive(Link& l, GCCL_Transfer* t) {
    while (t->backend[0] < sizeof(Header)) {
      auto* const to = reinterpret_cast<std::byte*>(&l.header) + t->backend[0];
      if (!usable(l, passed(::recv(l.socket.get(), to, sizeof(Header) - t->backend[0], MSG_DONTWAIT), &t->backend[0])))
        return false;
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
        if (!usable(l,
                    passed(::recv(l.socket.get(), static_cast<std::byte*>(t->data) + at, t->bytes - at, MSG_DONTWAIT),
                           &t->backend[0])))
          return false;
        continue;
      }
      // Pieces are as long as whole elements fit, so that how much has come tells where the last one begins.
      const std::uint64_t whole = std::max<std::uint64_t>(kPieceBytes / t->grain, 1) * t->grain;
      const std::uint64_t filled = at % whole, bytes = std::min(whole - filled, t->bytes - at);
      l.piece.resize(std::max<std::size_t>(l.piece.size(), (whole + sizeof(Line) - 1) / sizeof(Line)));
      auto* const piece = reinterpret_cast<std::byte*>(l.piece.data());
      if (!usable(l, passed(::recv(l.socket.get(), piece + filled, bytes, MSG_DONTWAIT), &t->backend[0]))) return false;
      const std::uint64_t now = t->backend[0] - sizeof(Header);
      if (now == t->bytes || now % whole == 0) t->consume(t, piece, at - filled, now - (at - filled));
    }
    return true;
  }

  bool usable(Link& l, Step s) {
    if (s == Step::lost) {
      // Whoever gave up said why before closing: that is the better reason.
      for (std::uint32_t r = 0; r < links_.size() / (channels_ + 1); ++r) hear(r);
      if (fault_.result == GCCL_SUCCESS) {
        fault_.result = GCCL_ERR_PEER_LOST;
        fault_.peer = l.peer;
        std::snprintf(fault_.text, sizeof fault_.text, "its end of the socket is closed");
      }
    }
    return s == Step::passed;
  }
  // What the peer has to say about faults; the first one counts.
  void hear(std::uint32_t peer) {
    GCCL_Fault fault;
    const int s = link(peer, channels_).socket.get();
    if (s < 0 || ::recv(s, &fault, sizeof fault, MSG_DONTWAIT) != sizeof fault || fault_.result != GCCL_SUCCESS) return;
    fault_ = fault;
    fault_.text[sizeof fault_.text - 1] = 0;
  }

  std::uint32_t rank_, channels_;
  std::vector<Link> links_;    // peer * (channels + 1) + channel; the last one for faults
  std::vector<Link*> active_;  // with transfers
  Fd listener_;
  GCCL_Fault fault_{};
  unsigned idle_polls_ = 0;
};

Port* port_of(void* port) { return static_cast<Port*>(port); }

GCCL_Result refused(char* text, const char* what) {
  std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "%s: %s", what, std::strerror(errno));
  return GCCL_ERR_SYSTEM;
}

char the_instance;  // ports share nothing

const GCCL_Backend kBackend = {
    .abi = GCCL_BACKEND_ABI,
    .name = "sample",
    .open =
        [](const GCCL_Backend_environment*, void** instance, char*) {
          *instance = &the_instance;
          return GCCL_SUCCESS;
        },
    .close = [](void*) {},
    .open_port =
        [](void*, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
          auto made = std::make_unique<Port>(*spec);
          if (!made->listen(address)) return refused(text, "cannot listen");
          *port = made.release();
          return GCCL_SUCCESS;
        },
    .connect_port =
        [](void* port, const GCCL_Port_spec* spec, const void* addresses, std::uint8_t* reaches, char* text) {
          return port_of(port)->connect(*spec, addresses, reaches) ? GCCL_SUCCESS : refused(text, "cannot connect");
        },
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
