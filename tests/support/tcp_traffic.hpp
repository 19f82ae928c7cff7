// Random messages between ranks on the TCP backend's ports (tcp_ranks.hpp), checked byte by byte.
#pragma once

#include "tests/support/tcp_ranks.hpp"

namespace tcp_test {

// What the k-th message from a to b on a channel holds depends on these numbers only.

struct Message {
  std::uint64_t seed, bytes;
};
inline Message message_of(std::uint64_t seed, std::uint32_t from, std::uint32_t to, std::uint32_t channel,
                          std::uint32_t k) {
  Random random(seed * 1000003 + ((from * 64 + to) * 64 + channel) * 4096 + k);
  const std::uint64_t kind = random() % 20;
  const std::uint64_t limit = kind < 4 ? 1 : kind < 12 ? 256 : kind < 16 ? 20000 : kind < 19 ? 600000 : (8 << 20) + 1;
  return {random(), random() % limit};
}

struct Incoming {
  GCCL_Transfer transfer{};
  std::vector<unsigned char> got;
  std::uint64_t consumed = 0;
  bool consume_in_order = true;
};

inline void consume(GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes) {
  auto* in = static_cast<Incoming*>(t->owner);
  const bool last = offset + bytes == t->bytes;
  in->consume_in_order = in->consume_in_order && offset == in->consumed && bytes > 0 && offset + bytes <= t->bytes &&
                         (last || bytes % t->grain == 0) && reinterpret_cast<std::uintptr_t>(piece) % 64 == 0;
  if (!in->consume_in_order) return;
  std::memcpy(in->got.data() + offset, piece, bytes);
  in->consumed += bytes;
}

// One rank's part: all its messages, begun in a random order that keeps each queue's own. Returns what went wrong.
inline std::string traffic(tcp_test::Rank& self, std::uint32_t size, std::uint32_t channels, std::uint32_t messages,
                           std::uint64_t seed) {
  struct Queue {
    bool sends;
    std::uint32_t peer, channel, next = 0;
  };
  std::vector<Queue> queues;
  for (std::uint32_t p = 0; p < size; ++p)
    for (std::uint32_t c = 0; c < channels && p != self.rank; ++c) {
      queues.push_back({true, p, c});
      queues.push_back({false, p, c});
    }
  Random random(seed * 31 + self.rank);
  std::list<Incoming> incoming;
  std::list<std::pair<GCCL_Transfer, std::vector<unsigned char>>> outgoing;
  std::string wrong;
  std::size_t in_flight = 0, sends = 0;
  const auto check = [&](GCCL_Transfer* t) {
    --in_flight;
    if (t->result != GCCL_SUCCESS) wrong += "result " + std::to_string(t->result) + "; ";
    if (!t->owner) --sends;
    if (!t->owner) return;
    auto* in = static_cast<Incoming*>(t->owner);
    const Message m = message_of(seed, t->peer, self.rank, t->channel, std::uint32_t(t->cookie));
    if (!in->consume_in_order) wrong += "pieces out of order or unaligned; ";
    if (in->got != pattern(m.seed, m.bytes))
      wrong += "message " + std::to_string(t->cookie) + " of " + std::to_string(m.bytes) + " bytes from " +
               std::to_string(t->peer) + " on channel " + std::to_string(t->channel) + " is wrong; ";
    in->got = {};
  };
  const auto end = Clock::now() + 120s;
  while (wrong.empty() && (!queues.empty() || in_flight > 0)) {
    if (Clock::now() > end) return "not complete in time";
    const std::size_t chosen = queues.empty() ? 0 : random() % queues.size();
    // Receives are begun in the end, however long the sends take: ranks whose sends all wait would wait for each other.
    if (!queues.empty() && (sends < 12 || !queues[chosen].sends) && random() % 2) {
      Queue& q = queues[chosen];
      const std::uint32_t k = q.next++;
      ++in_flight;
      if (q.sends) {
        ++sends;
        const Message m = message_of(seed, self.rank, q.peer, q.channel, k);
        auto& [t, data] = outgoing.emplace_back(GCCL_Transfer{}, pattern(m.seed, m.bytes));
        t.peer = q.peer, t.channel = q.channel, t.bytes = m.bytes, t.signature = m.seed, t.cookie = k;
        t.data = m.bytes ? data.data() : nullptr;
        if (kTcp->send(self.port, &t) == 1) check(&t);
      } else {
        const Message m = message_of(seed, q.peer, self.rank, q.channel, k);
        Incoming& in = incoming.emplace_back();
        in.got.resize(m.bytes);
        GCCL_Transfer& t = in.transfer;
        t.peer = q.peer, t.channel = q.channel, t.bytes = m.bytes, t.signature = m.seed, t.cookie = k, t.owner = &in;
        if (random() % 2) {
          t.consume = consume;
          t.grain = std::uint32_t(random() % 3 == 0 ? 1 + random() % 65536 : 1u << random() % 4);
        } else {
          t.data = m.bytes ? in.got.data() : nullptr;
        }
        if (kTcp->receive(self.port, &t) == 1) check(&t);
      }
      if (q.next == messages) {
        q = queues.back();
        queues.pop_back();
      }
    }
    GCCL_Transfer* done[4];
    const int n = kTcp->poll(self.port, done, 4);
    if (n < 0) {
      kTcp->fault(self.port, &self.fault);
      return self.fault.text;
    }
    for (int i = 0; i < n; ++i) check(done[i]);
    if (n == 0) std::this_thread::yield();
  }
  return wrong;
}

inline void run_traffic(std::uint32_t size, std::uint32_t channels, std::uint32_t messages, std::uint64_t seed) {
  CAPTURE(seed);
  World w(size, channels);
  std::vector<std::string> wrong(size);
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> through{0};
  for (std::uint32_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      wrong[r] = traffic(w[r], size, channels, messages, seed);
      // A message may have to be sent again once its sender is through.
      for (++through; through < size && wrong[r].empty() && w[r].poll();) std::this_thread::yield();
    });
  for (auto& t : threads) t.join();
  for (const auto& text : wrong) CHECK(text == "");
}

}  // namespace tcp_test
