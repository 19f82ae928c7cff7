// Flows on SimGrid 3.32.0, by driving the actions of its network model and its solver directly. In that version every
// actor-free communication stays in a list that each completion scans: 90 s where this takes 5 (8.4 million messages).
// clang-format off
#include <xbt/base.h>  // version.h needs it and does not include it
#include <simgrid/version.h>
// clang-format on

#if SIMGRID_VERSION < 33400

#include <cmath>
#include <cstring>
#include <simgrid/kernel/resource/Model.hpp>
#include <stdexcept>
#include <typeinfo>

#include "sim/simgrid/flows.hpp"
#include "sim/simgrid/instant.hpp"
#include "sim/simgrid/platform.hpp"

static_assert(SIMGRID_VERSION == 33200, "the declarations below were checked against SimGrid 3.32.0 alone");

// What 3.32.0 exports but does not declare in its installed headers.
// - EngineImpl::solve is an ordinary member function: its symbol is all that matters. It advances the clock to the next
//   event of any model or to max_date (-1: none), and returns the seconds passed, or -1 when no event is left.
// - NetworkModel adds to Model's virtual functions, in this order: create_link, create_wifi_link, communicate, ...
//   Checked in the library's code: CommImpl::start calls slot 0x58, which is communicate, of a NetworkCm02Model.
namespace simgrid::kernel {
class EngineImpl {
 public:
  double solve(double max_date) const;
};
namespace resource {
class NetworkModel : public Model {
 public:
  virtual StandardLinkImpl* create_link(const std::string& name, const std::vector<double>& bandwidths) = 0;
  virtual StandardLinkImpl* create_wifi_link(const std::string& name, const std::vector<double>& bandwidths) = 0;
  // Starts a flow of `size` bytes now. `rate` bounds it in bytes/s; -1: no bound. The caller owns one reference.
  virtual Action* communicate(s4u::Host* from, s4u::Host* to, double size, double rate) = 0;
};
}  // namespace resource
}  // namespace simgrid::kernel

namespace gccl::sim {

using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::NetworkModel;

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the only place for our id in an action of 3.32
void set_id(Action& action, EventId id) { action.set_data(reinterpret_cast<void*>(std::uintptr_t(id))); }
EventId id_of(const Action& action) { return EventId(reinterpret_cast<std::uintptr_t>(action.get_data())); }
#pragma GCC diagnostic pop

}  // namespace

struct Flows::Platform : SimGridPlatform {
  explicit Platform(const Links& cluster)
      : SimGridPlatform(cluster), solver(*engine->get_impl()), model(*zone->get_network_model()) {
    if (std::strcmp(typeid(model).name(), "N7simgrid6kernel8resource16NetworkCm02ModelE") != 0)
      throw std::runtime_error("SimGrid's network model is not CM02");
    check();
  }

  ~Platform() {
    while (Action* action = model.extract_failed_action()) action->unref();
    while (Action* action = model.extract_done_action()) action->unref();
    for (auto& started = *model.get_started_action_set(); !started.empty();) started.front().unref();
  }

  void start(EventId id, std::span<const LinkId> route, double bytes, double rate) {
    hand_over(route);
    Action* action = model.communicate(from, to, bytes, rate);
    set_id(*action, id);
  }

  // Two equal flows must halve a link and end together after 2^20 bytes / 2^40 bytes/s.
  void check() {
    const LinkId link = spare();
    for (EventId id : {7, 9}) start(id, {&link, 1}, 0x1p19, -1);
    const double took = solver.solve(-1);
    EventId ids = 0;
    while (Action* action = model.extract_done_action()) {
      ids += id_of(*action);
      action->unref();
    }
    epoch_s = simgrid::s4u::Engine::get_clock();
    if (ids != 7 + 9 || std::abs(took - 0x1p-20) > 0x1p-50)
      throw std::runtime_error("SimGrid's self-check failed: this build of the library does not behave as 3.32.0 does");
  }

  // Advances the clock to the next event or to a date, whichever is earlier. Always true.
  bool solve(double date) const {
    if (solver.solve(date) < 0) throw std::runtime_error("SimGrid sees no end of the flows in flight");
    return true;
  }
  double seconds() const { return simgrid::s4u::Engine::get_clock() - epoch_s; }

  const simgrid::kernel::EngineImpl& solver;
  NetworkModel& model;
  double epoch_s = 0;  // SimGrid's clock at our time 0
};

Flows::Flows(const Links& links) : platform_(std::make_unique<Platform>(links)) {}
Flows::~Flows() = default;

void Flows::start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now) {
  Platform& p = *platform_;
  if (active_ == 0) {  // nobody has moved the clock
    const double date = p.epoch_s + double(now) * 1e-9;
    if (date > simgrid::s4u::Engine::get_clock()) p.solve(date);
  }
  p.start(id, route, double(bytes), least_ns > 0 ? double(bytes) / (double(least_ns) * 1e-9) : -1);
  ++active_;
}

Nanos Flows::advance(Nanos limit, std::vector<EventId>& ended) {
  Platform& p = *platform_;
  p.solve(limit < 0 ? -1 : p.epoch_s + double(limit) * 1e-9);
  const auto& heap = p.model.get_action_heap();  // dates of the ends to come, as far as known
  do {
    while (Action* action = p.model.extract_done_action()) {
      ended.push_back(id_of(*action));
      action->unref();
      --active_;
    }
    // Flows that end within the same nanosecond belong to the same instant.
  } while (!heap.empty() && nearest(heap.top_date() - p.epoch_s) <= nearest(p.seconds()) && p.solve(-1));
  return nearest(p.seconds());
}

}  // namespace gccl::sim

#endif
