// What a model's layers have, compute and keep: parameters, floating-point operations, memory. docs/parallelism.md
// derives the formulas; none of them knows how a model is cut up but where a function says so.
#pragma once

#include "sim/llm/workload.hpp"

namespace gccl::sim::llm {

// Parameters of one layer. `dense`: all but the routed experts.
struct LayerParameters {
  double attention = 0, dense = 0, experts = 0;
  double active = 0;  // those that a token meets in matrix products
};
LayerParameters layer_parameters(const Model& m, bool moe);
// The parameters of input and output embedding, each vocabulary x hidden.
inline double embedding_parameters(const Model& m) { return double(m.vocabulary) * double(m.hidden); }
double all_parameters(const Model& m);
double active_parameters(const Model& m);  // of a token in matrix products, the output embedding too

// Operations for one token forward; a product of matrices has 2 for each parameter.
struct CoreFlops {  // of attention: scores, and their values
  double scores = 0, values = 0;
  double sum() const { return scores + values; }
};
CoreFlops attention_core_flops(const Model& m, double context, bool causal);
// The same of a decoded token. Latent attention is to the cache as it is, the matrices that would expand it applied to
// query and output instead (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
double decoded_core_flops(const Model& m, double context);
// The operations of a step for all sequences: forward and twice that backward in training (Narayanan et al. 2021,
// appendix). A prompt's output layer is for its last token alone.
double step_flops(const LlmWorkload& w, bool causal);

// Bytes of memory on a card of `stage`, the formulas of ZeRO (Rajbhandari et al. 2020, section 3) and of Korthikanti et
// al. 2022, section 4.
struct Memory {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, cache = 0;
  double gathered = 0;  // ZeRO 3: weights of two layers, gradients of one; weights and gradients of the embeddings
  double backward = 0;  // while one passes: what the output layer keeps, with its logits; a layer recomputed in full
  double sum() const { return weights + gradients + optimizer + activations + cache + gathered + backward; }
};
Memory memory_of(const LlmWorkload& w, Rank stage);
// Bytes of the cache of one layer on a card that has it, outside training.
double layer_cache_bytes(const LlmWorkload& w);
// Dense and expert parameters that a rank of `stage` holds, before ZeRO cuts them.
struct RankParameters {
  double dense = 0, experts = 0;
};
RankParameters rank_parameters(const LlmWorkload& w, Rank stage);
RankParameters chunk_parameters(const LlmWorkload& w, Count chunk);
// Bytes that a token leaves in one layer for its backward pass, on all ranks that share it together, where a rank's
// routed experts have `routed` times the mean of the tokens.
double activation_bytes(const LlmWorkload& w, bool moe, double routed, Recompute recompute);
// How much more than the mean a rank of an expert group can be sent at most: with as many as it may have of each
// token's experts, which are all different ones.
double load_max(const LlmWorkload& w);
// How much more than the mean the rank with the most popular experts is sent: by the counts of its all-to-alls.
double imbalance(const LlmWorkload& w);
Count first_layer(const LlmWorkload& w, Count chunk);

}  // namespace gccl::sim::llm
