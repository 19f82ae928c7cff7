// A step of an LLM as a workload: "gccl/workload/1" (docs/parallelism.md) once its mistakes are ruled out. What the
// step communicates is expansion.hpp's, when it does so is schedule.hpp's.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/elements/dtype.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/select/others/other_planners.hpp"
#include "sim/scenario/description/scenario.hpp"

namespace gccl::sim::llm {

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): ranks of the compressed queries and of keys
// and values, and the dimensions of a head: with position, without, of values.
struct Latent {
  Count q_rank = 0, kv_rank = 0, rope_dim = 0, nope_dim = 0, value_dim = 0;
  bool operator==(const Latent&) const = default;
};

struct Experts {
  Count count = 0;  // routed, per layer; 0: a dense model
  Count top_k = 0;  // routed experts of a token
  Count shared = 0;
  Count ffn = 0;          // of each expert
  Count dense_first = 0;  // so many layers at the beginning are dense
  Rank nodes_max = 0;     // a token goes to experts on at most so many nodes, and to each of these once; 0: no limit
  Distribution::Kind load = Distribution::Kind::uniform;  // how popular the ranks' experts are
};

struct Model {
  Count layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;
  bool gated = true;  // three matrices in a feed-forward block rather than two
  bool tied = false;  // input and output share the embedding
  std::optional<Latent> latent;
  Experts experts;

  bool moe(Count layer) const { return experts.count > 0 && layer >= experts.dense_first; }
};

// What a step is cut up by. Ranks are numbered as Megatron does: tensor fastest, then context, data, pipeline; expert
// groups are consecutive ranks of a stage (layout.hpp).
struct Parallel {
  Rank tensor = 1, context = 1, data = 1, pipeline = 1, expert = 1;
  unsigned interleave = 1;  // chunks of layers on each stage (Narayanan et al. 2021, section 2.2)
  unsigned zero = 0;        // stage of ZeRO; 3 is FSDP
  bool sequence = true;     // tensor parallelism with sequence parallelism (Korthikanti et al. 2022)

  Rank stage_ranks() const { return tensor * context * data; }
  Rank ranks() const { return stage_ranks() * pipeline; }
  Rank expert_data() const { return stage_ranks() / expert; }
  Rank dense_data() const { return data * context; }  // ranks with the same dense weights
};

enum class Phase : std::uint8_t { training, prefill, decode };
enum class Recompute : std::uint8_t { none, selective, full };

// What a card does by itself.
struct Compute {
  double card_TFLOPS = 0;                         // peak of the data type; 0: times are given
  double efficiency = 1;                          // what matrix products reach of it
  double memory_GBps = 0;                         // for decoding
  double memory_efficiency = 1;                   // what reading weights reaches of it
  std::optional<double> forward_us, backward_us;  // of a layer, for a micro-batch, on each rank
  double optimizer_us = 0;
};

// Kinds of traffic; each has a communicator of its own on every rank.
enum class Kind : std::uint8_t { tensor, context, expert, data, pipeline, embedding };
constexpr std::size_t kKinds = 6;
std::span<const std::string_view> kind_names();
inline std::string_view name(Kind k) { return kind_names()[std::size_t(k)]; }
template <class T>
using ByKind = std::array<T, kKinds>;

// A step that was recorded: PREFIX.RANK.et (chakra.hpp), and which ranks each communicator has.
struct ChakraTraces {
  std::filesystem::path prefix;
  std::optional<std::filesystem::path> communicators;
};

struct LlmWorkload {
  json::Node where;
  std::string name, description;
  std::filesystem::path cluster;       // its file
  std::optional<ChakraTraces> chakra;  // then of what follows only what says how ranks are placed and calls played
  Phase phase{};
  Model model;
  Parallel parallel;
  Count sequence = 0;                       // tokens of a sequence; in decode those that its cache holds
  Count global_batch = 0, micro_batch = 1;  // sequences
  Count bucket_bytes = Count(100) << 20;    // of gradients
  Dtype dtype = Dtype::bf16, gradient_dtype = Dtype::f32;
  unsigned dispatch_bytes = 0;  // of an element that is sent to experts; 0: as dtype
  Recompute recompute{};
  Compute compute;
  double memory_GB = 0;  // of a card; 0: not stated
  ByKind<bool> overlap{};
  ByKind<double> sm_share{};  // of a card's processors that a communication in flight occupies
  Engine engine = Engine::flow;
  PlannerKind planner{};
  std::map<Collective, const Algorithm*> algorithms;  // absent: the planner's
  Placement placement;
  std::uint64_t seed = 1;
  std::vector<std::pair<std::string, json::Node>> expectations;  // by key, see step.hpp

  Count micro_batches() const { return phase == Phase::training ? global_batch / parallel.data / micro_batch : 1; }
  // Chunks of layers in the order in which a token meets them: chunk c is on stage c % pipeline.
  Count chunks() const { return Count(parallel.pipeline) * parallel.interleave; }
  // Layers of each chunk: as many in each as fit; where that is too many the last chunk has one less, then the first,
  // the last but one, ... (Llama 3 takes one off the first and one off the last of its 16 stages).
  std::vector<Count> chunk_layers() const;
  // Tokens of a micro-batch that one rank has, before experts: those of its context rank.
  double tokens() const;
  // As a card sees them between the blocks: cut by sequence parallelism, too.
  double own_tokens() const;
};

// Throws json::InputError.
LlmWorkload read_workload(const json::Node& node);
LlmWorkload read_workload(const std::filesystem::path& file);

// Every file that its step is read from: its own, its cluster's and those that this names, traces, communicators.
std::vector<std::filesystem::path> files_of_workload(const LlmWorkload& w);

}  // namespace gccl::sim::llm
