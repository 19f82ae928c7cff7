#include "sim/llm/timeline.hpp"

#include <algorithm>
#include <queue>

namespace gccl::sim::llm {
namespace {

// Lists of task numbers, one for each task.
class Lists {
 public:
  Lists(std::size_t tasks, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges, bool backwards)
      : first_(tasks + 1, 0), all_(edges.size()) {
    const auto from = [&](const auto& e) { return backwards ? e.second : e.first; };
    for (const auto& e : edges) ++first_[from(e) + 1];
    for (std::size_t i = 0; i < tasks; ++i) first_[i + 1] += first_[i];
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for (const auto& e : edges) all_[at[from(e)]++] = backwards ? e.first : e.second;
  }
  std::span<const std::uint32_t> of(std::uint32_t task) const {
    return {all_.data() + first_[task], first_[task + 1] - first_[task]};
  }

 private:
  std::vector<std::uint32_t> first_, all_;
};

class Player {
 public:
  Player(const StepGraph& graph, const Expansion& e, const StepCosts& costs, const StopFlag* stop)
      : g_(graph),
        e_(e),
        costs_(costs),
        stop_(stop),
        after_(graph.tasks.size(), graph.edges, false),
        before_(graph.tasks.size(), graph.edges, true),
        left_(graph.tasks.size()),
        waits_(graph.tasks.size()),
        looked_at_(graph.tasks.size()),
        stages_(graph.stages) {
    out_.begin.assign(g_.tasks.size(), -1);
    out_.end.assign(g_.tasks.size(), -1);
    out_.stages.resize(g_.stages);
    for (const auto& [from, to] : g_.edges) ++waits_[to];
    for (std::uint32_t t = 0; t < g_.tasks.size(); ++t) {
      const StepTask& task = g_.tasks[t];
      left_[t] = task.computes() ? task.us : costs_.us[task.traffic];
      if (task.queue == Queue::compute) stages_[task.stage].computes.push_back(t);
    }
  }

  Timeline timeline() {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t t = 0; t < g_.tasks.size(); ++t)
      if (waits_[t] == 0) ready.push_back(t);
    start(ready, 0);
    while (!events_.empty()) {
      const Event e = events_.top();
      events_.pop();
      if (e.version != stages_[e.stage].version) continue;
      if (stop_ && *stop_) throw Interrupted();
      advance(e.stage, e.time);
      // The task that ends is over whatever rounding leaves of it, and with it those that end as soon.
      const double nothing = std::max(kTiny, e.time * kRounding);
      const auto over = [&](std::uint32_t t) { return t == e.task || left_[t] <= nothing; };
      std::vector<std::uint32_t> done;
      auto& active = stages_[e.stage].active;
      for (const std::uint32_t t : active)
        if (over(t)) done.push_back(t);
      std::erase_if(active, over);
      ready.clear();
      for (const std::uint32_t t : done) book_waiting(t, e.time);
      for (const std::uint32_t t : done) {
        for_each_partner(t, [&](auto& shared) { std::erase(shared, t); });
        finish(t, e.time, ready);
      }
      touched_.push_back(e.stage);
      start(ready, e.time);
    }
    if (finished_ != g_.tasks.size()) throw WaitsInCircle(circle());
    for (const double end : out_.end) out_.step_us = std::max(out_.step_us, end);
    for (Rank s = 0; s < g_.stages; ++s) advance(s, out_.step_us);
    return std::move(out_);
  }

 private:
  static constexpr double kTiny = 1e-7;         // us
  static constexpr double kRounding = 0x1p-50;  // of the time, what sums of so many microseconds are wrong by
  static constexpr double kLeastPace = 0.05;

  struct Stage {
    std::vector<std::uint32_t> active, computes;  // in flight; all compute tasks in order
    std::vector<std::uint32_t> shared;            // in flight on other stages, and a task of this one waits for it
    std::size_t next = 0;                         // of computes: the first that is not over
    double now = 0;
    std::uint64_t version = 0;
  };
  struct Event {
    double time;
    Rank stage;
    std::uint32_t task;  // which ends then
    std::uint64_t version;
    bool operator<(const Event& o) const { return std::tie(time, stage) > std::tie(o.time, o.stage); }
  };

  Kind kind(std::uint32_t t) const { return e_.traffic[g_.tasks[t].traffic].kind; }

  double pace(const Stage& s, std::uint32_t t) const {
    double sum = 0;
    if (g_.tasks[t].queue == Queue::host) return 1;
    if (g_.tasks[t].computes()) {
      for (const std::uint32_t o : s.active)
        if (!g_.tasks[o].computes()) sum += costs_.sm_share[std::size_t(kind(o))];
      return std::max(kLeastPace, 1 - sum);
    }
    for (const std::uint32_t o : s.active)
      if (o != t && !g_.tasks[o].computes()) sum += costs_.slower[std::size_t(kind(t))][std::size_t(kind(o))] - 1;
    return 1 / (1 + sum);
  }

  // Lets a stage's tasks go on until then, and books what the time was spent on.
  void advance(Rank stage, double time) {
    Stage& s = stages_[stage];
    const double dt = time - s.now;
    if (dt <= 0) return;
    StageTime& spent = out_.stages[stage];
    bool computing = false;
    std::vector<double> paces;
    for (const std::uint32_t t : s.active) paces.push_back(pace(s, t));
    for (std::size_t i = 0; i < s.active.size(); ++i) {
      const std::uint32_t t = s.active[i];
      left_[t] -= dt * paces[i];
      if (g_.tasks[t].queue == Queue::host) continue;
      if (g_.tasks[t].computes()) {
        computing = true;
        spent.compute += dt * paces[i];
        spent.slowed += dt * (1 - paces[i]);
        continue;
      }
      spent.busy[std::size_t(kind(t))] += dt;
      for (std::size_t j = 0; j < i; ++j)
        if (!g_.tasks[s.active[j]].computes()) {
          const auto a = std::size_t(kind(t)), b = std::size_t(kind(s.active[j]));
          out_.together[a][b] += dt;
          if (a != b) out_.together[b][a] += dt;
        }
    }
    for (const std::uint32_t t : s.shared) spent.busy[std::size_t(kind(t))] += dt;
    if (!computing) {
      if (const auto k = awaited(s, stage))
        spent.exposed[std::size_t(*k)] += dt;
      else
        spent.bubble += dt;
    }
    s.now = time;
  }

  // The kind of communication that the stage's next compute waits for; nothing where it waits for compute elsewhere.
  std::optional<Kind> awaited(Stage& s, Rank stage) {
    while (s.next < s.computes.size() && out_.end[s.computes[s.next]] >= 0) ++s.next;
    if (s.next < s.computes.size()) return cause(s.computes[s.next], stage);
    for (const std::uint32_t t : s.active)
      if (!g_.tasks[t].computes()) return kind(t);
    if (!s.shared.empty()) return kind(s.shared[0]);
    return {};
  }
  // Looks at what the task waits for, and what that waits for on this stage, at each once: paths may be many and long.
  std::optional<Kind> cause(std::uint32_t task, Rank stage) {
    ++look_;
    std::vector<std::uint32_t> open{task};
    while (!open.empty()) {
      const std::uint32_t waits = open.back();
      open.pop_back();
      const std::size_t here = open.size();
      for (const std::uint32_t b : before_.of(waits)) {
        const StepTask& t = g_.tasks[b];
        if (out_.end[b] >= 0 || t.queue == Queue::compute || looked_at_[b] == look_) continue;
        looked_at_[b] = look_;
        const bool runs = t.queue != Queue::none && out_.begin[b] >= 0;
        if (runs && !t.computes()) return kind(b);
        if (runs || t.stage != stage) continue;  // the host computes; what another stage has not sent yet
        open.push_back(b);
      }
      std::reverse(open.begin() + std::ptrdiff_t(here), open.end());  // the first is looked at next
    }
    return {};
  }

  // Requires tasks that never ran: each waits for another one of them.
  std::vector<std::uint32_t> circle() {
    const auto ran = [&](std::uint32_t t) { return out_.end[t] >= 0; };
    std::uint32_t t = 0;
    while (ran(t)) ++t;
    std::vector<std::uint32_t> way;
    ++look_;
    for (; looked_at_[t] != look_; t = *std::ranges::find_if_not(before_.of(t), ran)) {
      looked_at_[t] = look_;
      way.push_back(t);
    }
    way.erase(way.begin(), std::ranges::find(way, t));
    return way;
  }

  // What stages that wait for this task have waited for so far, before it begins or ends.
  void book_waiting(std::uint32_t t, double time) {
    for (const std::uint32_t next : after_.of(t))
      if (g_.tasks[next].stage != g_.tasks[t].stage) advance(g_.tasks[next].stage, time);
  }

  // The other stages that take part in a communication: a task of theirs waits for it.
  template <class F>
  void for_each_partner(std::uint32_t t, F&& f) {
    if (g_.tasks[t].computes()) return;
    for (const std::uint32_t next : after_.of(t))
      if (g_.tasks[next].stage != g_.tasks[t].stage) f(stages_[g_.tasks[next].stage].shared);
  }

  void finish(std::uint32_t t, double time, std::vector<std::uint32_t>& ready) {
    out_.end[t] = time;
    ++finished_;
    for (const std::uint32_t next : after_.of(t))
      if (--waits_[next] == 0) ready.push_back(next);
  }

  void start(std::vector<std::uint32_t> ready, double time) {
    while (!ready.empty()) {
      const std::uint32_t t = ready.back();
      ready.pop_back();
      advance(g_.tasks[t].stage, time);
      book_waiting(t, time);
      out_.begin[t] = time;
      if (g_.tasks[t].queue == Queue::none || left_[t] <= kTiny) {
        finish(t, time, ready);
        continue;
      }
      const Rank stage = g_.tasks[t].stage;
      stages_[stage].active.push_back(t);
      for_each_partner(t, [&](auto& shared) { shared.push_back(t); });
      touched_.push_back(stage);
    }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const Rank stage : touched_) {
      Stage& s = stages_[stage];
      ++s.version;
      Event soonest{-1, stage, kComputes, s.version};
      for (const std::uint32_t t : s.active) {
        const double at = time + left_[t] / pace(s, t);
        if (soonest.time < 0 || at < soonest.time) soonest.time = at, soonest.task = t;
      }
      if (soonest.time >= 0) events_.push(soonest);
    }
    touched_.clear();
  }

  const StepGraph& g_;
  const Expansion& e_;
  const StepCosts& costs_;
  const StopFlag* stop_;
  Lists after_, before_;
  std::vector<double> left_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint64_t> looked_at_;  // by task: the last look for a cause that met it
  std::uint64_t look_ = 0;
  std::vector<Stage> stages_;
  std::priority_queue<Event> events_;
  std::vector<Rank> touched_;
  std::size_t finished_ = 0;
  Timeline out_;
};

}  // namespace

Timeline timeline_of(const StepGraph& graph, const Expansion& e, const StepCosts& costs, const StopFlag* stop) {
  return Player(graph, e, costs, stop).timeline();
}

}  // namespace gccl::sim::llm
