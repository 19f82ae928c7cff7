#include "libgccl/communicator/recovery/datagram_paths.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/clock.hpp"

namespace gccl {

DatagramPaths::DatagramPaths(Rank me, const std::vector<Contact>& contacts) : paths_(contacts.size()) {
  for (Rank r = 0; r < contacts.size(); ++r) {
    Path& path = paths_[r];
    path.near = contacts[r].near(contacts[me]);
    for (const auto& wire : contacts[r].addresses)
      if (const SocketAddress a = SocketAddress::from_wire(wire); a.valid()) path.addresses.push_back(a);
    // In one network loopback leads there at all times, and elsewhere never.
    const auto useless = [&](const SocketAddress& a) { return a.is_loopback() != path.near; };
    if (!std::ranges::all_of(path.addresses, useless)) std::erase_if(path.addresses, useless);
  }
}

void DatagramPaths::send(const Datagrams& datagrams, Rank to, std::span<const std::byte> bytes) {
  Path& path = paths_[to];
  if (path.first_sent_ns == 0) path.first_sent_ns = now_ns();
  const bool all = path.heard_at == kNever || path.unanswered >= kUnansweredMax || path.sent++ % kOneOf == 0;
  ++path.unanswered;
  for (std::size_t i = 0; i < path.addresses.size(); ++i)
    if (all || i == path.heard_at) datagrams.send(path.addresses[i], bytes);
}

void DatagramPaths::heard(Rank from, const SocketAddress& at) {
  Path& path = paths_[from];
  path.heard = true;
  const auto found = std::ranges::find(path.addresses, at);
  if (found == path.addresses.end()) return;
  path.heard_at = std::size_t(found - path.addresses.begin());
  path.unanswered = 0;
}

bool DatagramPaths::owns(Rank rank, const SocketAddress& at) const {
  const Path& path = paths_[rank];
  const auto found = std::ranges::find(path.addresses, at);
  return found != path.addresses.end() && (path.near || path.heard_at == std::size_t(found - path.addresses.begin()));
}

bool DatagramPaths::never_heard(Rank rank, unsigned sent, std::int64_t since_ns) const {
  const Path& path = paths_[rank];
  return !path.heard && path.unanswered >= sent && path.first_sent_ns != 0 && path.first_sent_ns <= since_ns;
}

std::string DatagramPaths::text(Rank rank) const {
  std::vector<std::string> texts;
  for (const SocketAddress& a : paths_[rank].addresses) texts.push_back(a.text());
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace gccl
