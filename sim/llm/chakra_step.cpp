#include "sim/llm/chakra_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

#include "libgccl/base/counted.hpp"
#include "sim/llm/chakra.hpp"
#include "sim/llm/step_result.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kTracedTasksMax = 8'000'000;
constexpr Count kTracedBytesMax = Count(1) << 50;  // as in scenarios

class Traces {
 public:
  Traces(const LlmWorkload& w, Pricer& pricer)
      : w_(w), pricer_(pricer), world_(pricer.world(w)), ranks_(w.parallel.ranks()) {}

  std::unique_ptr<PlayedStep> step() {
    read_groups();
    for (rank_ = 0; rank_ < ranks_; ++rank_) add_rank();
    finish_calls();
    auto s = std::make_unique<PlayedStep>(PlayedStep{w_, std::make_shared<Expansion>(), {}, {}, {}, {}});
    s->expansion->workload = &s->workload;
    price(*s);
    s->graph = std::move(graph_);
    s->graph.stages = ranks_;
    try {
      s->timeline = timeline_of(s->graph, *s->expansion, s->costs, pricer_.stop());
    } catch (const WaitsInCircle& e) {
      std::string circle;
      for (const std::uint32_t t : e.tasks)
        if (const StepTask& task = s->graph.tasks[t]; task.queue == Queue::none)  // a call's begin or end on its rank
          circle += fmt::format("{}\"{}\" of rank {}", circle.empty() ? "" : " for ", task.what, task.stage);
      throw json::InputError(fmt::format(
          "{}: the ranks wait for each other, since their collectives or sends come in different orders: {}",
          w_.chakra->prefix.string(), circle));
    }
    return s;
  }

  const std::vector<Json>& rows() const { return rows_; }
  const std::vector<std::size_t>& sizes() const { return sizes_; }  // ranks of each traffic

  // What each rank sends in its calls.
  std::vector<ByKind<double>> sent_by_ranks(const PlayedStep& s) const {
    std::vector<ByKind<double>> all(ranks_);
    const auto add = [&](const SharedCall& c) {
      const StepTask& task = s.graph.tasks[c.task];
      if (task.computes()) return;  // of one rank alone
      const auto k = std::size_t(s.expansion->traffic[task.traffic].kind);
      const bool one_sends = c.call.collective == Collective::sendrecv;
      for (const Rank r : c.members)
        if (!one_sends || r == c.members[0]) all[r][k] += sent_bytes(c.call, Rank(c.members.size()));
    };
    for (const auto& [key, c] : collectives_) add(c);
    for (const auto& [key, c] : messages_) add(c);
    return all;
  }

 private:
  using Members = std::vector<Rank>;
  // One collective or send that several ranks take part in.
  struct SharedCall {
    std::uint32_t task = kComputes;
    TrafficCall call;
    Members members, entered;  // those that take part, and of these who has the call in its trace so far
    std::string first_seen;    // where
  };

  std::filesystem::path file() const { return chakra_file(w_.chakra->prefix, rank_); }
  [[noreturn]] void fail(const ChakraNode& n, const std::string& what) const {
    throw json::InputError(
        fmt::format("{}: node {} \"{}\": {}", file().string(), n.id, json::valid_text(n.name.substr(0, 60)), what));
  }

  void read_groups() {
    if (!w_.chakra->communicators) return;
    const json::Node all = json::Node::load(*w_.chakra->communicators);
    for (const auto& [name, list] : all.members()) {
      if (name.empty())
        list.fail("a communicator without a name: calls without \"pg_name\" are of all ranks; expected a name");
      Members& members = groups_[name];
      for (const json::Node& item : list.items(1, ranks_)) {
        const auto r = Rank(item.integer(0, ranks_ - 1));
        if (std::ranges::find(members, r) != members.end()) item.fail(fmt::format("rank {} appears twice", r));
        members.push_back(r);
      }
    }
  }
  const Members& members_of(const ChakraNode& n) {
    if (n.group.empty()) {
      Members& all = groups_[""];
      for (Rank r = Rank(all.size()); r < ranks_; ++r) all.push_back(r);
      return all;
    }
    const auto at = groups_.find(n.group);
    if (at == groups_.end())
      fail(n,
           fmt::format("pg_name \"{}\" is no communicator; expected one of {}", json::valid_text(n.group.substr(0, 60)),
                       w_.chakra->communicators ? w_.chakra->communicators->string()
                                                : "\"communicators\", which is not stated"));
    if (std::ranges::find(at->second, rank_) == at->second.end())
      fail(n, fmt::format("rank {} is not in communicator \"{}\"", rank_, json::valid_text(n.group)));
    return at->second;
  }

  double compute_us(const ChakraNode& n) const {
    if (n.duration_us > 0 || n.host) return n.duration_us;
    const Compute& c = w_.compute;
    if (n.operations > 0 && c.card_TFLOPS == 0)
      fail(n, "has num_ops and no duration; expected \"card_TFLOPS\" in the workload's \"compute\"");
    if (n.operations == 0 && n.bytes > 0 && c.memory_GBps == 0)
      fail(n, "has tensor_size, no num_ops and no duration; expected \"memory_GBps\" in the workload's \"compute\"");
    double us = n.operations > 0 ? n.operations / (c.card_TFLOPS * 1e6 * c.efficiency) : 0;
    if (n.bytes > 0 && c.memory_GBps > 0) us = std::max(us, n.bytes / (c.memory_GBps * 1e3 * c.memory_efficiency));
    if (us > kChakraMicrosMax)
      fail(n, fmt::format("num_ops {:.4g} and tensor_size {:.4g} take {:.4g} us with the workload's \"compute\", "
                          "expected at most {:.0e}",
                          n.operations, n.bytes, us, kChakraMicrosMax));
    return us;
  }

  std::uint32_t add(StepTask t) {
    if (graph_.tasks.size() == kTracedTasksMax)
      throw json::InputError(fmt::format("{}: more than {} nodes on all ranks", file().string(), kTracedTasksMax));
    t.stage = rank_;
    graph_.tasks.push_back(t);
    return std::uint32_t(graph_.tasks.size() - 1);
  }
  void edge(std::uint32_t from, std::uint32_t to) { graph_.edges.emplace_back(from, to); }

  void add_rank() {
    std::map<std::uint64_t, std::uint32_t> over;  // node: the task after which it is over
    std::array<std::uint32_t, kQueues> last;
    last.fill(kComputes);
    std::map<std::string, std::size_t> count;  // collectives of each communicator so far
    std::map<std::tuple<Rank, Rank, std::uint64_t>, std::size_t> sends;
    const auto in_queue = [&](Queue q, std::uint32_t begin, std::uint32_t end) {
      if (last[std::size_t(q)] != kComputes) edge(last[std::size_t(q)], begin);
      last[std::size_t(q)] = end;
    };
    for (const ChakraNode& n : read_chakra(file())) {
      StepTask t{.what = label(n)};
      std::uint32_t begin = 0, end = 0;
      if (n.type == ChakraType::compute || n.type == ChakraType::metadata) {
        t.queue = n.type == ChakraType::metadata ? Queue::none : n.host ? Queue::host : Queue::compute;
        t.us = n.type == ChakraType::metadata ? 0 : compute_us(n);
        begin = end = add(t);
        if (t.queue != Queue::none) in_queue(t.queue, begin, end);
      } else {
        t.queue = Queue::none;
        begin = add(t);
        SharedCall& call = n.type == ChakraType::collective ? collective(n, count[n.group]++) : message(n, sends);
        edge(begin, call.task);
        end = add(t);
        edge(call.task, end);
        edge(begin, end);  // on each rank, whichever has the call's task: what it waits for may be ahead in its queue
        if (n.type != ChakraType::receive)
          in_queue(n.type == ChakraType::collective ? Queue::data : Queue::forward, begin, end);
      }
      for (const std::uint64_t id : n.after) edge(over.at(id), begin);
      over[n.id] = end;
    }
  }

  // Names stay as long as the traces' tasks, which only look at them.
  std::string_view label(const ChakraNode& n) {
    return *labels_->insert(json::valid_text(n.name.substr(0, 120))).first;
  }

  SharedCall& enter(SharedCall& call, const ChakraNode& n, const TrafficCall& wanted, Members members) {
    if (call.task == kComputes) {
      call.call = wanted;
      call.members = std::move(members);
      call.first_seen = fmt::format("rank {}, node {}", rank_, n.id);
      StepTask t{.what = label(n)};
      t.traffic = 0;
      t.queue = wanted.collective == Collective::sendrecv ? Queue::forward : Queue::data;
      call.task = add(t);
    } else if (call.call != wanted) {
      fail(n, fmt::format("{} of {} bytes, but {} has {} of {} there", gccl::name(wanted.collective), wanted.bytes,
                          call.first_seen, gccl::name(call.call.collective), call.call.bytes));
    }
    call.entered.push_back(rank_);
    return call;
  }
  SharedCall& collective(const ChakraNode& n, std::size_t k) {
    const Members& members = members_of(n);
    // As scenarios count; of an all-gather ASTRA-sim counts what one rank has.
    if (n.collective == Collective::allgather && n.comm_bytes > kTracedBytesMax / members.size())
      fail(n, fmt::format("comm_size {} of each of {} ranks, expected at most 2^50 bytes of all together", n.comm_bytes,
                          members.size()));
    const Count bytes = n.collective == Collective::allgather ? n.comm_bytes * members.size() : n.comm_bytes;
    return enter(collectives_[{n.group, k}], n, {n.collective, bytes, Dtype::u8, GroupSet::data, false}, members);
  }
  SharedCall& message(const ChakraNode& n, std::map<std::tuple<Rank, Rank, std::uint64_t>, std::size_t>& count) {
    const bool sends = n.type == ChakraType::send;
    if (const auto& own = sends ? n.source : n.destination; own && *own != rank_)
      fail(n, fmt::format("{} {} in the trace of rank {}", sends ? "comm_src" : "comm_dst", *own, rank_));
    const Rank from = sends ? rank_ : *n.source, to = sends ? *n.destination : rank_;
    if (from >= ranks_ || to >= ranks_ || from == to)
      fail(n, fmt::format("from rank {} to rank {}, expected two of {}", from, to, counted(ranks_, "rank")));
    const auto key = std::tuple(from, to, n.tag);
    return enter(messages_[{key, count[key]++}], n,
                 {Collective::sendrecv, n.comm_bytes, Dtype::u8, GroupSet::pipeline, false}, {from, to});
  }

  void finish_calls() {
    const auto check = [&](const SharedCall& c) {
      if (c.entered.size() == c.members.size()) return;
      const auto missing =
          std::ranges::find_if(c.members, [&](Rank r) { return std::ranges::find(c.entered, r) == c.entered.end(); });
      throw json::InputError(fmt::format(
          "{}: the {} of {} bytes of {} is carried out by {} of {} ranks, not by rank {}", w_.chakra->prefix.string(),
          gccl::name(c.call.collective), c.call.bytes, c.first_seen, c.entered.size(), c.members.size(), *missing));
    };
    for (const auto& [key, c] : collectives_) check(c);
    for (const auto& [key, c] : messages_) check(c);
  }

  // Which calls are played at once, and what each takes.
  void price(PlayedStep& s) {
    using Together = std::tuple<TrafficCall, std::size_t, std::size_t>;  // call, members, as the k-th
    std::map<Together, std::vector<SharedCall*>> played;
    for (auto& [key, c] : collectives_) {
      if (c.members.size() == 1) continue;
      auto& alike = played[{c.call, c.members.size(), key.second}];
      alike.push_back(&c);
    }
    std::vector<std::vector<SharedCall*>> all;
    for (auto& [key, calls] : played) {
      // Communicators with a rank in common cannot be at the same call at the same time.
      std::set<Rank> taken;
      bool apart = true;
      for (const SharedCall* c : calls)
        for (const Rank r : c->members) apart = taken.insert(r).second && apart;
      if (apart)
        all.push_back(calls);
      else
        for (SharedCall* c : calls) all.push_back({c});
    }
    std::map<std::tuple<Rank, Rank, Count>, std::vector<SharedCall*>> sends;
    for (auto& [key, c] : messages_) sends[{c.members[0], c.members[1], c.call.bytes}].push_back(&c);
    for (auto& [key, calls] : sends) all.push_back(calls);

    std::map<std::string, std::uint32_t> known;  // run: its traffic
    std::vector<Json> runs;
    for (const auto& calls : all) {
      const bool message = calls[0]->call.collective == Collective::sendrecv;
      Json groups = Json::array();
      for (const SharedCall* c : calls)
        if (!message || groups.empty()) groups.push_back(c->members);
      Json run = traced_run(w_, calls[0]->call, groups);
      const auto [at, fresh] = known.try_emplace(run.dump(), std::uint32_t(runs.size()));
      if (fresh) {
        s.expansion->traffic.push_back({message ? Kind::pipeline : Kind::data,
                                        std::string(gccl::name(calls[0]->call.collective)),
                                        {calls[0]->call}});
        sizes_.push_back(calls[0]->members.size());
        runs.push_back(std::move(run));
      }
      for (const SharedCall* c : calls) graph_.tasks[c->task].traffic = at->second;
    }
    for (const auto& [key, c] : collectives_)
      if (c.members.size() == 1) graph_.tasks[c.task].traffic = kComputes, graph_.tasks[c.task].queue = Queue::none;
    rows_ = runs.empty() ? std::vector<Json>{} : pricer_.play(w_, world_, runs);
    for (const Json& row : rows_) s.costs.us.push_back(row["time_us"].get<double>());
    s.runs = std::move(runs);
    s.names = labels_;
  }

  static Json traced_run(const LlmWorkload& w, const TrafficCall& call, const Json& groups) {
    Json task = task_of(w, call, groups);
    if (call.collective == Collective::barrier) task.erase("bytes"), task.erase("dtype");
    return {{"label", gccl::name(call.collective)},
            {"engine", name(w.engine)},
            {"concurrent", Json::array({Json::array({task})})}};
  }

  const LlmWorkload& w_;
  Pricer& pricer_;
  const StepWorld world_;
  const Rank ranks_;
  Rank rank_ = 0;
  StepGraph graph_;
  std::map<std::string, Members> groups_;
  std::map<std::pair<std::string, std::size_t>, SharedCall> collectives_;  // by communicator, k-th
  std::map<std::pair<std::tuple<Rank, Rank, std::uint64_t>, std::size_t>, SharedCall> messages_;
  std::shared_ptr<std::set<std::string>> labels_ = std::make_shared<std::set<std::string>>();
  std::vector<Json> rows_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

std::unique_ptr<PlayedStep> play_traces(const LlmWorkload& w, Pricer& pricer) {
  Traces traces(w, pricer);
  auto s = traces.step();
  const Timeline& t = s->timeline;
  Json& r = s->result;
  r = step_head(w, *pricer.world(w).cluster, "trace", t.step_us);
  r["parallel"] = Json::object();
  r["micro_batches"] = 1;
  r["tokens_per_s"] = 0;
  r["TFLOPS_per_card"] = 0;
  r["mfu_percent"] = nullptr;
  r["mfu_full_attention_percent"] = nullptr;
  r["together"] = Json::array();
  std::vector<StageRow> stages;
  const auto sent = traces.sent_by_ranks(*s);
  for (std::size_t rank = 0; rank < t.stages.size(); ++rank)
    stages.push_back({t.stages[rank], sent[rank], Json::object()});
  add_stages(stages, r);
  std::vector<std::size_t> number(s->expansion->traffic.size());
  for (std::uint32_t i = 0; i < s->graph.tasks.size(); ++i) {
    const StepTask& task = s->graph.tasks[i];
    if (task.computes()) continue;
    ++number[task.traffic];
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < number.size(); ++i) {
    const Traffic& x = s->expansion->traffic[i];
    const Json& o = traces.rows()[i]["operations"][0];
    Json call = {{"collective", name(x.calls[0].collective)},
                 {"bytes", x.calls[0].bytes},
                 {"dtype", "u8"},
                 {"ranks", traces.sizes()[i]}};
    add_operation(call, o);
    list.push_back({{"kind", name(x.kind)},
                    {"what", x.what},
                    {"calls", Json::array({std::move(call)})},
                    {"time_us", s->costs.us[i]},
                    {"number_max", number[i] / o["groups"].get<std::size_t>()},
                    {"sent_bytes", sent_bytes(x.calls[0], Rank(traces.sizes()[i]))}});
  }
  r["traffic"] = std::move(list);
  add_expectations(w, r);
  return s;
}

}  // namespace gccl::sim::llm
