// A shaped network on one machine, where the kernel has no sch_netem: N network namespaces, each with one TAP device,
// and a switch between them in this process, with a rate, a delay and a loss.
//
//   bench_tapnet --ports 4 --mbit 1000 --delay-us 1000 [--queue-kb 1024] [--loss 0] [--seed 1]
//
// Needs root and /dev/net/tun. Says "namespace K FD ADDRESS" for each namespace and then "ready"; a command runs in
// namespace K by `nsenter --net=/proc/PID/fd/FD COMMAND` with this process's PID. The namespaces have no names: they
// and their devices end with this process, however it ends. It ends on SIGINT, on SIGTERM, and with its parent.
//
// Ports are full duplex: an uplink and a downlink of --mbit each, each with a queue of --queue-kb that drops what does
// not fit; --delay-us is one way, between any two ports. The switch cuts through: a frame alone on its path pays its
// wire time once. A segmentation-offload frame travels whole, and takes the time of the segments it stands for.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

// struct virtio_net_hdr: <linux/virtio_net.h> does not compile as C++ everywhere.
struct OffloadHeader {
  std::uint8_t flags, gso_type;
  std::uint16_t header_bytes, segment_bytes, checksum_start, checksum_offset;
};
constexpr std::int64_t ethernet_header_bytes = 14, ethernet_gap_bytes = 24;  // preamble, checksum, gap between frames
constexpr int ports_max = 200;

volatile sig_atomic_t stopped = 0;

struct Options {
  double ports = 4, mbit = 1000, delay_us = 1000, queue_kb = 1024, loss = 0, seed = 1;
};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t(1000000000) + t.tv_nsec;
}

struct Port {
  int namespace_fd = -1, tap_fd = -1;
  std::int64_t uplink_free_ns = 0, downlink_free_ns = 0;
};

std::string address_of(int port) { return "10.98.0." + std::to_string(port + 1); }

void up(int socket, const char* name) {
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) fail(name);
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) fail(name);
}

void set_address(int socket, unsigned long what, const std::string& text) {
  ifreq request{};
  std::strcpy(request.ifr_name, "eth0");
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  address->sin_family = AF_INET;
  inet_pton(AF_INET, text.c_str(), &address->sin_addr);
  if (ioctl(socket, what, &request) != 0) fail("eth0: " + text);
}

// A new namespace with eth0 in it, up. Leaves this thread in the namespace.
Port open_port(int number) {
  Port port;
  if (unshare(CLONE_NEWNET) != 0) fail("no new network namespace (root is needed)");
  port.namespace_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  port.tap_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (port.tap_fd < 0) fail("/dev/net/tun");
  ifreq request{};
  std::strcpy(request.ifr_name, "eth0");
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(port.tap_fd, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  if (ioctl(port.tap_fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) fail("TUNSETOFFLOAD");

  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("socket");
  request = {};
  std::strcpy(request.ifr_name, "eth0");
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  const unsigned char mac[6] = {2, 0, 0, 0, 0, static_cast<unsigned char>(number + 1)};
  std::memcpy(request.ifr_hwaddr.sa_data, mac, sizeof mac);
  if (ioctl(socket, SIOCSIFHWADDR, &request) != 0) fail("eth0: hardware address");
  set_address(socket, SIOCSIFADDR, address_of(number));
  set_address(socket, SIOCSIFNETMASK, "255.255.255.0");
  up(socket, "eth0");
  up(socket, "lo");
  close(socket);
  return port;
}

class Switch {
 public:
  Switch(std::vector<Port> ports, const Options& options)
      : ports_(std::move(ports)),
        ns_per_byte_(8000 / options.mbit),
        delay_ns_(std::int64_t(options.delay_us * 1e3)),
        queue_ns_(std::int64_t(options.queue_kb * 1024 * ns_per_byte_)),
        loss_(options.loss),
        random_(std::uint64_t(options.seed)),
        buffer_(1 << 17) {}

  void run() {
    std::vector<pollfd> polled;
    for (const Port& port : ports_) polled.push_back({port.tap_fd, POLLIN, 0});
    while (!stopped) {
      deliver();
      timespec limit{1, 0};
      if (!in_flight_.empty()) {
        const std::int64_t left = std::max<std::int64_t>(0, in_flight_.top().due_ns - now_ns());
        limit = {time_t(left / 1000000000), long(left % 1000000000)};
      }
      if (ppoll(polled.data(), polled.size(), &limit, nullptr) <= 0) continue;
      for (std::size_t p = 0; p < ports_.size(); ++p)
        if (polled[p].revents & POLLIN) accept(int(p));
    }
    std::fprintf(stderr, "bench_tapnet: %llu frames, %llu dropped by full queues, %llu lost\n",
                 static_cast<unsigned long long>(sequence_), static_cast<unsigned long long>(dropped_),
                 static_cast<unsigned long long>(lost_));
  }

 private:
  struct Frame {
    std::int64_t due_ns;
    std::uint64_t sequence;
    int to;
    std::shared_ptr<const std::vector<std::uint8_t>> data;  // one copy however many ports a broadcast reaches
    bool operator<(const Frame& other) const {              // std::priority_queue's top is the largest: the earliest
      return due_ns != other.due_ns ? due_ns > other.due_ns : sequence > other.sequence;
    }
  };

  void deliver() {
    const std::int64_t now = now_ns();
    while (!in_flight_.empty() && in_flight_.top().due_ns <= now) {
      const Frame& frame = in_flight_.top();
      if (write(ports_[frame.to].tap_fd, frame.data->data(), frame.data->size()) < 0) ++dropped_;
      in_flight_.pop();
    }
  }

  // Takes some frames from a port's uplink; not all, so that no port starves the others.
  void accept(int from) {
    for (int burst = 0; burst < 16; ++burst) {
      const ssize_t length = read(ports_[from].tap_fd, buffer_.data(), buffer_.size());
      if (length <= ssize_t(sizeof(OffloadHeader)) + ethernet_header_bytes) return;
      const std::int64_t now = now_ns();
      OffloadHeader header;
      std::memcpy(&header, buffer_.data(), sizeof header);
      std::int64_t bytes = length - std::int64_t(sizeof header), segments = 1;
      if (header.gso_type != 0 && header.segment_bytes != 0) {
        segments = (bytes - header.header_bytes + header.segment_bytes - 1) / header.segment_bytes;
        bytes += (segments - 1) * header.header_bytes;
      }
      const std::int64_t wire_ns = std::int64_t(double(bytes + ethernet_gap_bytes * segments) * ns_per_byte_);
      std::int64_t& free_ns = ports_[from].uplink_free_ns;
      if (free_ns - now > queue_ns_) {
        ++dropped_;
        continue;
      }
      free_ns = std::max(now, free_ns) + wire_ns;
      const auto data = std::make_shared<const std::vector<std::uint8_t>>(buffer_.begin(), buffer_.begin() + length);
      forward(from, free_ns, wire_ns, segments, data);
    }
  }

  // The frame's last byte leaves the uplink at left_ns.
  void forward(int from, std::int64_t left_ns, std::int64_t wire_ns, std::int64_t segments,
               const std::shared_ptr<const std::vector<std::uint8_t>>& data) {
    const std::uint8_t* mac = data->data() + sizeof(OffloadHeader);
    const bool to_all = mac[0] & 1;
    for (int to = 0; to < int(ports_.size()); ++to) {
      if (to == from || (!to_all && mac[5] != to + 1)) continue;
      if (loss_ > 0 && chance_(random_) < 1 - std::pow(1 - loss_, double(segments))) {
        ++lost_;
        continue;
      }
      std::int64_t& free_ns = ports_[to].downlink_free_ns;
      if (free_ns - left_ns > queue_ns_) {
        ++dropped_;
        continue;
      }
      free_ns = std::max(left_ns, free_ns + wire_ns);
      in_flight_.push({free_ns + delay_ns_, sequence_++, to, data});
    }
  }

  std::vector<Port> ports_;
  double ns_per_byte_;
  std::int64_t delay_ns_, queue_ns_;
  double loss_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> chance_{0, 1};
  std::vector<std::uint8_t> buffer_;
  std::priority_queue<Frame> in_flight_;
  std::uint64_t sequence_ = 0, dropped_ = 0, lost_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  const struct {
    std::string_view name;
    double* value;
    double min, max;
  } known[] = {{"--ports", &options.ports, 2, ports_max}, {"--mbit", &options.mbit, 0.001, 1e6},
               {"--delay-us", &options.delay_us, 0, 1e7}, {"--queue-kb", &options.queue_kb, 64, 1e7},
               {"--loss", &options.loss, 0, 1},           {"--seed", &options.seed, 0, 1e15}};
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i], text = i + 1 < argc ? argv[i + 1] : "";
    const auto* found = std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return k.name == name; });
    if (found == std::end(known))
      throw std::invalid_argument(std::string(name) +
                                  ": unknown; known: --ports --mbit --delay-us --queue-kb --loss --seed");
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *found->value);
    if (error != std::errc() || end != text.data() + text.size() || !(*found->value >= found->min) ||
        *found->value > found->max) {
      char range[64];
      std::snprintf(range, sizeof range, "; a number from %g to %g was expected", found->min, found->max);
      throw std::invalid_argument(std::string(name) + " \"" + std::string(text) + "\"" + range);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1);
    // A network does not wait for its hosts' processors: ranks that spin must not slow it down.
    const sched_param priority{.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) != 0)
      std::fprintf(stderr, "bench_tapnet: no real-time priority: %s\n", std::strerror(errno));
    struct sigaction action {};
    action.sa_handler = [](int) { stopped = 1; };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    std::vector<Port> ports;
    for (int k = 0; k < int(options.ports); ++k) ports.push_back(open_port(k));
    for (int k = 0; k < int(options.ports); ++k)
      std::printf("namespace %d %d %s\n", k, ports[k].namespace_fd, address_of(k).c_str());
    std::printf("ready\n");
    std::fflush(stdout);
    Switch(std::move(ports), options).run();
  } catch (const std::invalid_argument& error) {
    return std::fprintf(stderr, "bench_tapnet: %s\n", error.what()), 2;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "bench_tapnet: %s\n", error.what()), 1;
  }
}
