#include "sim/llm/arithmetic.hpp"

#include <algorithm>
#include <numeric>

#include "sim/scenario/read/counts.hpp"

namespace gccl::sim::llm {
namespace {

struct Widths {  // of a token's queries, and of its keys and values as they are kept
  double query, key_value;
};
Widths widths(const Model& m) {
  if (m.latent)
    return {double(m.heads * (m.latent->nope_dim + m.latent->rope_dim)),
            double(m.latent->kv_rank + m.latent->rope_dim)};
  return {double(m.heads * m.head_dim), 2.0 * double(m.kv_heads * m.head_dim)};
}

double attention_parameters(const Model& m) {
  const double h = double(m.hidden), heads = double(m.heads);
  if (!m.latent) return h * (2 * heads + 2 * double(m.kv_heads)) * double(m.head_dim);
  const Latent& l = *m.latent;
  const double q = double(l.q_rank) * (h + heads * double(l.nope_dim + l.rope_dim));
  const double kv = h * double(l.kv_rank + l.rope_dim) + double(l.kv_rank) * heads * double(l.nope_dim + l.value_dim);
  return q + kv + heads * double(l.value_dim) * h;
}

double block_parameters(const Model& m, Count ffn) { return (m.gated ? 3.0 : 2.0) * double(m.hidden) * double(ffn); }

// The activations of one feed-forward block of this width: its input, what its matrices leave, a mask.
double block_activation(const Model& m, Count ffn, double each) {
  return each * (double(m.hidden) + (m.gated ? 3.0 : 2.0) * double(ffn));
}

// Of these bytes of a token those that without sequence parallelism are whole on every tensor rank: what lies between
// the blocks.
double between_blocks(const LlmWorkload& w, Recompute recompute) {
  const double each = size_of(w.dtype), h = double(w.model.hidden);
  if (w.parallel.sequence) return 0;
  return recompute == Recompute::full ? each * h : (4 * each + 2) * h;
}

}  // namespace

LayerParameters layer_parameters(const Model& m, bool moe) {
  LayerParameters p;
  p.attention = attention_parameters(m);
  const double norms = 2 * double(m.hidden);
  if (!moe) {
    const double block = block_parameters(m, m.ffn);
    p.dense = p.attention + block + norms;
    p.active = p.attention + block;
    return p;
  }
  const Experts& e = m.experts;
  const double expert = block_parameters(m, e.ffn), router = double(m.hidden) * double(e.count);
  p.dense = p.attention + router + double(e.shared) * expert + norms;
  p.experts = double(e.count) * expert;
  p.active = p.attention + router + double(e.shared + e.top_k) * expert;
  return p;
}

double all_parameters(const Model& m) {
  double sum = embedding_parameters(m) * (m.tied ? 1 : 2) + double(m.hidden);
  for (Count l = 0; l < m.layers; ++l) {
    const LayerParameters p = layer_parameters(m, m.moe(l));
    sum += p.dense + p.experts;
  }
  return sum;
}

double active_parameters(const Model& m) {
  double sum = embedding_parameters(m);
  for (Count l = 0; l < m.layers; ++l) sum += layer_parameters(m, m.moe(l)).active;
  return sum;
}

CoreFlops attention_core_flops(const Model& m, double context, bool causal) {
  const double scores = m.latent ? double(m.latent->nope_dim + m.latent->rope_dim) : double(m.head_dim);
  const double values = m.latent ? double(m.latent->value_dim) : double(m.head_dim);
  const double each = 2 * context * double(m.heads) * (causal ? 0.5 : 1);
  return {each * scores, each * values};
}

double decoded_core_flops(const Model& m, double context) {
  if (!m.latent) return attention_core_flops(m, context, false).sum();
  return 2 * context * double(m.heads) * (2 * double(m.latent->kv_rank) + double(m.latent->rope_dim));
}

double step_flops(const LlmWorkload& w, bool causal) {
  const bool decode = w.phase == Phase::decode;
  const double tokens = double(w.global_batch) * (decode ? 1 : double(w.sequence));
  const double core =
      attention_core_flops(w.model, double(w.sequence), causal && !decode).sum() * double(w.model.layers);
  const double output = 2 * embedding_parameters(w.model), layers = 2 * active_parameters(w.model) - output + core;
  const double outputs = w.phase == Phase::prefill ? double(w.global_batch) : tokens;
  return (tokens * layers + outputs * output) * (w.phase == Phase::training ? 3 : 1);
}

Count first_layer(const LlmWorkload& w, Count chunk) {
  const auto layers = w.chunk_layers();
  return std::accumulate(layers.begin(), layers.begin() + std::ptrdiff_t(chunk), Count(0));
}

RankParameters chunk_parameters(const LlmWorkload& w, Count chunk) {
  const Parallel& p = w.parallel;
  RankParameters all;
  const Count first = first_layer(w, chunk), layers = w.chunk_layers()[chunk];
  for (Count l = first; l < first + layers; ++l) {
    const LayerParameters one = layer_parameters(w.model, w.model.moe(l));
    all.dense += one.dense / p.tensor;
    all.experts += one.experts / p.expert;
  }
  const double embedding = embedding_parameters(w.model) / p.tensor;
  if (chunk == 0) all.dense += embedding;
  if (chunk + 1 == w.chunks() && !(w.model.tied && w.chunks() == 1)) all.dense += embedding;
  return all;
}

RankParameters rank_parameters(const LlmWorkload& w, Rank stage) {
  RankParameters all;
  for (Count c = stage; c < w.chunks(); c += w.parallel.pipeline) {
    const RankParameters one = chunk_parameters(w, c);
    all.dense += one.dense;
    all.experts += one.experts;
  }
  return all;
}

double activation_bytes(const LlmWorkload& w, bool moe, double routed, Recompute recompute) {
  const Model& m = w.model;
  const double h = double(m.hidden), each = size_of(w.dtype);  // a mask has bytes
  if (recompute == Recompute::full) return each * h;
  const Widths width = widths(m);
  const double values = m.latent ? double(m.heads * m.latent->value_dim) : width.query;
  // Input, queries, keys and values, what the core leaves, a mask; 11 h for plain attention of two bytes an element.
  double sum = each * (h + width.query + width.key_value + values) + h;
  if (recompute == Recompute::none) sum += (2 * each + 1) * double(m.heads) * double(w.sequence);
  sum += 2 * each * h;  // two normalisations
  if (!moe) return sum + block_activation(m, m.ffn, each) + h;
  const Experts& e = m.experts;
  return sum + (double(e.top_k) * routed + double(e.shared)) * block_activation(m, e.ffn, each) + h;
}

double layer_cache_bytes(const LlmWorkload& w) {
  const double share = w.model.latent ? 1 : w.parallel.tensor;  // a latent cache is on every tensor rank
  return double(w.micro_batch) * double(w.sequence) / w.parallel.context * widths(w.model).key_value *
         size_of(w.dtype) / share;
}

double load_max(const LlmWorkload& w) {
  const Experts& x = w.model.experts;
  const double ranks = w.parallel.expert, own = double(x.count) / ranks, top_k = double(x.top_k);
  return ranks * std::min(top_k, own) / top_k;
}

double imbalance(const LlmWorkload& w) {
  const Rank ranks = w.parallel.expert;
  const Distribution load{.kind = w.model.experts.load, .seed = {}, .max = load_max(w)};
  if (load.kind == Distribution::Kind::uniform || ranks == 1) return 1;
  constexpr Count kMean = Count(1) << 32;  // so many that rounding is nothing
  const CountTable counts(load, kMean, ranks, false, w.seed);
  const Rank senders = load.kind == Distribution::Kind::random ? ranks : 1;  // else all send alike
  double most = 0;
  for (Rank to = 0; to < ranks; ++to) {
    double sum = 0;
    for (Rank from = 0; from < senders; ++from) sum += double(counts(from, to));
    most = std::max(most, sum);
  }
  return most / senders / double(kMean);
}

Memory memory_of(const LlmWorkload& w, Rank stage) {
  const Parallel& p = w.parallel;
  const RankParameters own = rank_parameters(w, stage);
  const double each = size_of(w.dtype), gradient = size_of(w.gradient_dtype);
  const auto cut = [&](unsigned from, double bytes) {
    if (p.zero < from) return bytes * (own.dense + own.experts);
    return bytes * (own.dense / p.dense_data() + own.experts / p.expert_data());
  };
  Memory all;
  all.weights = w.phase == Phase::training ? cut(3, each) : each * (own.dense + own.experts);
  if (w.phase != Phase::training) {
    double layers = 0;
    for (Count c = stage; c < w.chunks(); c += p.pipeline) layers += double(w.chunk_layers()[c]);
    all.cache = layers * layer_cache_bytes(w);
    return all;
  }
  all.gradients = cut(2, gradient);
  // Two moments, and with shorter weights a copy of them, all at least as long as f32.
  all.optimizer = cut(1, each < 4 ? 12 : 2 * each);
  if (p.zero == 3) {
    // What a single rank has is never cut.
    double layer = 0;  // of those of the stage the one that gathers most
    for (Count c = stage; c < w.chunks(); c += p.pipeline) {
      const Count begin = first_layer(w, c), end = begin + w.chunk_layers()[c];
      for (Count l = begin; l < end; ++l) {
        const LayerParameters one = layer_parameters(w.model, w.model.moe(l));
        layer = std::max(layer, (p.dense_data() > 1 ? one.dense / p.tensor : 0) +
                                    (p.expert_data() > 1 ? one.experts / p.expert : 0));
      }
    }
    const bool first = stage == 0, last = stage + 1 == p.pipeline && !(w.model.tied && w.chunks() == 1);
    all.gathered = layer * (2 * each + gradient);
    if (p.dense_data() > 1)
      all.gathered += embedding_parameters(w.model) / p.tensor * (first + last) * (each + gradient);
  }
  // Micro-batches in flight on this stage, as many for each of its chunks (schedule.cpp).
  const Count m = w.micro_batches();
  const Count ahead =
      p.interleave == 1 ? p.pipeline - stage - 1 : (p.pipeline - stage - 1) * 2 + (p.interleave - 1) * p.pipeline;
  const double in_flight = double(std::min<Count>(ahead + 1, m * p.interleave)) / p.interleave;
  const double routed = w.model.experts.count > 0 ? imbalance(w) : 1;
  const auto kept = [&](Count layer, Recompute recompute) {
    const double whole = between_blocks(w, recompute);
    const double sum = activation_bytes(w, w.model.moe(layer), routed, recompute);
    return (whole + (sum - whole) / p.tensor) * w.tokens();
  };
  for (Count c = stage; c < w.chunks(); c += p.pipeline) {
    const Count first = first_layer(w, c), layers = w.chunk_layers()[c];
    for (Count l = first; l < first + layers; ++l) {
      all.activations += kept(l, w.recompute) * in_flight;
      if (w.recompute == Recompute::full) all.backward = std::max(all.backward, kept(l, Recompute::selective));
    }
  }
  if (stage + 1 == p.pipeline)  // a normalisation's input, the output layer's, and logits in f32
    all.backward += w.tokens() * (2 * each * double(w.model.hidden) / (p.sequence ? p.tensor : 1) +
                                  4 * double(w.model.vocabulary) / p.tensor);
  return all;
}

}  // namespace gccl::sim::llm
