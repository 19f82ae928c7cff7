// What came of real ranks, in the words of the simulated ones (sim/fault/verdict.hpp), and what differs from them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/output.hpp"
#include "cli/real/job.hpp"

namespace gccl::real {
namespace {

// Of different nodes, as simulated ranks look at no others' links; in either direction, since both avoid them alike.
std::set<std::pair<Rank, Rank>> pairs_of(const sim::FaultOutcome& f, const std::vector<Card>& cards,
                                         const Cluster& cluster) {
  std::set<std::pair<Rank, Rank>> all;
  for (const auto& [from, to] : f.slow_links)
    if (cluster.node_of(cards[from]) != cluster.node_of(cards[to])) all.emplace(std::min(from, to), std::max(from, to));
  return all;
}

std::vector<std::string> differences(const sim::Outcome& there, const sim::Outcome& here,
                                     const std::vector<Card>& cards, const Cluster& cluster) {
  std::vector<std::string> all;
  const sim::FaultOutcome &a = *there.faults, &b = *here.faults;
  const auto compare = [&](const char* what, const auto& simulated, const auto& found) {
    if (simulated != found) all.push_back(fmt::format("{}: simulated {}, here {}", what, simulated, found));
  };
  compare("dead", a.dead, b.dead);
  compare("completed", a.completed, b.completed);
  compare("survivors", a.survivors, b.survivors);
  compare("out", a.out, b.out);
  compare("wrong elements", there.wrong, here.wrong);
  compare("lost operations", a.lost, b.lost);
  compare("doubled operations", a.doubled, b.doubled);
  const auto slow = pairs_of(a, cards, cluster), slow_here = pairs_of(b, cards, cluster);
  compare("slow links between", slow, slow_here);
  if (!slow.empty() || !slow_here.empty()) compare("planned around them", a.plans_changed > 0, b.plans_changed > 0);
  return all;
}

// Of the log of one rank that is shown, and of all together.
constexpr std::size_t kLogBytes = 4096, kLogBytesOfAll = 32768;

}  // namespace

std::string Job::waits() const {
  for (Rank r = 0; r < machines(); ++r) {
    const RankState& s = state_[r];
    if (s.alive && !s.ended)
      return fmt::format("rank {} hangs in epoch {}, operation {}{}{}", r, std::max(1u, s.epoch), s.operation,
                         s.text.empty() ? "" : ", after: ", s.text);
  }
  return "";
}

std::vector<sim::RankWitness> Job::witnesses() const {
  using End = sim::RankWitness::End;
  const auto end_of = [](const RankState& s) {
    if (!s.ended) return End::none;
    switch (*s.ended) {
      case Report::How::finished: return End::finished;
      case Report::How::failed: return End::failed;
      case Report::How::out: return End::out;
      case Report::How::broken: break;
    }
    return End::broken;
  };
  std::vector<sim::RankWitness> all;
  const auto add = [&](Rank r, const RankState& s) {
    if (!s.started) return;
    // One that joined has not heard of failures before.
    all.push_back({.rank = r,
                   .end = end_of(s),
                   .first = !s.joins,
                   .must_know = !s.joins,
                   .epoch = s.epoch,
                   .resumed = s.resumed,
                   .knew = s.knew,
                   .done_in = s.done_in});
  };
  for (Rank r = 0; r < machines(); ++r) add(r, state_[r]);
  for (const auto& [r, s] : buried_) add(r, s);
  return all;
}

// A report is a collective of all, which a failure may interrupt on some. One rank alone logs plans.
std::vector<std::string> Job::different_news() const {
  std::vector<std::string> all;
  if (!hurts_.empty() || hangs_) return all;
  for (const Said& s : said_)
    for (Rank r = 0; r < ranks(); ++r)
      if (s.event.what != sim::FaultEvent::What::planned_around && !s.by.contains(r))
        all.push_back(fmt::format(
            "rank {} did not learn before operation {} what rank {} did, of the link from rank {} to rank {}", r,
            s.event.operation, *s.by.begin(), s.event.rank, s.event.peer));
  return all;
}

sim::Outcome Job::verdict() const {
  sim::Outcome out;
  sim::FaultOutcome& f = out.faults.emplace();
  f.waits = waits_;
  f.violations = violations_;
  for (std::string& news : different_news()) f.violations.push_back(std::move(news));
  f.events = events_;
  for (Said s : said_) {
    if (s.event.what == sim::FaultEvent::What::planned_around)  // by what all know
      for (const Said& o : said_)
        if (o.epoch == s.epoch && o.event.operation == s.event.operation) s.event.at = std::max(s.event.at, o.event.at);
    f.events.push_back(std::move(s.event));
  }
  const std::vector<sim::RankWitness> all = witnesses();
  const Nanos resumed = sim::judge(all, hangs_, hurts_, &f);
  for (const sim::RankWitness& w : all)
    if (w.left()) f.epochs = std::max(f.epochs, w.epoch);
  if (resumed >= 0)
    f.events.push_back({.at = resumed, .what = sim::FaultEvent::What::work, .ranks = f.survivors, .epoch = f.epochs});

  const auto virtual_time = [&](Nanos t) { return Nanos(double(t) / stretch_); };
  const auto since_begin = [&](Nanos t) { return std::max<Nanos>(0, virtual_time(t - began_)); };
  for (Nanos* took : {&f.detection_first, &f.detection, &f.recovery})
    if (*took >= 0) *took = virtual_time(*took);
  for (sim::FaultEvent& e : f.events) e.at = since_begin(e.at);
  std::ranges::stable_sort(f.events, {}, &sim::FaultEvent::at);
  sim::judge_links(&f);
  for (std::size_t o = 0; o < workload_.operations.size(); ++o) {
    std::uint32_t epoch = 0;  // of the result that counts
    for (const sim::RankWitness& w : all)
      if (w.end == sim::RankWitness::End::finished) epoch = std::max(epoch, w.done_in[o]);
    const auto found = executions_.find({epoch, o});
    const Times t = epoch == 0 || found == executions_.end() ? Times{} : found->second;
    out.begin_ns.push_back(since_begin(t.begin));
    out.end_ns.push_back(since_begin(t.end));
  }
  out.time_ns = f.completed && !out.end_ns.empty() ? *std::max_element(out.end_ns.begin(), out.end_ns.end())
                                                   : virtual_time(ended_ - began_);
  out.wrong = wrong_;
  out.first_wrong = first_wrong_;
  f.stretch = stretch_;
  f.late = virtual_time(late_);
  f.carried_by = means_.carrier();
  f.differs = differences(simulated_, out, cards_, *workload_.cluster);
  return out;
}

// What other ranks say follows from how one ended.
void Job::show_logs(bool if_none_all) const {
  std::vector<std::pair<Rank, const RankState*>> shown;
  for (const bool all : {false, true}) {
    const auto look = [&](Rank r, const RankState& s) {
      if (s.started && (all || s.amiss)) shown.emplace_back(r, &s);
    };
    if (all && !(shown.empty() && if_none_all)) break;
    for (const auto& [r, s] : buried_) look(r, s);
    for (Rank r = 0; r < machines(); ++r) look(r, state_[r]);
  }
  for (const auto& [r, s] : shown)
    write_stderr(last_words(s->log, fmt::format("rank {}: ", r), std::min(kLogBytes, kLogBytesOfAll / shown.size())));
}

}  // namespace gccl::real
