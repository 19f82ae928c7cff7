#include "sim/fault/effects.hpp"

#include <algorithm>

namespace gccl::sim {

bool ends_processes(const Fault& f) {
  return f.kind == FaultKind::rank_crash || f.kind == FaultKind::node_loss || f.kind == FaultKind::card_loss;
}

bool cuts_links(const Fault& f) {
  return !f.link.empty() &&
         (f.kind == FaultKind::nic_down || f.kind == FaultKind::switch_loss || f.kind == FaultKind::link_down);
}

bool may_look_like_failure(const Fault& f, Nanos detection) {
  if (f.kind == FaultKind::late_start) return f.at > detection / 10;
  return f.lasts == 0 || f.lasts > detection / 10;
}

const FaultEvent* begin_of(std::span<const FaultEvent> events, std::size_t fault) {
  const auto at = std::ranges::find_if(
      events, [&](const FaultEvent& e) { return e.what == FaultEvent::What::begins && e.fault == fault; });
  return at == events.end() ? nullptr : &*at;
}

std::vector<Rank> hit_by(const Fault& f, std::span<const Card> cards, const Cluster& cluster) {
  if (!f.place) return f.ranks;
  std::vector<Rank> hit;
  for (Rank r = 0; r < cards.size(); ++r)
    if ((f.kind == FaultKind::card_loss ? cards[r] : cluster.node_of(cards[r])) == *f.place) hit.push_back(r);
  return hit;
}

std::vector<Card> with_spares(std::vector<Card> cards, Rank spares, const Cluster& cluster) {
  std::vector<bool> taken(cluster.cards(), false);
  for (const Card c : cards) taken[c] = true;
  const std::size_t all = cards.size() + spares;
  for (Card c = 0; c < taken.size() && cards.size() < all; ++c)
    if (!taken[c]) cards.push_back(c);
  return cards;
}

bool begins_before_start(const Fault& f) {
  return f.at == 0 && !f.after && !ends_processes(f) && f.kind != FaultKind::pause && f.kind != FaultKind::late_start;
}

double slowdown_by(std::span<const Fault> faults, const std::vector<bool>& active, Rank rank) {
  double times = 1;
  for (std::size_t i = 0; i < faults.size(); ++i)
    if (active[i] && faults[i].kind == FaultKind::straggler && std::ranges::count(faults[i].ranks, rank) > 0)
      times *= faults[i].amount;
  return times;
}

Nanos late_by(std::span<const Fault> faults, Rank rank) {
  Nanos late = 0;
  for (const Fault& f : faults)
    if (f.kind == FaultKind::late_start && std::ranges::count(f.ranks, rank) > 0) late = std::max(late, f.at);
  return late;
}

bool concerns(const Fault& f, Rank from, Rank to) {
  const auto in = [&](Rank r) { return std::find(f.ranks.begin(), f.ranks.end(), r) != f.ranks.end(); };
  if (f.kind == FaultKind::partition) return in(from) != in(to) && (!f.one_way || in(from));
  if (f.ranks.empty()) return true;
  if (f.ranks.size() == 1) return in(from) || (in(to) && !f.one_way);
  return (from == f.ranks[0] && to == f.ranks[1]) || (!f.one_way && from == f.ranks[1] && to == f.ranks[0]);
}

std::map<Rank, std::vector<Rank>> unreachable(std::span<const Rank> ranks, const IsCut& cut, std::size_t helpers) {
  const std::size_t n = ranks.size();
  std::vector<char> open(n * n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b)
      open[a * n + b] = open[b * n + a] = !cut(ranks[a], ranks[b]) && !cut(ranks[b], ranks[a]);
  std::map<Rank, std::vector<Rank>> all;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) {
      if (a == b || open[a * n + b]) continue;
      std::size_t useless = 0;  // as a helper
      for (std::size_t c = 0; c < n; ++c) useless += c != a && c != b && !(open[a * n + c] && open[c * n + b]);
      if (useless >= std::min(helpers, n - 2)) all[ranks[a]].push_back(ranks[b]);
    }
  return all;
}

void add_chance(double* to, double more) { *to = 1 - (1 - *to) * (1 - more); }

}  // namespace gccl::sim
