#include "sim/scenario/result/fault_events.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::string ranks_of(const Fault& f) {
  if (f.ranks.size() == 1) return fmt::format("rank {}", f.ranks[0]);
  return fmt::format("ranks {}", fmt::join(f.ranks, ", "));
}

// On what ranks send each other.
std::string wires_of(const Fault& f) {
  if (f.ranks.empty()) return "between all ranks";
  if (f.ranks.size() == 1) return fmt::format("{} rank {}", f.one_way ? "from" : "from and to", f.ranks[0]);
  return fmt::format("{} rank {} {} rank {}", f.one_way ? "from" : "between", f.ranks[0], f.one_way ? "to" : "and",
                     f.ranks[1]);
}

std::string begins(const Fault& f) {
  switch (f.kind) {
    case FaultKind::rank_crash: return fmt::format("{} crash{}", ranks_of(f), f.ranks.size() == 1 ? "es" : "");
    case FaultKind::pause: return fmt::format("{} stop{}", ranks_of(f), f.ranks.size() == 1 ? "s" : "");
    case FaultKind::node_loss: return fmt::format("node {} is lost", f.place.value_or(0));
    case FaultKind::card_loss: return fmt::format("card {} is lost", f.place.value_or(0));
    case FaultKind::nic_down: return f.link + " goes down";
    case FaultKind::switch_loss: return f.link + " is lost";
    case FaultKind::link_down: return f.link.empty() ? "nothing passes " + wires_of(f) : f.link + " goes down";
    case FaultKind::link_degraded: {
      std::string text = f.link + " has";
      if (f.amount < 1) text += fmt::format(" {:.4g} % of its bandwidth", f.amount * 100);
      if (f.latency > 0)
        text += fmt::format("{} {:.4g} us more latency", f.amount < 1 ? " and" : "", double(f.latency) / 1e3);
      return text;
    }
    case FaultKind::loss: return fmt::format("{:.4g} % of frames {} are lost", f.amount * 100, wires_of(f));
    case FaultKind::duplication: return fmt::format("{:.4g} % of frames {} come twice", f.amount * 100, wires_of(f));
    case FaultKind::reordering: return fmt::format("{:.4g} % of frames {} come late", f.amount * 100, wires_of(f));
    case FaultKind::corruption: return fmt::format("{:.4g} % of frames {} are damaged", f.amount * 100, wires_of(f));
    case FaultKind::partition:
      return f.one_way
                 ? fmt::format("nothing that {} send{} reaches the others", ranks_of(f), f.ranks.size() == 1 ? "s" : "")
                 : fmt::format("{} and the others are cut off from each other", ranks_of(f));
    case FaultKind::straggler: return fmt::format("{} needs {:.4g} times as long", ranks_of(f), f.amount);
    case FaultKind::late_start: return fmt::format("{} starts, late", ranks_of(f));
    case FaultKind::agreement_loss:
      return fmt::format("{:.4g} % of agreement messages {} are lost", f.amount * 100, wires_of(f));
  }
  return "";
}

std::string ends(const Fault& f) {
  switch (f.kind) {
    case FaultKind::pause: return fmt::format("{} go{} on", ranks_of(f), f.ranks.size() == 1 ? "es" : "");
    case FaultKind::nic_down:
    case FaultKind::switch_loss: return f.link + " is back";
    case FaultKind::link_down: return (f.link.empty() ? "all passes again " + wires_of(f) : f.link + " is back");
    case FaultKind::link_degraded: return f.link + " is as it was";
    case FaultKind::partition: return fmt::format("{} and the others reach each other again", ranks_of(f));
    case FaultKind::straggler: return fmt::format("{} is as fast as before", ranks_of(f));
    default: return fmt::format("{} {} ends", name(f.kind), wires_of(f));
  }
}

std::string around(const std::vector<std::pair<Rank, Rank>>& pairs) {
  std::string text;
  for (const auto& [a, b] : pairs)
    text += fmt::format("{} the link between rank {} and rank {}", text.empty() ? "around" : ",", a, b);
  return text.empty() ? "as if no link were slow" : text;
}

std::string sentence(const FaultEvent& e, const FaultPlan& plan) {
  switch (e.what) {
    case FaultEvent::What::begins: return begins(plan.faults[e.fault]);
    case FaultEvent::What::ends: return ends(plan.faults[e.fault]);
    case FaultEvent::What::first_notified:
      return fmt::format("the first of the others knows that rank {} has failed", e.rank);
    case FaultEvent::What::all_notified: return fmt::format("all that are left know that rank {} has failed", e.rank);
    case FaultEvent::What::work:
      return fmt::format("epoch {}: {} rank{} at work", e.epoch, e.ranks, e.ranks == 1 ? " is" : "s are");
    case FaultEvent::What::link_slow:
      return fmt::format("the link from rank {} to rank {} is slow, {:.4g} MB/s where {:.4g} are expected", e.rank,
                         e.peer, e.rate / 1e6, e.expected / 1e6);
    case FaultEvent::What::link_recovered:
      return fmt::format("the link from rank {} to rank {} is no longer slow", e.rank, e.peer);
    case FaultEvent::What::planned_around:
      return fmt::format("calls are planned {}, from operation {} on", around(e.pairs), e.operation);
  }
  return "";
}

}  // namespace

Json fault_events(const FaultOutcome& outcome, const FaultPlan& plan) {
  static constexpr const char* kNames[] = {"fault_begins", "fault_ends", "first_notified", "all_notified",
                                           "work",         "link_slow",  "link_recovered", "planned_around"};
  Json all = Json::array();
  for (const FaultEvent& e : outcome.events) {
    Json& j = all.emplace_back(
        Json{{"at_us", double(e.at) / 1e3}, {"event", kNames[std::size_t(e.what)]}, {"text", sentence(e, plan)}});
    if (e.what == FaultEvent::What::begins || e.what == FaultEvent::What::ends) j["fault"] = e.fault;
  }
  return all;
}

Json faults_that_never_struck(const FaultOutcome& outcome, const FaultPlan& plan) {
  std::vector<bool> struck(plan.faults.size(), false);
  for (const FaultEvent& e : outcome.events)
    if (e.what == FaultEvent::What::begins) struck[e.fault] = true;
  Json all = Json::array();
  for (std::size_t i = 0; i < struck.size(); ++i)
    if (!struck[i]) all.push_back(i);
  return all;
}

}  // namespace gccl::sim
