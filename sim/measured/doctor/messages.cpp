#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/measured/doctor/merged.hpp"

namespace gccl::sim {
namespace {

using Way = std::pair<bool, std::uint32_t>;  // of messages: sends, and the peer

// What a message meets at its peer.
struct OtherSide {
  bool begun = false;                      // it has come to it
  const DumpedMessage* message = nullptr;  // null: it is over, and nothing more is known of it
  bool completed() const { return begun && (!message || message->completed); }
  bool waits() const { return message && message->waits; }
};

// Of `m`, the k-th in the dump of those in its direction between the two. Where nothing counts them it is the first
// that is in flight.
OtherSide other_side(const DumpedGroup& here, const DumpedGroup& there, std::uint32_t rank, const DumpedMessage& m,
                     std::size_t k) {
  const auto meets = [&](const DumpedMessage& x) { return x.sends != m.sends && x.peer == rank; };
  if (m.number > 0 && there.begun) {
    const auto found = there.begun->find(rank);
    if (found == there.begun->end() || (m.sends ? found->second.received : found->second.sent) < m.number) return {};
    for (const DumpedMessage& x : there.messages)
      if (meets(x) && x.number == m.number) return {.begun = true, .message = &x};
    return {.begun = true};
  }
  const bool counted = here.all_messages && there.all_messages;
  std::size_t n = 0;
  for (const DumpedMessage& x : there.messages)
    if (meets(x) && (counted ? n++ == k : !x.completed)) return {.begun = true, .message = &x};
  return {};
}

// GCCL's messages agree in their types, too.
bool differ(const DumpedMessage& a, const DumpedMessage& b) {
  if (a.number > 0 && b.number > 0) return a.what != b.what;
  return a.bytes != b.bytes && a.bytes > 0 && b.bytes > 0;
}

}  // namespace

void find_waiting_messages(const MergedDumps& all, const MergedGroup& g, Findings& out, Findings& idle) {
  for (const auto& [rank, d] : g.of) {
    std::map<Way, std::size_t> before;
    std::set<Way> said, waits;  // who waits for one of them waits for those before it
    for (const DumpedMessage& m : d->messages)
      if (!m.completed && m.waits) waits.emplace(m.sends, m.peer);
    std::string on_its_way;  // of messages that the other side is done with
    const std::size_t found = out.list.size();
    for (const DumpedMessage& m : d->messages) {
      const Way way(m.sends, m.peer);
      const std::size_t k = before[way]++;
      if (m.completed || !said.insert(way).second) continue;
      const bool waiting = waits.contains(way);
      Findings& to = waiting ? out : idle;
      const std::string in = fmt::format("rank {} {} {}", rank, waiting ? "waits" : "has begun", waiting_text(m));
      if (!all.says_where(m.peer)) {
        to.add("no_dump", g, 0, {m.peer}, fmt::format("{}; {}.", in, all.why_silent({m.peer})));
        continue;
      }
      const auto peer = g.of.find(m.peer);
      const OtherSide other = peer == g.of.end() ? OtherSide() : other_side(*d, *peer->second, rank, m, k);
      const char* const done = m.sends ? "received" : "sent";
      const Ranks both = {rank, m.peer};
      if (m.peer == rank && !other.begun) {
        to.add("waits", g, 0, {rank}, fmt::format("{}, which is itself, and has not {} it.", in, done));
      } else if (peer == g.of.end()) {
        to.add("waits", g, 0, {rank}, fmt::format("{}; {}.", in, all.why_unknown({m.peer})));
      } else if (!other.begun) {
        if (waiting) out.wait_for[rank].insert(m.peer);
        to.add("missing", g, 0, {m.peer},
               fmt::format("{}, which has not {} it, and {}.", in, done, all.elsewhere(nullptr, m.peer)));
      } else if (m.sends && !other.completed()) {
        continue;  // said of the receiver, for both
      } else if (other.message && differ(m, *other.message)) {
        out.add("differs", g, 0, both, fmt::format("{}, which has {} {}.", in, done, other.message->what));
      } else if (other.completed()) {
        if (waiting) on_its_way = fmt::format("{}, which has {} it.", in, done);
      } else if (waiting || other.waits()) {
        out.add("waits", g, 0, both,
                fmt::format("{}, which {}.", in,
                            !other.waits() ? "has begun to send it"
                            : waiting      ? "waits as well"
                                           : "waits for that"));
      }
    }
    // Parts of a batch wait for its others.
    if (out.list.size() == found && !on_its_way.empty()) out.add("waits", g, 0, {rank}, on_its_way);
  }
}

}  // namespace gccl::sim
