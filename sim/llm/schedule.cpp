#include "sim/llm/schedule.hpp"

#include <array>
#include <cmath>

namespace gccl::sim::llm {
namespace {

constexpr std::string_view kQueueNames[] = {"compute", "tensor",   "context",   "expert", "data",
                                            "forward", "backward", "embedding", "host"};

using Tasks = std::vector<std::uint32_t>;

Queue queue_of(Kind kind, bool back) {
  switch (kind) {
    case Kind::tensor: return Queue::tensor;
    case Kind::context: return Queue::context;
    case Kind::expert: return Queue::expert;
    case Kind::data: return Queue::data;
    case Kind::pipeline: return back ? Queue::backward : Queue::forward;
    default: return Queue::embedding;
  }
}

class Scheduler {
 public:
  explicit Scheduler(const Expansion& e)
      : e_(e), w_(*e.workload), m_(w_.micro_batches()), chunks_(w_.chunks()), sends_(2 * m_ * chunks_, kComputes) {
    graph_.stages = w_.parallel.pipeline;
  }

  StepGraph graph() {
    for (stage_ = 0; stage_ < graph_.stages; ++stage_) add_stage();
    for (const auto& [send, marker] : awaited_) edge(sends_[send], marker);
    if (e_.embedding) add_embedding();
    for (stage_ = 0; stage_ < graph_.stages; ++stage_) add_end();
    return std::move(graph_);
  }

 private:
  bool overlaps(Kind k) const { return w_.overlap[std::size_t(k)]; }
  bool training() const { return w_.phase == Phase::training; }

  void edge(std::uint32_t from, std::uint32_t to) { graph_.edges.emplace_back(from, to); }
  std::uint32_t add(StepTask t, const Tasks& after) {
    t.stage = stage_;
    const auto id = std::uint32_t(graph_.tasks.size());
    if (t.queue != Queue::none) {
      std::uint32_t& last = stages_.at(stage_).last[std::size_t(t.queue)];
      if (last != kComputes) edge(last, id);
      last = id;
    }
    for (const std::uint32_t a : after) edge(a, id);
    graph_.tasks.push_back(t);
    return id;
  }
  StepTask of_pass(const Pass& p) const {
    return {.micro_batch = std::uint32_t(p.micro_batch),
            .chunk = std::uint32_t(p.chunk),
            .backward = p.backward,
            .what = {}};
  }
  std::uint32_t marker(const Pass& p, const Tasks& after) {
    StepTask t = of_pass(p);
    t.queue = Queue::none;
    return add(t, after);
  }
  std::uint32_t compute(StepTask t, double us, std::string_view what, Tasks after) {
    t.queue = Queue::compute;
    t.us = us;
    t.what = what;
    after.insert(after.end(), now().blocking.begin(), now().blocking.end());
    now().blocking.clear();
    return add(t, after);
  }
  // What does not overlap waits for all compute before it, and all compute after it waits.
  std::uint32_t communicate(StepTask t, std::uint32_t traffic, Tasks after) {
    const Traffic& what = e_.traffic[traffic];
    t.traffic = traffic;
    t.queue = queue_of(what.kind, what.calls[0].groups == GroupSet::pipeline_back);
    t.what = what.what;
    const bool blocks = !overlaps(what.kind);
    const std::uint32_t last = now().last[0];
    if (blocks && last != kComputes) after.push_back(last);
    const std::uint32_t id = add(t, after);
    if (blocks) now().blocking.push_back(id);
    return id;
  }

  struct Stage {
    std::array<std::uint32_t, kQueues> last;
    Tasks blocking;    // what the next compute waits for
    Tasks layer_ends;  // of ZeRO 3
    Tasks arrived;     // where a chunk computes nothing: the last gradients that reached it
    Stage() { last.fill(kComputes); }
  };
  Stage& now() { return stages_.at(stage_); }

  // A half's way through a program: what its next item waits for.
  struct Half {
    Tasks ready, aside;
  };
  void run(const Pass& pass, const Program& program, std::vector<Half>& halves) {
    for (const Item& item : program)
      for (Half& h : halves) {
        const StepTask t = of_pass(pass);
        if (item.compute) {
          h.ready = {compute(t, item.us, item.what, h.ready)};
          h.ready.insert(h.ready.end(), h.aside.begin(), h.aside.end());
          h.aside.clear();
        } else if (item.aside) {
          StepTask concurrent = t;
          concurrent.traffic = item.traffic;
          concurrent.queue = queue_of(e_.traffic[item.traffic].kind, false);
          concurrent.what = e_.traffic[item.traffic].what;
          h.aside.push_back(add(concurrent, h.ready));
        } else {
          h.ready = {communicate(t, item.traffic, h.ready)};
        }
      }
  }
  static Tasks all_of(const std::vector<Half>& halves) {
    Tasks all;
    for (const Half& h : halves) {
      all.insert(all.end(), h.ready.begin(), h.ready.end());
      all.insert(all.end(), h.aside.begin(), h.aside.end());
    }
    return all;
  }

  std::size_t send_of(bool backward, Count chunk, Count micro_batch) const {
    return (std::size_t(backward) * chunks_ + chunk) * m_ + micro_batch;
  }

  void add_stage() {
    stages_.emplace_back();
    const std::vector<Pass> passes = passes_of(w_, stage_);
    if (training()) gather_first(passes);
    std::vector<std::pair<Pass, Count>> layers;  // of all passes, for ZeRO 3
    for (const Pass& p : passes) {
      const ChunkPlan& c = e_.chunks[p.chunk];
      for (Count i = 0; i < c.layers; ++i)
        layers.emplace_back(p, p.backward ? c.first_layer + c.layers - 1 - i : c.first_layer + i);
    }
    at_ = 0;
    if (sharded() && !layers.empty()) gather_layer(layers[0].first, layers[0].second);
    for (const Pass& p : passes) add_pass(p, layers);
  }
  bool sharded() const { return training() && w_.parallel.zero == 3; }

  void add_pass(const Pass& p, const std::vector<std::pair<Pass, Count>>& layers) {
    const ChunkPlan& chunk = e_.chunks[p.chunk];
    const bool first = p.chunk == 0, last = p.chunk + 1 == chunks_;
    std::vector<Half> halves(e_.halves);
    Tasks start;
    if (p.backward ? !last : !first) {
      start.push_back(marker(p, {}));
      awaited_.emplace_back(send_of(p.backward, p.backward ? p.chunk + 1 : p.chunk - 1, p.micro_batch), start[0]);
    }
    if (sharded() && !p.backward && chunk.gather_embedding)
      start.push_back(communicate(of_pass(p), *chunk.gather_embedding, {}));
    if (chunk.layers == 0) wait_for_gathers(p, 0, start);
    for (Half& h : halves) h.ready = start;
    if (!p.backward) run(p, chunk.embedding.forward, halves);
    if (p.backward) run(p, chunk.head.backward, halves);
    for (Count i = 0; i < chunk.layers; ++i) {
      const Count layer = layers[at_].second;
      ++at_;
      if (sharded()) {
        for (Half& h : halves) h.ready.insert(h.ready.end(), gathered_.begin(), gathered_.end());
        if (at_ < layers.size()) gather_layer(layers[at_].first, layers[at_].second);
      }
      for (Half& h : halves) wait_for_gathers(p, i, h.ready);
      run(p, p.backward ? e_.layer(layer).backward : e_.layer(layer).forward, halves);
      if (sharded()) end_layer(p, layer, all_of(halves));
      if (p.backward && w_.parallel.zero < 3 && (p.micro_batch + 1 == m_ || w_.parallel.zero == 2))
        reduce(p, chunk, i, all_of(halves));
    }
    if (p.backward && chunk.layers == 0 && w_.parallel.zero < 3 && (p.micro_batch + 1 == m_ || w_.parallel.zero == 2))
      reduce(p, chunk, 0, all_of(halves));
    if (p.backward)
      run(p, chunk.embedding.backward, halves);
    else
      run(p, chunk.head.forward, halves);
    if (sharded() && p.backward && chunk.reduce_embedding)
      communicate(of_pass(p), *chunk.reduce_embedding, all_of(halves));
    if (p.backward && chunk.layers == 0) now().arrived = all_of(halves);
    if (p.backward ? first : last) return;
    sends_[send_of(p.backward, p.chunk, p.micro_batch)] =
        communicate(of_pass(p), p.backward ? *e_.backward_send : *e_.forward_send, all_of(halves));
  }

  // The buckets of weights that the i-th layer of a chunk is in, or the embedding where it has none.
  void wait_for_gathers(const Pass& p, Count i, Tasks& ready) {
    if (p.backward || p.micro_batch > 0) return;
    const double end = double(i + 1) / double(std::max<Count>(e_.chunks[p.chunk].layers, 1));
    for (const auto& [fraction, task] : gathers_[p.chunk])
      if (fraction < end + 1e-9) ready.push_back(task);
  }

  // Weights of one layer: while the layer before is computed where that overlaps (so no more than two are held).
  void gather_layer(const Pass& p, Count layer) {
    gathered_.clear();
    const Expansion::Sharded& s = e_.sharded(layer);
    Tasks after;
    if (!now().layer_ends.empty()) after.push_back(now().layer_ends.back());
    for (const auto& traffic : {s.gather, s.gather_experts})
      if (traffic) gathered_.push_back(communicate(of_pass(p), *traffic, after));
  }
  void end_layer(const Pass& p, Count layer, const Tasks& done) {
    now().layer_ends.push_back(marker(p, done));
    if (!p.backward) return;
    const Expansion::Sharded& s = e_.sharded(layer);
    for (const auto& traffic : {s.reduce, s.reduce_experts})
      if (traffic) communicate(of_pass(p), *traffic, done);
  }

  // Gradients of the i-th layer of a backward pass are there: the buckets that it fills. Without overlap all wait for
  // the end.
  void reduce(const Pass& p, const ChunkPlan& chunk, Count i, const Tasks& done) {
    for (const Buckets* b : {&chunk.dense, &chunk.experts}) {
      if (!b->reduce) continue;
      const auto filled = [&](Count layers) { return layers * b->number / std::max<Count>(chunk.layers, 1); };
      for (Count k = filled(i); k < filled(i + 1); ++k) {
        if (overlaps(Kind::data) || w_.parallel.zero == 2)
          communicate(of_pass(p), *b->reduce, done);
        else
          late_[stage_].emplace_back(p, *b->reduce);
      }
    }
  }
  // Where it overlaps the step begins with the gathers that the step before has left.
  void gather_first(const std::vector<Pass>& passes) {
    for (Count c = stage_; c < chunks_; c += graph_.stages) {
      gathers_[c].clear();
      if (overlaps(Kind::data)) gather_chunk(c, passes[0]);
    }
  }
  void gather_chunk(Count c, const Pass& pass, const Tasks& after = {}) {
    for (const Buckets* b : {&e_.chunks[c].dense, &e_.chunks[c].experts})
      for (Count k = 0; b->gather && k < b->number; ++k)
        gathers_[c].emplace_back(double(k) / double(b->number),
                                 communicate(of_pass({pass.backward, c, pass.micro_batch}), *b->gather, after));
  }

  // When all that a stage computes is over.
  Tasks over(Rank stage) const {
    const Stage& s = stages_.at(stage);
    Tasks all = s.arrived;
    if (s.last[0] != kComputes) all.push_back(s.last[0]);
    return all;
  }

  void add_embedding() {
    const auto of_stage = [&](Rank s) {
      stage_ = s;
      return Pass{true, s == 0 ? 0 : chunks_ - 1, m_ - 1};
    };
    const std::array<Rank, 2> ends{0, graph_.stages - 1};
    Tasks both;  // for the other stage, too, they mark the end of work, not a communication of its own
    for (const Rank s : ends) both.push_back(marker(of_stage(s), over(s)));
    for (const Rank s : ends) communicate(of_pass(of_stage(s)), *e_.embedding, both);
  }

  // What is left when all compute of a stage is over: reductions and gathers that do not overlap, the optimizer.
  void add_end() {
    if (!training()) return;
    const Pass end{true, stage_, m_ - 1};
    for (const auto& [pass, traffic] : late_[stage_]) communicate(of_pass(pass), traffic, over(stage_));
    Tasks after = now().arrived;
    for (const Queue q : {Queue::data, Queue::embedding})
      if (const std::uint32_t last = now().last[std::size_t(q)]; last != kComputes) after.push_back(last);
    if (w_.compute.optimizer_us > 0) after = {compute(of_pass(end), w_.compute.optimizer_us, "optimizer", after)};
    if (!overlaps(Kind::data) && w_.parallel.zero < 3)
      for (Count c = stage_; c < chunks_; c += graph_.stages) gather_chunk(c, end, after);
  }

  const Expansion& e_;
  const LlmWorkload& w_;
  const Count m_, chunks_;
  StepGraph graph_;
  Rank stage_ = 0;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> sends_;                            // by send_of
  std::vector<std::pair<std::size_t, std::uint32_t>> awaited_;  // a send, and the marker that waits for it
  std::map<Count, std::vector<std::pair<double, std::uint32_t>>>
      gathers_;  // by chunk: the part of it from where on, task
  std::map<Rank, std::vector<std::pair<Pass, std::uint32_t>>> late_;
  Tasks gathered_;  // of the layer that comes next
  std::size_t at_ = 0;
};

}  // namespace

std::string_view name(Queue q) { return kQueueNames[std::size_t(q)]; }

std::vector<Pass> passes_of(const LlmWorkload& w, Rank stage) {
  const Count p = w.parallel.pipeline, v = w.parallel.interleave, m = w.micro_batches(), all = m * v;
  const auto pass = [&](bool backward, Count k) {
    if (v == 1) return Pass{backward, stage, k};
    const Count turn = k / p % v, chunk = backward ? v - 1 - turn : turn;
    return Pass{backward, chunk * p + stage, k / (p * v) * p + k % p};
  };
  std::vector<Pass> passes;
  if (w.phase != Phase::training) return {pass(false, 0)};
  const Count ahead = v == 1 ? p - stage - 1 : (p - stage - 1) * 2 + (v - 1) * p, warm = std::min(ahead, all);
  for (Count k = 0; k < warm; ++k) passes.push_back(pass(false, k));
  for (Count k = warm; k < all; ++k) {
    passes.push_back(pass(false, k));
    passes.push_back(pass(true, k - warm));
  }
  for (Count k = all - warm; k < all; ++k) passes.push_back(pass(true, k));
  return passes;
}

StepGraph schedule(const Expansion& e) { return Scheduler(e).graph(); }

}  // namespace gccl::sim::llm
