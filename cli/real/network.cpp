#include "cli/real/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "libgccl/base/system_refused.hpp"
#include "libgccl/communicator/recovery/datagram.hpp"
#include "libgccl/fault/membership.hpp"

namespace gccl::real {
namespace {

constexpr int kMtu = 9000;
constexpr std::size_t kEthernet = 14;
constexpr Nanos kLate = 2'000'000;  // a frame that is overtaken is this late
constexpr auto kMembership = std::uint8_t(DatagramHeader::Kind::membership);
constexpr auto kAgreement = std::uint8_t(fault::MembershipMessage::Kind::agreement);

std::string system_text(const std::string& what) {
  return fmt::format("{}: {}", what, std::generic_category().message(errno));
}
[[noreturn]] void fail_by_system(const std::string& what) { throw SystemRefused(system_text(what)); }

void set_hardware_address(sockaddr* at, Rank rank) {
  at->sa_family = ARPHRD_ETHER;
  const std::uint8_t mac[6] = {2, 0, 0, 0, 0, std::uint8_t(rank + 1)};
  std::memcpy(at->sa_data, mac, sizeof mac);
}

void set_network_address(sockaddr* at, const std::string& text) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  inet_pton(AF_INET, text.c_str(), &in.sin_addr);
  std::memcpy(at, &in, sizeof in);
}

ifreq device(const char* name) {
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  return request;
}

void bring_up(int socket, const char* name) {
  ifreq request = device(name);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) fail_by_system(name);
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) fail_by_system(name);
}

// The device of a rank in the namespace that this thread is in.
Fd open_tap(Rank rank, Rank ranks) {
  Fd tap(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap) fail_by_system("/dev/net/tun");
  // Without offloads: frames have their checksums, and what is damaged is found by them.
  ifreq request = device("eth0");
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(tap.get(), TUNSETIFF, &request) != 0) fail_by_system("a TAP device");
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) fail_by_system("a socket");
  request = device("eth0");
  set_hardware_address(&request.ifr_hwaddr, rank);
  if (ioctl(socket.get(), SIOCSIFHWADDR, &request) != 0) fail_by_system("eth0: its hardware address");
  request = device("eth0");
  set_network_address(&request.ifr_addr, Network::address(rank));
  if (ioctl(socket.get(), SIOCSIFADDR, &request) != 0) fail_by_system("eth0: its address");
  set_network_address(&request.ifr_addr, "255.255.255.0");
  if (ioctl(socket.get(), SIOCSIFNETMASK, &request) != 0) fail_by_system("eth0: its network");
  request = device("eth0");
  request.ifr_mtu = kMtu;
  if (ioctl(socket.get(), SIOCSIFMTU, &request) != 0) fail_by_system("eth0: its frames");
  bring_up(socket.get(), "eth0");
  bring_up(socket.get(), "lo");
  // Nobody asks who has which address: a partition hits what ranks send, not the finding of each other.
  for (Rank other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    arpreq entry{};
    set_network_address(&entry.arp_pa, Network::address(other));
    set_hardware_address(&entry.arp_ha, other);
    entry.arp_flags = ATF_PERM | ATF_COM;
    std::strcpy(entry.arp_dev, "eth0");
    if (ioctl(socket.get(), SIOCSARP, &entry) != 0) fail_by_system("eth0: its neighbours");
  }
  return tap;
}

void new_namespace() {
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) fail_by_system("a network namespace");
}

// Where the parts of an IPv4 frame begin; nothing where it is none, or a fragment.
struct Parsed {
  std::uint8_t protocol = 0;
  std::size_t transport = 0, payload = 0, end = 0;
};
Parsed parsed(const std::vector<std::uint8_t>& f) {
  if (f.size() < kEthernet + 20 || f[12] != 0x08 || f[13] != 0x00) return {};
  Parsed p{.protocol = f[kEthernet + 9], .transport = kEthernet + (f[kEthernet] & 15u) * 4u};
  p.end = std::min<std::size_t>(f.size(), kEthernet + (std::size_t(f[kEthernet + 2]) << 8 | f[kEthernet + 3]));
  if (p.protocol == IPPROTO_TCP && p.transport + 20 <= p.end)
    p.payload = p.transport + (f[p.transport + 12] >> 4) * 4u;
  else if (p.protocol == IPPROTO_UDP && p.transport + 8 <= p.end)
    p.payload = p.transport + 8;
  if (p.payload > p.end) p.payload = p.end;
  return p;
}

std::uint16_t folded(std::uint32_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return std::uint16_t(~sum);
}

std::uint32_t word_sum(const std::uint8_t* at, std::size_t bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += 2) sum += std::uint32_t(at[i]) << 8 | (i + 1 < bytes ? at[i + 1] : 0);
  return sum;
}

}  // namespace

std::string Network::address(Rank rank) { return fmt::format("10.98.0.{}", rank + 1); }

std::string Network::obstacle() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_text("a pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return system_text("a process");
  if (pid == 0) {
    try {
      new_namespace();
      open_tap(0, 2);
    } catch (const std::exception& e) {
      [[maybe_unused]] const auto n = ::write(write_end.get(), e.what(), std::strlen(e.what()));
    }
    _exit(0);
  }
  write_end.reset();
  std::string text(512, 0);
  ssize_t n = 0;
  while ((n = ::read(read_end.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  text.resize(std::size_t(std::max<ssize_t>(n, 0)));
  return text;
}

Network::Network(Rank ranks, std::uint64_t seed) : free_(std::size_t(ranks) * ranks), random_(seed) {
  for (Rank r = 0; r < ranks; ++r) {
    new_namespace();
    Port port;
    port.space = Fd(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!port.space) fail_by_system("/proc/self/ns/net");
    port.tap = open_tap(r, ranks);
    ports_.push_back(std::move(port));
  }
}

void Network::enter(Rank rank) const {
  if (setns(ports_[rank].space.get(), CLONE_NEWNET) != 0) fail_by_system("a network namespace");
}

bool Network::chance(double p) {
  random_ += splitmix::kGolden;
  return p > 0 && double(splitmix::mix(random_) >> 11) * 0x1p-53 < p;
}

void Network::give(Rank to, const std::vector<std::uint8_t>& bytes) {
  // A port that takes no more drops, as a switch's does.
  [[maybe_unused]] const auto n = ::write(ports_[to].tap.get(), bytes.data(), bytes.size());
}

void Network::move(Rank from, Nanos now, const std::function<Passage(Rank, Rank)>& passage) {
  std::vector<std::uint8_t> frame;
  for (int burst = 0; burst < 32; ++burst) {
    frame.resize(kMtu + 64);
    const ssize_t n = ::read(ports_[from].tap.get(), frame.data(), frame.size());
    if (n < ssize_t(kEthernet)) return;
    frame.resize(std::size_t(n));
    if ((frame[0] & 1) || frame[5] == 0 || frame[5] > ports_.size()) continue;  // for all: nothing that ranks send
    const Rank to = Rank(frame[5] - 1);
    pass(from, to, frame, now, passage(from, to));
  }
}

void Network::pass(Rank from, Rank to, std::vector<std::uint8_t> frame, Nanos now, const Passage& p) {
  const Parsed at = parsed(frame);
  if (p.cut) return;
  const bool connection = at.protocol == IPPROTO_TCP && p.resets;
  if (chance(p.loss)) {
    if (!connection) return;
    if (at.end > at.payload) return reset(from, to, frame);
  }
  const bool agreement = at.protocol == IPPROTO_UDP && at.end > at.payload + DatagramHeader::kBytes &&
                         frame[at.payload + DatagramHeader::kKindAt] == kMembership &&
                         frame[at.payload + DatagramHeader::kBytes] == kAgreement;
  if (agreement && chance(p.agreement_loss)) return;
  if (chance(p.corruption)) damage(&frame, p.past_checksums);
  Nanos due = now + p.latency;
  if (p.bytes_per_ns > 0) {
    Nanos& free = free_[std::size_t(from) * ports_.size() + to];
    free = std::max(free, now) + Nanos(double(frame.size()) / p.bytes_per_ns);
    due = std::max(due, free + p.latency);
  }
  if (chance(p.reordering)) due += kLate;
  const bool twice = chance(p.duplication);
  if (due > now) {
    if (twice) delayed_.push({due, number_++, to, frame});
    delayed_.push({due, number_++, to, std::move(frame)});
  } else {
    give(to, frame);
    if (twice) give(to, frame);
  }
}

// A bit of the payload; or one bit of two words, one from 0 to 1 and one from 1 to 0, which the sum does not see.
void Network::damage(std::vector<std::uint8_t>* frame, bool past_checksums) {
  const Parsed at = parsed(*frame);
  if (at.payload >= at.end) return;
  random_ += splitmix::kGolden;
  const std::uint64_t x = splitmix::mix(random_);
  const std::size_t bytes = at.end - at.payload, place = at.payload + x % bytes;
  const auto bit = std::uint8_t(1u << (x >> 61));
  if (!past_checksums || at.protocol != IPPROTO_TCP) {
    (*frame)[place] ^= bit;
    return;
  }
  for (std::size_t other = place + 2; other < at.end; other += 2)
    if ((((*frame)[place] ^ (*frame)[other]) & 1) != 0) {
      (*frame)[place] ^= 1;
      (*frame)[other] ^= 1;
      return;
    }
}

// To both ends, as if the other one had said so.
void Network::reset(Rank from, Rank to, const std::vector<std::uint8_t>& frame) {
  const Parsed at = parsed(frame);
  const std::uint32_t taken = std::uint32_t(at.end - at.payload);
  std::vector<std::uint8_t> r(frame.begin(), frame.begin() + std::ptrdiff_t(kEthernet + 20));
  r[kEthernet] = 0x45;
  r[kEthernet + 2] = 0, r[kEthernet + 3] = 40;
  r.insert(r.end(), frame.begin() + std::ptrdiff_t(at.transport), frame.begin() + std::ptrdiff_t(at.transport + 20));
  const auto sealed = [](std::vector<std::uint8_t> f) {
    const auto put = [&](std::size_t where, std::uint16_t x) {
      f[where] = std::uint8_t(x >> 8), f[where + 1] = std::uint8_t(x);
    };
    put(kEthernet + 10, 0);
    put(kEthernet + 10, folded(word_sum(&f[kEthernet], 20)));
    put(kEthernet + 36, 0);
    put(kEthernet + 36, folded(word_sum(&f[kEthernet + 12], 8) + IPPROTO_TCP + 20 + word_sum(&f[kEthernet + 20], 20)));
    return f;
  };
  std::uint8_t* const tcp = &r[kEthernet + 20];
  tcp[12] = 5 << 4;
  tcp[13] = 0x14;  // RST, ACK
  give(to, sealed(r));
  // Backwards: the acknowledged number is the next that the sender of the frame takes.
  std::swap_ranges(&r[0], &r[6], &r[6]);
  std::swap_ranges(&r[kEthernet + 12], &r[kEthernet + 16], &r[kEthernet + 16]);
  std::swap_ranges(tcp, tcp + 2, tcp + 2);
  std::uint32_t sequence = 0;
  for (int i = 0; i < 4; ++i) sequence = sequence << 8 | tcp[4 + i];
  sequence += taken;
  for (int i = 0; i < 4; ++i) tcp[4 + i] = tcp[8 + i];
  for (int i = 3; i >= 0; --i, sequence >>= 8) tcp[8 + i] = std::uint8_t(sequence);
  give(from, sealed(r));
}

void Network::deliver(Nanos now) {
  while (!delayed_.empty() && delayed_.top().due <= now) {
    give(delayed_.top().to, delayed_.top().bytes);
    delayed_.pop();
  }
}

}  // namespace gccl::real
