// What came of a run: what its processes witness (sim/fault/verdict.hpp), times, and what was sent.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "sim/fault/throughput.hpp"
#include "sim/protocol/ranks.hpp"

namespace gccl::sim {
namespace {

// What a fault has delayed may end after it.
double median(std::vector<Nanos> of) {
  std::nth_element(of.begin(), of.begin() + std::ptrdiff_t(of.size() / 2), of.end());
  return double(of[of.size() / 2]);
}

}  // namespace

// Says what hangs: if there is one, a rank that carries out an operation, as the others wait for it.
std::string ProtocolRanks::waits() const {
  static constexpr const char* kDoing[] = {"waits to join",
                                           "meets the others in the new epoch",
                                           "works",
                                           "agrees with the others",
                                           "changes the members",
                                           "",
                                           ""};
  std::vector<const Process*> hang;
  for (Rank r = 0; r < machines(); ++r) {
    const Process* p = process_[r].get();
    if (!p || !p->alive || p->doing == Doing::finished || p->doing == Doing::failed) continue;
    if (p->id.life == 0 || p->doing != Doing::joining) hang.push_back(p);
  }
  std::stable_partition(hang.begin(), hang.end(), [](const Process* p) { return p->doing != Doing::agreeing; });
  for (const Process* p : hang) {
    const Rank r = p->id.rank;
    std::string text = fmt::format("rank {} {} (epoch {})", r, kDoing[std::size_t(p->doing)], p->epoch);
    if (p->operation) text += fmt::format(" on operation {}, and waits for {}", p->next, p->operation->waits());
    if (p->looking)
      for (std::size_t i = 0; i < p->looking->got.size(); ++i)
        if (!p->looking->got[i])
          return fmt::format("{} before operation {}, and waits for what rank {} has seen of its links", text, p->next,
                             worlds_.at(p->epoch)->members[i].rank);
    if (const fault::RankSet awaited = p->member->membership().awaited(); !awaited.empty())
      text += fmt::format(", and waits for rank {}", awaited.first());
    return text;
  }
  return "";
}

// What each process saw, those that were replaced included.
std::vector<RankWitness> ProtocolRanks::witnesses() const {
  using End = RankWitness::End;
  std::vector<RankWitness> all;
  for (const auto* group : {&process_, &buried_})
    for (const auto& p : *group) {
      if (!p) continue;
      RankWitness& w = all.emplace_back();
      w.rank = p->id.rank;
      if (p->alive && p->doing == Doing::finished) w.end = End::finished;
      if (p->alive && p->doing == Doing::failed) w.end = p->out ? End::out : End::failed;
      w.first = p->id.life == 0;
      w.epoch = p->epoch;
      w.resumed = p->resumed;
      w.knew = p->knew;
      w.done_in = p->done_in;
    }
  // A rank that joined has not heard of failures before, and one that ended in another epoch may not have heard of
  // later ones.
  const auto first_left = std::ranges::find_if(all, &RankWitness::left);
  for (RankWitness& w : all) w.must_know = w.first && w.left() && w.epoch == first_left->epoch;
  return all;
}

void ProtocolRanks::judge(Outcome* out) {
  FaultOutcome& f = out->faults.emplace();
  f.waits = waits();
  f.events = std::move(events_);
  const std::vector<RankWitness> all = witnesses();
  const Nanos resumed = std::max(sim::judge(all, !f.waits.empty(), hurts_, &f), planned_anew_);
  f.violations.insert(f.violations.end(), violations_.begin(), violations_.end());

  // Times.
  Throughput<std::tuple<Collective, Count, unsigned>> throughput;
  const bool any_left = std::ranges::any_of(all, &RankWitness::left);
  for (const RankWitness& w : all)
    for (std::size_t o = 0; (w.left() || !any_left) && o < w.done_in.size(); ++o)
      if (w.done_in[o] > 0) operations_[o] = executions_[{w.done_in[o], o}];
  for (const auto& [key, t] : executions_) {
    if (t.end < 0) continue;
    const SimulatedOperation& o = workload_.operations[key.second];
    const std::tuple kind{o.call.kind, o.call.count, o.element_bytes};
    const Nanos took = t.end - t.begin;
    if (first_fault_ < 0 || t.end <= first_fault_) throughput.before(kind, took);
    if (first_fault_ >= 0 && t.begin >= std::max(last_fault_, resumed)) throughput.after(kind, took);
  }
  f.throughput_after = throughput.relative(median);
  for (const Times& t : operations_) {
    out->begin_ns.push_back(std::max<Nanos>(0, t.begin));
    out->end_ns.push_back(std::max<Nanos>(0, t.end));
  }
  out->time_ns = out->end_ns.empty() ? 0 : *std::max_element(out->end_ns.begin(), out->end_ns.end());
  if (!f.completed) out->time_ns = now();
  out->messages = messages_;
  out->bytes = bytes_;
  for (const auto& [epoch, world] : worlds_) {
    if (!world->payload->wrong()) continue;
    if (out->wrong == 0) out->first_wrong = fmt::format("epoch {}: {}", epoch, world->payload->first_wrong());
    out->wrong += world->payload->wrong();
  }
  f.epochs = worlds_.empty() ? 0 : worlds_.rbegin()->first;
  const auto counters = links_.counters();
  f.frames = counters.sent;
  f.repeated = counters.repeated;
  f.duplicates = counters.duplicates;
  f.damaged = counters.damaged;
  f.reconnects = counters.reconnects;
  f.trace = splitmix::mix(trace_ ^ links_.trace());
  for (const auto& [epoch, event] : at_work_)
    if (epoch > 1) f.events.push_back(event);
  std::ranges::stable_sort(f.events, {}, &FaultEvent::at);
  sim::judge_links(&f);
}

}  // namespace gccl::sim
