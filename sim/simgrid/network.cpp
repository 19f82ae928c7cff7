#include "sim/simgrid/network.hpp"

#include <tuple>

namespace gccl::sim {

SimGridNetwork::SimGridNetwork(const Cluster& cluster)
    : cluster_(cluster), flows_(cluster.links()), routes_(cluster.cards()), link_bytes_(cluster.links().size()) {}

const SimGridNetwork::Cached& SimGridNetwork::route(Card from, Card to) {
  Cached& cached = routes_[from];
  if (cached.to != to) {
    cluster_.route(from, to, cached.route);
    cached.to = to;
    cached.latency_ns = 0;
    for (LinkId l : cached.route) cached.latency_ns += cluster_.links()[l].latency_ns;
  }
  return cached;
}

void SimGridNetwork::send(EventId id, Card from, Card to, Count bytes, Nanos at) {
  const Cached& way = route(from, to);
  for (LinkId l : way.route) link_bytes_[l] += bytes;
  agenda_.add(at + way.latency_ns, {id, from, to, way.route.empty() ? 0 : bytes});
}

// Whatever the agenda has for now: timers are due, messages start to flow. They start in an order of their own, so that
// the order of the sends cannot reach the last bits of the solver's sums.
void SimGridNetwork::take_due(std::vector<EventId>& due) {
  starting_.clear();
  while (!agenda_.empty() && agenda_.next() <= now_) {
    agenda_.take(batch_);
    for (const Entry& e : batch_) {
      if (e.bytes == 0) due.push_back(e.id);
      else starting_.push_back(e);
    }
  }
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(a.from, a.to, a.bytes) < std::tie(b.from, b.to, b.bytes);
  };
  if (!std::is_sorted(starting_.begin(), starting_.end(), before))
    std::sort(starting_.begin(), starting_.end(), before);
  for (const Entry& e : starting_) flows_.start(e.id, route(e.from, e.to).route, e.bytes, now_);
}

bool SimGridNetwork::next(std::vector<EventId>& due) {
  const std::size_t before = due.size();
  for (;;) {
    take_due(due);
    if (due.size() > before) return true;
    if (!flows_.idle()) {
      now_ = std::max(now_, flows_.advance(agenda_.empty() ? -1 : agenda_.next(), due));
    } else if (!agenda_.empty()) {
      now_ = agenda_.next();
    } else {
      return false;
    }
  }
}

}  // namespace gccl::sim
