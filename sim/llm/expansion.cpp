#include "sim/llm/expansion.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/llm/arithmetic.hpp"

namespace gccl::sim::llm {
namespace {

constexpr double kBucketsMax = 4096, kReductionsMax = 8e6;
constexpr double kCallBytesMax = 0x1p60;

class Expander {
 public:
  Expander(const LlmWorkload& w, Rank ranks_in_node)
      : w_(w), p_(w.parallel), in_node_(ranks_in_node), imbalance_(imbalance(w)) {
    e_.workload = &w;
    const auto splits = [&](Kind k, Rank ranks) { return w.overlap[std::size_t(k)] && ranks > 1; };
    if (splits(Kind::tensor, p_.tensor) || splits(Kind::context, p_.context) || splits(Kind::expert, p_.expert))
      e_.halves = 2;
    tokens_ = w.tokens() / e_.halves;
  }

  Expansion expansion() {
    const bool dense = has_layers(false), moe = has_layers(true);
    if (dense) e_.dense = layer(false);
    if (moe) e_.moe = layer(true);
    for (Count c = 0; c < w_.chunks(); ++c) add_chunk(c);
    const double between = w_.own_tokens() * double(w_.model.hidden);
    if (p_.pipeline > 1) {
      e_.forward_send = send("activations to the next stage", between, GroupSet::pipeline);
      if (training()) e_.backward_send = send("gradients to the stage before", between, GroupSet::pipeline_back);
    }
    if (training() && w_.model.tied && p_.pipeline > 1)
      e_.embedding = add(Kind::embedding, "embedding gradients", Collective::allreduce, GroupSet::embedding,
                         embedding_parameters(w_.model) / p_.tensor, w_.gradient_dtype);
    if (training() && p_.zero == 3) {
      if (dense) e_.sharded_dense = sharded(false);
      if (moe) e_.sharded_moe = sharded(true);
    }
    return std::move(e_);
  }

 private:
  bool training() const { return w_.phase == Phase::training; }
  bool has_layers(bool moe) const {
    for (Count l = 0; l < w_.model.layers; ++l)
      if (w_.model.moe(l) == moe) return true;
    return false;
  }

  std::uint32_t add(Traffic t) {
    for (std::uint32_t i = 0; i < e_.traffic.size(); ++i)
      if (e_.traffic[i].what == t.what && e_.traffic[i].calls == t.calls) return i;
    e_.traffic.push_back(std::move(t));
    return std::uint32_t(e_.traffic.size() - 1);
  }
  TrafficCall call(Collective c, GroupSet groups, double elements, Dtype dtype) const {
    const double bytes = std::max(1.0, std::round(elements)) * size_of(dtype);
    if (bytes > kCallBytesMax)
      w_.where.fail(fmt::format("one {} would be of {:.3g} bytes, expected at most 2^60", gccl::name(c), bytes));
    return {c, Count(bytes), dtype, groups, false};
  }
  std::uint32_t add(Kind kind, std::string what, Collective c, GroupSet groups, double elements, Dtype dtype) {
    return add({kind, std::move(what), {call(c, groups, elements, dtype)}});
  }
  std::uint32_t send(std::string what, double elements, GroupSet groups) {
    return add(Kind::pipeline, std::move(what), Collective::sendrecv, groups, elements, w_.dtype);
  }

  // Microseconds of a block on one card, of the tokens of a half: `flops` for a token, all tensor ranks together;
  // `read_bytes` of weights and cache in decoding.
  double time_us(double flops, double read_bytes) const {
    const Compute& c = w_.compute;
    const double us = flops * tokens_ / p_.tensor / (c.card_TFLOPS * 1e6 * c.efficiency);
    if (w_.phase != Phase::decode) return us;
    const double reading_us = read_bytes / p_.tensor / (c.memory_GBps * 1e3 * c.memory_efficiency);
    return std::max(us, reading_us);
  }

  struct Times {
    double mixing = 0, feeding = 0, scores = 0;  // attention, feed-forward or experts; of attention the scores
  };
  // Forward.
  Times times(bool moe) const {
    const Model& m = w_.model;
    const LayerParameters p = layer_parameters(m, moe);
    const bool decode = w_.phase == Phase::decode;
    // In decoding each context rank has its part of the caches.
    const CoreFlops causal = attention_core_flops(m, double(w_.sequence), true);
    const double core = decode ? decoded_core_flops(m, double(w_.sequence) / p_.context) : causal.sum();
    double feeding = 2 * (p.active - p.attention), mixing = 2 * p.attention + core;
    if (moe) {
      const double experts = 2 * double(m.experts.top_k) * (p.experts / double(m.experts.count));
      mixing += feeding - experts;  // router and shared experts, computed concurrently with attention
      feeding = experts * imbalance_;
    }
    if (w_.compute.forward_us) {
      const double even = mixing + feeding / (moe ? imbalance_ : 1), us = *w_.compute.forward_us / e_.halves / even;
      return {mixing * us, feeding * us, causal.scores * us};
    }
    const double each = size_of(w_.dtype);
    const double cache = decode ? layer_cache_bytes(w_) / e_.halves * p_.tensor : 0;
    double mixing_read = p.attention, feeding_read = p.active - p.attention;  // weights
    if (moe) {
      const double expert = p.experts / double(m.experts.count);
      mixing_read += feeding_read - double(m.experts.top_k) * expert;  // router and shared experts
      feeding_read = experts_read() * expert * p_.tensor;
    }
    return {time_us(mixing, mixing_read * each + cache), time_us(feeding, feeding_read * each),
            time_us(causal.scores, 0)};
  }
  // Experts of a card whose weights one step of decoding reads: those that a token of its group is sent to.
  double experts_read() const {
    const Experts& x = w_.model.experts;
    const double own = double(x.count) / p_.expert, tokens = tokens_ * p_.expert;
    return own * (1 - std::pow(1 - double(x.top_k) / double(x.count), tokens));
  }

  void compute(Program& to, std::string_view what, double us) const { to.push_back({true, us, 0, false, what}); }
  void communicate(Program& to, std::optional<std::uint32_t> traffic, bool aside = false) const {
    if (traffic) to.push_back({false, 0, *traffic, aside, {}});
  }

  // What the ranks of a tensor group do before and after a block; nothing where there is but one.
  std::optional<std::uint32_t> tensor(Collective c) { return tensor(c, tokens_); }
  std::optional<std::uint32_t> tensor(Collective c, double tokens) {
    if (p_.tensor == 1) return {};
    if (!p_.sequence && c != Collective::allreduce) return {};
    if (p_.sequence && c == Collective::allreduce) return {};
    return add(Kind::tensor, "activations", c, GroupSet::tensor, tokens * double(w_.model.hidden), w_.dtype);
  }
  // Keys and values of the other context ranks (Llama 3, arXiv 2407.21783, section 3.3.2).
  std::optional<std::uint32_t> context(Collective c) {
    if (p_.context == 1 || w_.phase == Phase::decode) return {};
    const Model& m = w_.model;
    const double width =
        m.latent ? double(m.latent->kv_rank + m.latent->rope_dim) : 2.0 * double(m.kv_heads * m.head_dim) / p_.tensor;
    return add(Kind::context, c == Collective::allgather ? "keys and values" : "their gradients", c, GroupSet::context,
               tokens_ * p_.context * width, w_.dtype);
  }
  // In decoding caches stay where they are: each context rank attends to its part of them, and what comes of that is
  // added up, with maximum and sum of each head's softmax (tree attention, arXiv 2408.04093, algorithm 3).
  std::optional<std::uint32_t> partial_attention() {
    if (p_.context == 1 || w_.phase != Phase::decode) return {};
    const Model& m = w_.model;
    const double width = double(m.heads) * double((m.latent ? m.latent->value_dim : m.head_dim) + 2) / p_.tensor;
    return add(Kind::context, "partial attention", Collective::allreduce, GroupSet::context, tokens_ * width, w_.dtype);
  }
  // Tokens to their experts and back. Where a token goes to few nodes, to each of these once over the network and from
  // there on inside the node (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
  std::optional<std::uint32_t> expert(bool dispatch) {
    if (p_.expert == 1) return {};
    const Model& m = w_.model;
    const unsigned bytes = dispatch ? w_.dispatch_bytes : size_of(w_.dtype);
    const Dtype dtype = bytes == 1 ? Dtype::u8 : bytes == 2 ? Dtype::bf16 : bytes == 4 ? Dtype::f32 : Dtype::f64;
    const double one = tokens_ / p_.tensor * double(m.hidden) * bytes / size_of(dtype);
    Traffic t{Kind::expert, dispatch ? "tokens to experts" : "tokens from experts", {}};
    const double copies = double(m.experts.top_k);
    // A group with as many ranks on every node as groups_of demands, where it has more than one.
    const Rank nodes = p_.expert / in_node_;
    if (m.experts.nodes_max && p_.expert > in_node_) {
      t.calls.push_back(call(Collective::alltoall, GroupSet::expert_by_rail,
                             one * std::min<double>({double(m.experts.nodes_max), double(nodes), copies}), dtype));
      if (in_node_ > 1) t.calls.push_back(call(Collective::alltoall, GroupSet::expert_in_node, one * copies, dtype));
    } else {
      const bool even = m.experts.load == Distribution::Kind::uniform;
      t.calls.push_back(
          call(even ? Collective::alltoall : Collective::alltoallv, GroupSet::expert, one * copies, dtype));
      t.calls.back().by_load = !even;
    }
    return add(std::move(t));
  }

  LayerProgram layer(bool moe) {
    const Times t = times(moe);
    const auto gather = tensor(Collective::allgather), scatter = tensor(Collective::reduce_scatter),
               reduce = tensor(Collective::allreduce);
    const bool shared_cut = moe && w_.model.experts.shared > 0;
    LayerProgram out;
    Program& f = out.forward;
    communicate(f, context(Collective::allgather));
    communicate(f, gather);
    compute(f, "attention", t.mixing);
    communicate(f, partial_attention());
    communicate(f, scatter);
    communicate(f, reduce);
    if (moe) {
      if (shared_cut) communicate(f, gather), communicate(f, scatter);
      communicate(f, expert(true));
      compute(f, "experts", t.feeding);
      communicate(f, expert(false));
    } else {
      communicate(f, gather);
      compute(f, "feed-forward", t.feeding);
      communicate(f, scatter);
      communicate(f, reduce);
    }
    if (!training()) return out;
    Program& b = out.backward;
    const Compute& c = w_.compute;
    const double twice = c.forward_us ? (*c.forward_us > 0 ? *c.backward_us / *c.forward_us : 0) : 2;
    if (w_.recompute == Recompute::full) {
      b = f;
      if (c.forward_us)
        for (Item& i : b) i.us = 0;  // stated backward times hold it
    }
    // Five products beside the forward pass's two (Dao 2023, arXiv 2307.08691, section 3.1), of which four are twice.
    const double again = w_.recompute == Recompute::selective && !c.forward_us ? t.scores : 0;
    const bool no_forward = c.forward_us && t.mixing + t.feeding == 0;
    const auto backward = [&](double us) { return no_forward ? *c.backward_us / 2 / e_.halves : twice * us; };
    const double mixing = backward(t.mixing), feeding = backward(t.feeding);
    if (moe) {
      communicate(b, expert(true));  // gradients go the way of the tokens
      compute(b, "experts, backward", feeding);
      communicate(b, expert(false));
      if (shared_cut) communicate(b, gather), communicate(b, gather, true), communicate(b, scatter);
    } else {
      communicate(b, gather);
      communicate(b, gather, true);
      compute(b, "feed-forward, backward", feeding);
      communicate(b, scatter);
      communicate(b, reduce);
    }
    communicate(b, gather);
    communicate(b, gather, true);
    communicate(b, context(Collective::allgather));  // no rank keeps those of others
    compute(b, "attention, backward", mixing + again);
    communicate(b, scatter);
    communicate(b, reduce);
    communicate(b, context(Collective::reduce_scatter));
    return out;
  }

  void add_chunk(Count c) {
    ChunkPlan plan;
    plan.first_layer = first_layer(w_, c);
    plan.layers = w_.chunk_layers()[c];
    const auto gather = tensor(Collective::allgather), scatter = tensor(Collective::reduce_scatter),
               reduce = tensor(Collective::allreduce);
    if (c == 0) {
      communicate(plan.embedding.forward, scatter);
      communicate(plan.embedding.forward, reduce);
      if (training()) communicate(plan.embedding.backward, gather);
    }
    if (c + 1 == w_.chunks()) {
      const double parameters = embedding_parameters(w_.model);
      const bool prompt = w_.phase == Phase::prefill;  // of which the last token alone goes on to the output
      const double outputs = prompt ? double(w_.micro_batch) / e_.halves : tokens_;
      const double us =
          w_.compute.forward_us ? 0 : time_us(2 * parameters * outputs / tokens_, parameters * size_of(w_.dtype));
      communicate(plan.head.forward, prompt ? tensor(Collective::allgather, outputs) : gather);
      compute(plan.head.forward, "output", us);
      if (training()) {
        communicate(plan.head.backward, gather, true);  // of the input, of which a rank keeps its part
        compute(plan.head.backward, "output, backward", 2 * us);
        communicate(plan.head.backward, scatter);
        communicate(plan.head.backward, reduce);
      }
    }
    if (training() && p_.zero < 3) {
      const RankParameters own = chunk_parameters(w_, c);
      plan.dense = buckets("weights", own.dense, GroupSet::data, p_.dense_data());
      plan.experts = buckets("experts' weights", own.experts, GroupSet::expert_data, p_.expert_data());
    }
    if (training() && p_.zero == 3 && p_.dense_data() > 1) {
      const bool one = w_.model.tied && w_.chunks() == 1;
      const double embeddings = (c == 0) + (c + 1 == w_.chunks() && !one);
      if (embeddings > 0) {
        const double parameters = embeddings * embedding_parameters(w_.model) / p_.tensor;
        plan.gather_embedding =
            add(Kind::data, "embeddings", Collective::allgather, GroupSet::data, parameters, w_.dtype);
        plan.reduce_embedding = add(Kind::data, "gradients of embeddings", Collective::reduce_scatter, GroupSet::data,
                                    parameters, w_.gradient_dtype);
      }
    }
    e_.chunks.push_back(std::move(plan));
  }

  Buckets buckets(const std::string& what, double parameters, GroupSet groups, Rank ranks) {
    Buckets all;
    if (ranks == 1 || parameters == 0) return all;
    const double bytes = parameters * size_of(w_.gradient_dtype);
    all.number = Count(std::clamp(std::ceil(bytes / double(w_.bucket_bytes)), 1.0, kBucketsMax));
    reductions_ += double(all.number) * (p_.zero == 2 ? double(w_.micro_batches()) : 1);
    if (reductions_ > kReductionsMax)
      w_.where.find("bucket_bytes")
          .value_or(w_.where)
          .fail(
              fmt::format("leads to more than {:.0e} reductions of gradients in a step, which with ZeRO 2 are done for "
                          "each of {} micro-batches; expected larger buckets",
                          kReductionsMax, w_.micro_batches()));
    const double each = parameters / double(all.number);
    const Collective c = p_.zero == 0 ? Collective::allreduce : Collective::reduce_scatter;
    all.reduce = add(Kind::data, "gradients of " + what, c, groups, each, w_.gradient_dtype);
    if (p_.zero > 0) all.gather = add(Kind::data, what, Collective::allgather, groups, each, w_.dtype);
    return all;
  }

  Expansion::Sharded sharded(bool moe) {
    const LayerParameters one = layer_parameters(w_.model, moe);
    Expansion::Sharded s;
    if (p_.dense_data() > 1) {
      s.gather = add(Kind::data, "weights", Collective::allgather, GroupSet::data, one.dense / p_.tensor, w_.dtype);
      s.reduce = add(Kind::data, "gradients of weights", Collective::reduce_scatter, GroupSet::data,
                     one.dense / p_.tensor, w_.gradient_dtype);
    }
    if (moe && p_.expert_data() > 1) {
      s.gather_experts = add(Kind::data, "experts' weights", Collective::allgather, GroupSet::expert_data,
                             one.experts / p_.expert, w_.dtype);
      s.reduce_experts = add(Kind::data, "gradients of experts' weights", Collective::reduce_scatter,
                             GroupSet::expert_data, one.experts / p_.expert, w_.gradient_dtype);
    }
    return s;
  }

  const LlmWorkload& w_;
  const Parallel& p_;
  const Rank in_node_;
  const double imbalance_;
  double tokens_ = 0;      // of a half, on one context rank
  double reductions_ = 0;  // of gradients below ZeRO 3, of all chunks and micro-batches
  Expansion e_;
};

}  // namespace

double sent_bytes(const TrafficCall& call, Rank ranks) {
  const double n = ranks, bytes = double(call.bytes);
  if (call.collective == Collective::allreduce) return 2 * (n - 1) / n * bytes;
  if (call.collective == Collective::sendrecv) return bytes;
  return (n - 1) / n * bytes;
}

Expansion expand(const LlmWorkload& w, Rank ranks_in_node) { return Expander(w, ranks_in_node).expansion(); }

}  // namespace gccl::sim::llm
