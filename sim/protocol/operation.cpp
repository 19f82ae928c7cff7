#include "sim/protocol/operation.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "sim/engine/time.hpp"

namespace gccl::sim {
namespace {

DataMessage packed(std::uint64_t signature, unsigned element_bytes, const Payload::Message& elements) {
  DataMessage m{.signature = signature,
                .bytes = std::vector<std::byte>(elements.size() * sizeof(OracleElement)),
                .on_links = double(element_bytes) / sizeof(OracleElement)};
  if (!elements.empty()) std::memcpy(m.bytes.data(), elements.data(), m.bytes.size());
  return m;
}

Payload::Message unpacked(const DataMessage& m) {
  Payload::Message elements(m.bytes.size() / sizeof(OracleElement));
  if (!elements.empty()) std::memcpy(elements.data(), m.bytes.data(), elements.size() * sizeof(OracleElement));
  return elements;
}

}  // namespace

RankOperation::RankOperation(EpochWorld* world, std::uint32_t operation, const ProcessId& self, Host host)
    : world_(world),
      index_(operation),
      operation_(world->workload.operations[operation]),
      self_(self),
      rank_(world->rank_of(self)),
      costs_(world->workload.cluster->costs(world->workload.cards[rank_])),
      host_(std::move(host)) {}

void RankOperation::begin() {
  world_->payload->enter(index_, rank_);
  const SimulatedOperation& o = operation_;
  for (std::uint32_t l = 0; l < o.lanes; ++l)
    lanes_.push_back(std::make_unique<Lane<RankOperation>>(
        *this, l, sliced(o.algorithm, o.call, o.layout->view(rank_), o.shares, l, o.lanes), o.window));
  for (auto& lane : lanes_) lane->pump();
  soon(0, [this] { complete(0, kWindowMax); });  // where there is nothing to do
}

void RankOperation::soon(Nanos delay, std::function<void()> what) {
  host_.after(delay, [alive = alive_, what = std::move(what)] {
    if (*alive) what();
  });
}

bool RankOperation::start(Lane<RankOperation>& lane, Token token, const Step& step) {
  const std::uint32_t l = lane.id();
  switch (step.op) {
    case Op::send: {
      const ProcessId to = world_->members[step.peer];
      sends_[{to, l}].push_back({l, token});
      DataMessage m = packed(index_, operation_.element_bytes, world_->payload->read(index_, rank_, l, step.from));
      sends_free_ = std::max(sends_free_, host_.time()) + duration(double(costs_.overhead_ns) * *host_.slowdown);
      host_.sent(step.from.count * operation_.element_bytes);
      soon(sends_free_ - host_.time(),
           [this, to, l, m = std::move(m)]() mutable { host_.links->send(self_, to, l, std::move(m)); });
      return false;
    }
    case Op::recv:
    case Op::recv_reduce: {
      const Peer from{world_->members[step.peer], l};
      receives_[from].push_back({l, token});
      if (receives_[from].size() == 1 && !(*host_.inbox)[from].empty())
        soon(0, [this, from] { message(from.first, from.second); });
      return false;
    }
    case Op::copy: return work(l, token, step, costs_.copy_GBps);
    case Op::reduce: return work(l, token, step, costs_.combine_GBps);
    default: return false;  // steps of switches: no view of this engine offers them
  }
}

bool RankOperation::combine(Lane<RankOperation>& lane, Token token, const Step& step) {
  return work(lane.id(), token, step, costs_.combine_GBps);
}

// At least one event, so that all work is visible to faults.
bool RankOperation::work(std::uint32_t l, Token token, const Step& step, double GBps) {
  const double bytes = double(step.to.count) * operation_.element_bytes;
  const Nanos cost = GBps > 0 ? duration(bytes / GBps * *host_.slowdown) : 0;
  unit_free_ = std::max(unit_free_, host_.time()) + cost;
  soon(unit_free_ - host_.time(), [this, l, token, step] {
    carry_out(l, token, step);
    complete(l, token);
  });
  return false;
}

void RankOperation::carry_out(std::uint32_t l, Token token, const Step& step) {
  Payload& p = *world_->payload;
  if (step.op == Op::recv_reduce) {
    const auto staged = staged_.find({l, token});
    p.combine(index_, rank_, l, step.from, step.to, staged->second);
    staged_.erase(staged);
  } else if (step.op == Op::copy) {
    p.write(index_, rank_, l, step.to, p.read(index_, rank_, l, step.from));
  } else {
    p.combine(index_, rank_, l, step.to, step.to, p.read(index_, rank_, l, step.from));
  }
}

void RankOperation::message(const ProcessId& from, std::uint32_t channel) {
  const Peer peer{from, channel};
  auto& waiting = receives_[peer];
  auto& arrived = (*host_.inbox)[peer];
  while (!waiting.empty() && !arrived.empty() && arrived.front().signature == index_) {
    const Pending p = waiting.front();
    waiting.pop_front();
    Payload::Message elements = unpacked(arrived.front());
    arrived.pop_front();
    const Step& step = lanes_[p.lane]->step(p.token);
    if (elements.size() != step.count())
      throw std::logic_error(fmt::format("rank {} takes a message of {} elements for one of {}", self_.rank,
                                         elements.size(), step.count()));
    if (step.op == Op::recv) {
      world_->payload->write(index_, rank_, p.lane, step.to, elements);
      complete(p.lane, p.token);
    } else {
      staged_[{p.lane, p.token}] = std::move(elements);
      lanes_[p.lane]->landed(p.token);
    }
    if (over_) return;
  }
}

void RankOperation::acknowledged(const ProcessId& to, std::uint32_t channel) {
  auto& waiting = sends_[{to, channel}];
  if (waiting.empty()) return;  // of an operation before
  const Pending p = waiting.front();
  waiting.pop_front();
  complete(p.lane, p.token);
}

void RankOperation::complete(std::uint32_t lane, Token token) {
  if (token != kWindowMax) {
    lanes_[lane]->complete(token);
    host_.stepped();
    if (over_) return;  // that was the moment for a crash
  }
  for (const auto& l : lanes_)
    if (!l->done()) return;
  if (std::exchange(over_, true)) return;
  world_->payload->leave(index_, rank_);
  host_.ended();
}

std::string RankOperation::waits() const {
  for (const auto& [peer, pending] : receives_)
    if (!pending.empty()) return fmt::format("a message of rank {}", peer.first.rank);
  for (const auto& [peer, pending] : sends_)
    if (!pending.empty()) return fmt::format("rank {} to take a message", peer.first.rank);
  return "nothing";
}

}  // namespace gccl::sim
