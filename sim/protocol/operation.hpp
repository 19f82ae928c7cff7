// One rank's part of one collective over the simulated links: the Backend of its lanes.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "libgccl/fault/link_health.hpp"
#include "libgccl/schedule/lane.hpp"
#include "libgccl/select/detours.hpp"
#include "sim/engine/payload.hpp"
#include "sim/protocol/data_links.hpp"

namespace gccl::sim {

// The members of an epoch and what they carry out.
struct EpochWorld {
  std::vector<ProcessId> members;  // by rank of the epoch
  std::shared_ptr<const Layout> layout;
  Workload workload;  // its operations are of these members
  std::unique_ptr<Payload> payload;
  // What the members found each time that they had reported what they saw of their links.
  struct Answer {
    std::size_t operation = 0;  // before which
    std::vector<fault::LinkHealth::Link> changed;
    std::vector<SlowPair> avoided;
    Rank known = 0;  // to so many
  };
  std::vector<Answer> answers;

  Rank rank_of(const ProcessId& p) const {
    return Rank(std::find(members.begin(), members.end(), p) - members.begin());
  }
};

// Messages that have arrived and that no step has taken, by sender and channel; of a process in an epoch.
using Inbox = std::map<std::pair<ProcessId, std::uint32_t>, std::deque<DataMessage>>;

class RankOperation {
 public:
  struct Host {
    DataLinks* links;
    Inbox* inbox;
    const double* slowdown;       // of this rank's own work, as it is now
    std::function<Nanos()> time;  // of its process, which stands still while that is stopped
    std::function<void(Nanos, std::function<void()>)> after;  // of that time
    std::function<void(std::uint64_t)> sent;                  // bytes of a message
    std::function<void()> stepped, ended;                     // a step is complete; all are. Not from inside begin().
  };
  RankOperation(EpochWorld* world, std::uint32_t operation, const ProcessId& self, Host host);

  void begin();
  void message(const ProcessId& from, std::uint32_t channel);
  void acknowledged(const ProcessId& to, std::uint32_t channel);
  // It is not carried on: nothing that is still due for it happens, and its owner may destroy it later.
  void give_up() {
    *alive_ = false;
    over_ = true;
  }
  // What it waits for, for a report of a hang.
  std::string waits() const;

  // Backend.
  bool start(Lane<RankOperation>& lane, Token token, const Step& step);
  bool combine(Lane<RankOperation>& lane, Token token, const Step& step);

 private:
  struct Pending {
    std::uint32_t lane;
    Token token;
  };
  using Peer = std::pair<ProcessId, std::uint32_t>;
  bool work(std::uint32_t lane, Token token, const Step& step, double GBps);
  void carry_out(std::uint32_t lane, Token token, const Step& step);
  // Takes the peer's next message for the receive. False: it has to be combined.
  bool take(const Peer& from, const Pending& p);
  void complete(std::uint32_t lane, Token token);
  void soon(Nanos delay, std::function<void()> what);

  EpochWorld* const world_;
  const std::uint32_t index_;
  const SimulatedOperation& operation_;
  const ProcessId self_;
  const Rank rank_;
  const CardCosts& costs_;
  Host host_;
  std::vector<std::unique_ptr<Lane<RankOperation>>> lanes_;
  std::map<Peer, std::deque<Pending>> receives_, sends_;
  std::map<std::pair<std::uint32_t, Token>, Payload::Message> staged_;
  Nanos sends_free_ = 0, unit_free_ = 0;                        // of host_.time
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // events of an operation that is given up do nothing
  bool over_ = false;
};

}  // namespace gccl::sim
