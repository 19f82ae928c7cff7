// Steps to a group, as the executor of schedules plays them: members of the class template in executor.hpp, which
// includes this file at its end.
#pragma once

#include <cmath>
#include <vector>

#include "libgccl/schedule/group_step.hpp"
#include "sim/engine/executor.hpp"

namespace gccl::sim {

template <Network N>
void Executor<N>::meet(Worker& w, Token token, const Step& step) {
  const View view = w_.operations[w.operation].layout->view(w.rank);
  const Group& g = group_of(view, step.scope);
  const std::uint32_t k = w.met[std::size_t(step.scope)]++;
  const std::uint32_t i = group_steps_.arrive(w.lane_of(g[0]), step.scope, k, g.rank, g.size, {w.id(), token});
  if (step.op == Op::send_all) {
    if (g.rank < step.roots) send_to_group(i, g.rank, step.from.count);
  } else if (group_steps_[i].all_here()) {
    for (Rank root = 0; root < step.roots; ++root) send_to_group(i, root, part_of(step, root).count);
  }
  if (!group_steps_[i].over()) return;
  const std::uint32_t nothing = of_group(i);  // all of a multicast is there, and who came last sends nothing
  items_[nothing].delivered = true;
  network_.wake(nothing | kMessage, network_.now());
}

template <Network N>
std::uint32_t Executor<N>::of_group(std::uint32_t meeting) {
  ++group_steps_[meeting].in_flight;
  const std::uint32_t i = items_.acquire();
  items_[i].sender_token = kToGroup;
  items_[i].receiver = meeting;
  return i;
}

template <Network N>
void Executor<N>::send_to_group(std::uint32_t meeting, Rank root, Count count) {
  if (count == 0) return;
  const std::uint32_t i = of_group(meeting);
  const GroupSteps::Meeting& m = group_steps_[meeting];
  const Worker& w = *lanes_[m.members[root].lane];
  const Step& step = w.step(m.members[root].token);
  const View view = w_.operations[w.operation].layout->view(w.rank);
  const Group& g = group_of(view, step.scope);
  const std::vector<Card> members = cards_of(w_.operations[w.operation], g);
  const LinkSet& set = link_sets_.of(members, root, step.op == Op::recv_reduce_all);
  items_[i].sender = w.id();
  items_[i].bytes = count * w.element_bytes;
  Nanos at = handled(cards_[w.world]);
  double on_links = 1 / set.efficiency;
  if (const ProtocolCosts& p = operations_[w.operation].protocol; !p.none) {
    const auto& way = p.way(step.scope == Scope::node);
    at += way.latency;
    on_links *= way.bytes_on_links;
  }
  // Distinct ends, as they distinguish messages of one instant.
  const Card next = members[(root + 1) % g.size];
  const bool reduces = step.op == Op::recv_reduce_all;
  network_.send({.id = i | kMessage,
                 .from = reduces ? next : w.card,
                 .to = reduces ? w.card : next,
                 .lane = w.id(),
                 .bytes = Count(std::ceil(double(items_[i].bytes) * on_links)),
                 .at = at,
                 .receive_ns = places_[w.world].receive_overhead,
                 .least_ns = 0,
                 .set = &set});
}

template <Network N>
void Executor<N>::deliver_to_group(std::uint32_t i) {
  const std::uint32_t meeting = items_[i].receiver;
  if (!items_[i].delivered) {
    ++messages_;
    if (__builtin_add_overflow(bytes_, items_[i].bytes, &bytes_)) throw BytesOverflow();
  }
  items_.release(i);
  --group_steps_[meeting].in_flight;
  if (!group_steps_[meeting].over()) return;
  const std::vector<GroupSteps::Member> members = group_steps_.end(meeting);
  if (payload_) carry_out(members);
  for (const GroupSteps::Member& m : members) finish(*lanes_[m.lane], m.token);
}

template <Network N>
void Executor<N>::carry_out(const std::vector<GroupSteps::Member>& members) {
  const auto worker = [&](Rank i) -> Worker& { return *lanes_[members[i].lane]; };
  const auto step = [&](Rank i) -> const Step& { return worker(i).step(members[i].token); };
  const auto read = [&](Rank i, const Region& r) {
    return payload_->read(worker(i).operation, worker(i).rank, worker(i).channel, r);
  };
  const auto write = [&](Rank i, const Region& r, const Payload::Message& m) {
    payload_->write(worker(i).operation, worker(i).rank, worker(i).channel, r, m);
  };
  const Rank n = Rank(members.size());
  for (Rank root = 0; root < step(0).roots; ++root) {
    Payload::Message message;
    if (step(root).op == Op::send_all) {
      message = read(root, step(root).from);
      for (Rank i = 0; i < n; ++i) write(i, part_of(step(i), root), message);
    } else {
      for (Rank i = 0; i < n; ++i) {
        const Payload::Message summand = read(i, part_of(step(i), root));
        message.resize(summand.size());
        for (std::size_t e = 0; e < summand.size(); ++e) message[e] += summand[e];
      }
      write(root, step(root).to, message);
    }
  }
}

template <Network N>
bool Executor<N>::behind_switch(const SimulatedOperation& o, const Group& g) const {
  return g.size >= 2 && w_.cluster->in_switch(cards_of(o, g)) > 0;
}
template <Network N>
std::vector<Card> Executor<N>::cards_of(const SimulatedOperation& o, const Group& g) const {
  std::vector<Card> members;
  for (Rank k = 0; k < g.size; ++k) members.push_back(w_.cards[o.world(g[k])]);
  return members;
}

}  // namespace gccl::sim
