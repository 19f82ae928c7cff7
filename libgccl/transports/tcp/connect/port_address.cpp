#include "libgccl/transports/tcp/connect/port_address.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "libgccl/base/splitmix.hpp"

namespace gccl::tcp {
namespace {

struct AddressWire {
  char magic[4] = {'G', 't', 'c', 1};
  std::uint32_t world_rank;
  std::uint64_t nonce, host;
  std::uint16_t loopback_only, left_out;
  std::uint32_t count;
  SocketAddress::Wire addresses[PortAddress::kAddressesMax];
};
static_assert(sizeof(AddressWire) <= GCCL_BACKEND_ADDRESS_BYTES);

}  // namespace

std::vector<SocketAddress> PortAddress::candidates(const PortAddress& other) const {
  std::vector<SocketAddress> list;
  const bool same = host == other.host;
  for (const SocketAddress& a : other.addresses)
    if (same || !a.is_loopback()) list.push_back(a);
  if (same) std::stable_partition(list.begin(), list.end(), [](const auto& a) { return a.is_loopback(); });
  return list;
}

std::uint64_t host_number(const char* host) {
  std::uint64_t h = splitmix::text_hash(host);
  struct stat s {};  // of this thread: a process whose main thread has ended has no such file
  if (stat("/proc/thread-self/ns/net", &s) == 0) h = splitmix::hash(h ^ std::uint64_t(s.st_ino));
  return h;
}

void encode(const PortAddress& address, void* bytes) {
  AddressWire w{};
  w.world_rank = address.world_rank;
  w.nonce = address.nonce;
  w.host = address.host;
  w.loopback_only = address.loopback_only;
  w.left_out = std::uint16_t(std::min<std::uint32_t>(address.left_out, 0xffff));
  w.count = std::uint32_t(std::min(address.addresses.size(), PortAddress::kAddressesMax));
  for (std::uint32_t i = 0; i < w.count; ++i) w.addresses[i] = address.addresses[i].wire();
  std::memset(bytes, 0, GCCL_BACKEND_ADDRESS_BYTES);
  std::memcpy(bytes, &w, sizeof w);
}

bool decode(const void* bytes, PortAddress* address) {
  AddressWire w;
  std::memcpy(static_cast<void*>(&w), bytes, sizeof w);
  if (std::memcmp(w.magic, AddressWire{}.magic, sizeof w.magic) != 0 || w.count > PortAddress::kAddressesMax ||
      w.loopback_only > 1)
    return false;
  *address = {};
  address->world_rank = w.world_rank;
  address->nonce = w.nonce;
  address->host = w.host;
  address->loopback_only = w.loopback_only == 1;
  address->left_out = w.left_out;
  for (std::uint32_t i = 0; i < w.count; ++i)
    if (const auto a = SocketAddress::from_wire(w.addresses[i]); a.valid()) address->addresses.push_back(a);
  return !address->addresses.empty();
}

}  // namespace gccl::tcp
