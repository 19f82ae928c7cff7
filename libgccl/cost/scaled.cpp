#include "libgccl/cost/scaled.hpp"

namespace gccl {
namespace {

void scale(double by, Hop& h) { h.alpha_ns *= by; }
void scale(double by, TreeLevel& l) { scale(by, l.one); }
void scale(double by, RingLoads& r) {
  for (Hop* h : {&r.next, &r.next_alone, &r.busiest, &r.together, &r.slowest}) scale(by, *h);
  for (Hop* h : {&r.way.around, &r.way.in_run}) scale(by, *h);
  for (auto* chain : {&r.chain, &r.back})
    for (Hop* h : {&chain->next_alone, &chain->slowest}) scale(by, *h);
}
template <class T>
void scale(double by, std::vector<T>& all) {
  for (T& one : all) scale(by, one);
}

void scale(double by, LinkLoads::Shifts& s) {
  for (auto* hops : {&s.plain, &s.rounds, &s.turns}) scale(by, *hops);
}
void scale(double by, LinkLoads::Binomial& b) {
  scale(by, b.hops);
  b.empty_ns *= by;
  b.excess_ns *= by;
}
void scale(double by, LinkLoads::Trees& t) {
  scale(by, t.levels);
  scale(by, t.feed);
}
void scale(double by, LinkLoads::Swing& s) { scale(by, s.steps); }
void scale(double by, LinkLoads::Next& n) {
  scale(by, n.ring);
  scale(by, n.slowest);
}
void scale(double by, LinkLoads::Fans& f) {
  for (Hop* h : {&f.out, &f.in, &f.out_mean}) scale(by, *h);
  f.in_first_ns *= by;
  f.out_ns *= by;
  f.in_ns *= by;
}
void scale(double by, LinkLoads::Pairs& p) {
  for (Hop* h : {&p.mean, &p.alone}) scale(by, *h);
}

template <class T>
void scale(double by, OnDemand<T>& all) {
  if (!all || by == 1) return;
  all = OnDemand<T>([by, was = all] {
    T now = *was;
    scale(by, now);
    return now;
  });
}

void scale(double by, LinkLoads& l) {
  scale(by, l.shifts);
  for (auto* hops : {&l.exchange, &l.survivors, &l.halving, &l.doubling}) scale(by, *hops);
  scale(by, l.swing);
  for (auto* tree : {&l.binomial_down, &l.binomial_up}) scale(by, *tree);
  for (auto* trees : {&l.trees, &l.fed_trees}) scale(by, *trees);
  scale(by, l.odd);
  scale(by, l.next);
  scale(by, l.fans);
  scale(by, l.pairs);
}

}  // namespace

CostModel scaled(CostModel m, const CostScale& by) {
  for (Hop* h : {&m.node, &m.net, &m.net_all}) scale(by.latency, *h);
  for (LinkLoads* l : {&m.all, &m.inside, &m.rail}) scale(by.latency, *l);
  scale(by.latency, m.doubling);
  scale(by.latency, m.rings);
  if (m.node_switch) scale(by.latency, *m.node_switch);
  m.overhead_ns *= by.latency;
  m.receive_overhead_ns *= by.latency;
  m.combine_ns_per_byte *= by.reduction;
  m.copy_ns_per_byte *= by.reduction;
  m.protocol.operation_ns *= by.start_up;
  m.protocol.channel_GBps /= by.channel;
  m.node.beta_ns_per_byte *= by.inside;
  for (Hop* h : {&m.net, &m.net_all}) h->beta_ns_per_byte *= by.between;
  if (m.parts)
    m.parts = OnDemand<std::vector<CostModel>>([by, was = m.parts] {
      std::vector<CostModel> parts = *was;
      for (CostModel& part : parts) part = scaled(std::move(part), by);
      return parts;
    });
  return m;
}

}  // namespace gccl
