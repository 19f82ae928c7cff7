#include "libgccl/cost/scaled.hpp"

namespace gccl {
namespace {

void scale(double by, Hop& h) { h.alpha_ns *= by; }
void scale(double by, TreeLevel& l) { scale(by, l.one); }
void scale(double by, RingLoads& r) {
  for (Hop* h : {&r.next, &r.next_alone, &r.busiest, &r.together, &r.slowest}) scale(by, *h);
}
template <class T>
void scale(double by, std::vector<T>& all) {
  for (T& one : all) scale(by, one);
}

void scale(double by, LinkLoads& l) {
  for (auto* hops : {&l.shift, &l.rounds, &l.turns, &l.exchange, &l.survivors, &l.swing, &l.binomial}) scale(by, *hops);
  for (auto* levels : {&l.trees, &l.fed_trees}) scale(by, *levels);
  for (Hop* h : {&l.odd, &l.next_slowest, &l.fan_out, &l.fan_in, &l.fan_out_mean, &l.pairs, &l.pairs_alone})
    scale(by, *h);
  scale(by, l.next);
  l.fan_out_ns *= by;
  l.fan_in_ns *= by;
}

}  // namespace

CostModel scaled(CostModel m, const CostScale& by) {
  for (Hop* h : {&m.node, &m.net, &m.net_all, &m.doubling}) scale(by.latency, *h);
  for (LinkLoads* l : {&m.all, &m.inside, &m.rail}) scale(by.latency, *l);
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
  for (CostModel& part : m.parts) part = scaled(std::move(part), by);
  return m;
}

}  // namespace gccl
