// Flows on SimGrid 3.34 and newer, through its public interface: communications without actors, started from outside
// the simulation. Checked with 3.35 and 4.0. (In 3.32 this takes 90 s where flows_actions.cpp takes 5.)
// clang-format off
#include <xbt/base.h>  // version.h needs it and does not include it
#include <simgrid/version.h>
// clang-format on

#if SIMGRID_VERSION >= 33400

#include <cmath>
#include <simgrid/kernel/resource/Model.hpp>
#include <stdexcept>
#include <unordered_map>

#include "sim/simgrid/flows.hpp"
#include "sim/simgrid/instant.hpp"
#include "sim/simgrid/platform.hpp"

namespace gccl::sim {

namespace s4u = simgrid::s4u;

struct Flows::Platform : SimGridPlatform {
  explicit Platform(const Links& cluster) : SimGridPlatform(cluster), model(network()) {
    s4u::Comm::on_completion_cb([this](const s4u::Comm& comm) { ended.push_back(id_of(comm)); });
    check();
  }

  simgrid::kernel::resource::Model& network() const {
    for (auto* m : engine->get_all_models())
      if (m->get_name() == "Network_CM02") return *m;
    throw std::runtime_error("SimGrid's network model is not CM02");
  }

  static EventId id_of(const s4u::Comm& comm) {
    return EventId(reinterpret_cast<std::uintptr_t>(comm.get_data<void>()));
  }

  void start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns) {
    hand_over(route);
    s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
    comm->set_data(reinterpret_cast<void*>(std::uintptr_t(id)));
    comm->set_payload_size(bytes)->start();
    // In 4.0 and 4.1 set_rate() does not reach the flow of a communication between hosts, nor may it be called. This
    // one's flow is the newest.
    if (least_ns > 0) model.get_started_action_set()->back().set_bound(double(bytes) / (double(least_ns) * 1e-9));
    in_flight.emplace(id, std::move(comm));
  }

  // Advances the clock to the next event of the network or to a date (< 0: none), whichever is earlier.
  void run(double date) {
    const double now = s4u::Engine::get_clock(), wait = model.next_occurring_event(now);
    if (wait < 0 && date < 0) throw std::runtime_error("SimGrid sees no end of the flows in flight");
    engine->run_until(wait < 0 || (date >= 0 && date < now + wait) ? date : now + wait);
  }

  // Two equal flows must halve a link and end together after 2^20 bytes / 2^40 bytes/s.
  void check() {
    const LinkId link = spare();
    for (EventId id : {7, 9}) start(id, {&link, 1}, 1 << 19, 0);
    for (int events = 0; events < 9 && ended.size() < 2; ++events) run(-1);
    epoch_s = s4u::Engine::get_clock();
    if (ended.size() != 2 || ended[0] + ended[1] != 7 + 9 || std::abs(epoch_s - 0x1p-20) > 0x1p-50)
      throw std::runtime_error("SimGrid's self-check failed: two flows do not share a link as expected");
    drop_ended();
  }

  void drop_ended() {
    for (EventId id : ended) in_flight.erase(id);
    ended.clear();
  }

  double seconds() const { return s4u::Engine::get_clock() - epoch_s; }

  simgrid::kernel::resource::Model& model;
  std::unordered_map<EventId, s4u::CommPtr> in_flight;  // SimGrid uses a communication after its completion signal
  std::vector<EventId> ended;  // and not yet handed over: a completion must not start the next flow from inside SimGrid
  double epoch_s = 0;          // SimGrid's clock at our time 0
};

Flows::Flows(const Links& links) : platform_(std::make_unique<Platform>(links)) {}
Flows::~Flows() = default;

void Flows::start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now) {
  Platform& p = *platform_;
  if (active_ == 0) {  // nobody has moved the clock
    const double date = p.epoch_s + double(now) * 1e-9;
    if (date > s4u::Engine::get_clock()) p.run(date);
  }
  p.start(id, route, bytes, least_ns);
  ++active_;
}

Nanos Flows::advance(Nanos limit, std::vector<EventId>& ended) {
  Platform& p = *platform_;
  p.run(limit < 0 ? -1 : p.epoch_s + double(limit) * 1e-9);
  const auto& heap = p.model.get_action_heap();  // dates of the events to come, as far as known
  while (!heap.empty() && nearest(heap.top_date() - p.epoch_s) <= nearest(p.seconds())) p.run(-1);
  active_ -= p.ended.size();
  ended.insert(ended.end(), p.ended.begin(), p.ended.end());
  p.drop_ended();
  return nearest(p.seconds());
}

}  // namespace gccl::sim

#endif
