#include "sim/llm/workload.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <system_error>

#include "libgccl/base/counted.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/llm/arithmetic.hpp"
#include "sim/llm/chakra.hpp"
#include "sim/scenario/read/placement.hpp"

namespace gccl::sim::llm {
namespace {

constexpr std::string_view kKindNames[] = {"tensor", "context", "expert", "data", "pipeline", "embedding"};
constexpr std::int64_t kCountMax = std::int64_t(1) << 40;
constexpr double kTasksMax = 8e6;

Count count_at(const json::Node& node, std::string_view key, std::int64_t least = 1) {
  return Count(node.at(key).integer(least, kCountMax));
}
void maybe(const json::Node& node, std::string_view key, Count& into, std::int64_t least = 1) {
  if (const auto n = node.find(key)) into = Count(n->integer(least, kCountMax));
}
void maybe(const json::Node& node, std::string_view key, Rank& into, std::int64_t least = 1) {
  if (const auto n = node.find(key)) into = Rank(n->integer(least, kRanksMax));
}
void maybe(const json::Node& node, std::string_view key, bool& into) {
  if (const auto n = node.find(key)) into = n->boolean();
}
void maybe(const json::Node& node, std::string_view key, double& into, double least, double most) {
  if (const auto n = node.find(key)) into = n->number(least, most);
}
// Texts for readers of the file alone.
void check_texts(const json::Node& node, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const auto n = node.find(key)) n->string();
}

Dtype dtype_of(const json::Node& node) {
  const std::string found = node.string();
  if (const auto d = dtype_named(found)) return *d;
  node.fail(fmt::format("found \"{}\"{}", found.substr(0, 60), suggestion(found, dtype_names())));
}

Experts read_experts(const json::Node& node) {
  node.allow({"count", "top_k", "shared", "ffn", "dense_first", "nodes_max", "load"});
  static constexpr std::string_view kLoads[] = {"uniform", "random", "skewed"};
  Experts e;
  e.count = count_at(node, "count", 2);
  e.top_k = count_at(node, "top_k");
  if (e.top_k > e.count) node.at("top_k").fail(fmt::format("found {}, but there are {} experts", e.top_k, e.count));
  e.ffn = count_at(node, "ffn");
  maybe(node, "shared", e.shared, 0);
  maybe(node, "dense_first", e.dense_first, 0);
  maybe(node, "nodes_max", e.nodes_max);
  if (const auto n = node.find("load")) e.load = Distribution::Kind(n->one_of(kLoads));
  if (e.nodes_max && e.load != Distribution::Kind::uniform)
    node.at("load").fail("experts of different popularity cannot be combined with \"nodes_max\"");
  return e;
}

Model read_model(const json::Node& node) {
  node.allow({"name", "layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocabulary", "gated", "tied",
              "latent", "experts", "source"});
  check_texts(node, {"name", "source"});
  Model m;
  m.layers = Count(node.at("layers").integer(1, 100'000));
  m.hidden = count_at(node, "hidden");
  m.heads = count_at(node, "heads");
  m.ffn = count_at(node, "ffn");
  m.vocabulary = count_at(node, "vocabulary");
  m.kv_heads = m.heads;
  maybe(node, "kv_heads", m.kv_heads);
  if (m.heads % m.kv_heads != 0)
    node.at("kv_heads").fail(fmt::format("found {}, expected a divisor of {} heads", m.kv_heads, m.heads));
  m.head_dim = m.hidden / m.heads;
  maybe(node, "head_dim", m.head_dim);
  if (m.head_dim == 0) node.at("heads").fail(fmt::format("found {}, more than hidden dimensions", m.heads));
  if (!node.find("head_dim") && !node.find("latent") && m.hidden % m.heads != 0)
    node.at("heads").fail(
        fmt::format("found {}, expected a divisor of hidden ({}); else state \"head_dim\"", m.heads, m.hidden));
  maybe(node, "gated", m.gated);
  maybe(node, "tied", m.tied);
  if (const auto n = node.find("latent")) {
    n->allow({"q_rank", "kv_rank", "rope_dim", "nope_dim", "value_dim"});
    m.latent = Latent{count_at(*n, "q_rank"), count_at(*n, "kv_rank"), count_at(*n, "rope_dim"),
                      count_at(*n, "nope_dim"), count_at(*n, "value_dim")};
  }
  if (const auto n = node.find("experts")) m.experts = read_experts(*n);
  if (m.experts.dense_first > m.layers)
    node.at("experts")
        .at("dense_first")
        .fail(fmt::format("found {}, but there are {} layers", m.experts.dense_first, m.layers));
  return m;
}

Parallel read_parallel(const json::Node& node) {
  node.allow({"tensor", "context", "data", "pipeline", "expert", "interleave", "zero", "sequence", "source"});
  check_texts(node, {"source"});
  Parallel p;
  maybe(node, "tensor", p.tensor);
  maybe(node, "context", p.context);
  maybe(node, "data", p.data);
  maybe(node, "pipeline", p.pipeline);
  maybe(node, "expert", p.expert);
  if (const auto n = node.find("interleave")) p.interleave = unsigned(n->integer(1, 1024));
  if (const auto n = node.find("zero")) p.zero = unsigned(n->integer(0, 3));
  maybe(node, "sequence", p.sequence);
  double ranks = 1;
  for (const Rank r : {p.tensor, p.context, p.data, p.pipeline}) ranks *= r;
  if (ranks > double(kRanksMax)) node.fail(fmt::format("asks for {:.3g} ranks, expected at most {}", ranks, kRanksMax));
  if (p.interleave > 1 && p.pipeline == 1) node.at("interleave").fail("there is no pipeline to interleave");
  if (p.stage_ranks() % p.expert != 0)
    node.at("expert").fail(fmt::format("found {}, expected a divisor of the {} of a stage (tensor x context x data)",
                                       p.expert, counted(p.stage_ranks(), "rank")));
  return p;
}

Compute read_compute(const json::Node& node, Phase phase) {
  node.allow({"card_TFLOPS", "efficiency", "memory_GBps", "memory_efficiency", "layer_us", "optimizer_us", "source"});
  check_texts(node, {"source"});
  Compute c;
  maybe(node, "card_TFLOPS", c.card_TFLOPS, 1e-3, 1e9);
  maybe(node, "efficiency", c.efficiency, 1e-4, 1);
  maybe(node, "memory_GBps", c.memory_GBps, 1e-3, 1e9);
  maybe(node, "memory_efficiency", c.memory_efficiency, 1e-4, 1);
  if (const auto n = node.find("optimizer_us")) c.optimizer_us = double(n->nanos(1e3)) / 1e3;
  if (const auto n = node.find("layer_us")) {
    n->allow({"forward", "backward"});
    c.forward_us = double(n->at("forward").nanos(1e3)) / 1e3;
    const auto backward = phase == Phase::training ? n->at("backward") : n->find("backward");
    const double us = backward ? double(backward->nanos(1e3)) / 1e3 : 0;
    if (phase == Phase::training) c.backward_us = us;
  } else if (c.card_TFLOPS == 0) {
    node.fail("found neither \"card_TFLOPS\" nor \"layer_us\", expected one of them");
  }
  if (phase == Phase::decode && !c.forward_us && c.memory_GBps == 0)
    node.fail("decoding reads every weight for each token: \"memory_GBps\" is required");
  return c;
}

// One value for all kinds, or an object by kind.
template <class T, class Read>
void by_kind(const json::Node& node, ByKind<T>& into, Read read) {
  if (!node.is_object()) return into.fill(read(node));
  node.allow(kKindNames);
  for (std::size_t k = 0; k < kKinds; ++k)
    if (const auto n = node.find(kKindNames[k])) into[k] = read(*n);
}

void read_batch(const json::Node& node, LlmWorkload& w) {
  node.allow({"sequences", "micro"});
  maybe(node, "micro", w.micro_batch);
  if (const auto n = node.find("sequences"); n && w.phase != Phase::training)
    n->fail("for training alone: prefill and decoding play one micro-batch, whose sequences are \"micro\"");
  w.global_batch = w.phase == Phase::training ? count_at(node, "sequences") : w.micro_batch * w.parallel.data;
  const Count each = w.micro_batch * w.parallel.data;
  if (w.global_batch % each != 0)
    node.at("sequences")
        .fail(fmt::format("found {}, expected a multiple of {}: micro-batches of {} on {} data-parallel "
                          "ranks",
                          w.global_batch, each, w.micro_batch, w.parallel.data));
}

// A communication has at most 2^50 bytes, as in scenarios; what would have more is said of the keys that it comes from.
void check_sizes(const LlmWorkload& w, const json::Node& node) {
  constexpr double kParametersMax = 0x1p47, kActivationsMax = 0x1p49;
  const Model& m = w.model;
  if (const double n = all_parameters(m); n > kParametersMax)
    node.at("model").fail(fmt::format("has {:.3g} parameters, expected at most {:.3g}", n, kParametersMax));
  const double tokens = double(w.micro_batch) * (w.phase == Phase::decode ? 1 : double(w.sequence));
  const double wide = double(std::max(m.hidden, m.heads * m.head_dim)) * double(std::max<Count>(m.experts.top_k, 1));
  if (tokens * wide * 8 > kActivationsMax)
    node.at(w.phase == Phase::decode ? "batch" : "sequence")
        .fail(fmt::format("a micro-batch of {:.3g} tokens has {:.3g} bytes before a block, expected at most {:.3g}",
                          tokens, tokens * wide * 8, kActivationsMax));
}

// What concerns several keys.
void check(const LlmWorkload& w, const json::Node& node) {
  const Parallel& p = w.parallel;
  const json::Node at = node.find("parallel").value_or(node);
  const auto divides = [&](Rank by, std::string_view key, Count what, std::string_view name) {
    if (what % by != 0) at.at(key).fail(fmt::format("found {}, expected a divisor of {} {}", by, what, name));
  };
  if (p.tensor > 1) {
    divides(p.tensor, "tensor", w.model.heads, "heads");
    if (!w.model.latent) divides(p.tensor, "tensor", w.model.kv_heads, "kv_heads");
    divides(p.tensor, "tensor", w.model.ffn, "columns of ffn");
  }
  if (p.context > 1) divides(p.context, "context", w.sequence, "tokens of a sequence");
  if (p.expert > 1) {
    if (w.model.experts.count == 0) at.at("expert").fail("the model has no experts");
    divides(p.expert, "expert", w.model.experts.count, "experts");
  }
  if (w.model.experts.count > 0 && p.tensor > 1 && !p.sequence)
    at.at("tensor").fail(
        fmt::format("found {}: experts are not cut by tensor parallelism, and without sequence "
                    "parallelism (never in decoding) every tensor rank would send all tokens to them",
                    p.tensor));
  if (w.model.experts.count > 0 && p.context > 1 && w.phase == Phase::decode)
    at.at("context").fail(
        fmt::format("found {}: context ranks that decode have all tokens, of which they cut the caches alone, and each "
                    "of them would send all of them to the experts",
                    p.context));
  if (w.chunks() > w.model.layers + 2)  // the first and the last may have the embedding or the output alone
    at.at("pipeline")
        .fail(fmt::format(
            "{} chunks of layers (pipeline x interleave), but there are {} layers; expected at most {}, since the "
            "first and the last may have the embedding or the output alone",
            w.chunks(), w.model.layers, w.model.layers + 2));
  if (p.interleave > 1 && w.phase == Phase::training && w.micro_batches() % p.pipeline != 0)
    at.at("interleave")
        .fail(fmt::format("{} micro-batches cannot be interleaved on {} stages: not a multiple of them",
                          w.micro_batches(), p.pipeline));
  if (w.phase != Phase::training && p.interleave > 1) at.at("interleave").fail("for training alone");
  if (w.phase != Phase::training && p.zero > 0)
    at.at("zero").fail(fmt::format("found {}; ZeRO is for training alone", p.zero));
  if (w.phase != Phase::training && w.recompute != Recompute::none)
    node.at("recompute").fail("for training alone: without a backward pass nothing is computed again");
  check_sizes(w, node);
  for (const auto& [kind, ranks] :
       {std::pair(Kind::tensor, p.tensor), {Kind::context, p.context}, {Kind::expert, p.expert}})
    if (w.overlap[std::size_t(kind)] && ranks > 1 && w.tokens() < 2)
      node.at("overlap").fail(
          fmt::format("found true for {}: the micro-batch is computed by halves then, and a rank has {} of it",
                      name(kind), counted(Count(w.tokens()), "token")));
  const double tasks = double(w.micro_batches()) * double(w.model.layers) * 30;
  if (tasks > kTasksMax)
    node.at("batch").fail(fmt::format("{} micro-batches through {} layers are about {:.2g} tasks, more than {:.0g}",
                                      w.micro_batches(), w.model.layers, tasks, kTasksMax));
}

}  // namespace

std::span<const std::string_view> kind_names() { return kKindNames; }

std::vector<Count> LlmWorkload::chunk_layers() const {
  const Count n = chunks(), each = (model.layers + n - 1) / n;
  std::vector<Count> all(n, each);
  Count first = 0, last = n - 1;
  for (Count missing = each * n - model.layers, i = 0; i < missing; ++i) --all[i % 2 ? first++ : last--];
  return all;
}

double LlmWorkload::tokens() const {
  const double sequences = double(micro_batch);
  return phase == Phase::decode ? sequences : sequences * double(sequence) / parallel.context;
}

double LlmWorkload::own_tokens() const { return parallel.sequence ? tokens() / parallel.tensor : tokens(); }

namespace {

// As many data ranks as there are traces.
void read_chakra_keys(const json::Node& node, LlmWorkload& w) {
  const json::Node c = node.at("chakra");
  c.allow({"prefix", "communicators"});
  ChakraTraces t{.prefix = c.at("prefix").path(), .communicators = {}};
  if (const auto n = c.find("communicators")) {
    t.communicators = n->path();
    std::error_code error;
    if (!std::filesystem::exists(*t.communicators, error))
      n->fail(fmt::format("there is no file {}", t.communicators->string()));
  }
  w.phase = Phase::prefill;
  w.parallel.data = chakra_ranks(t.prefix);
  w.global_batch = w.parallel.data;
  const auto beyond = chakra_beyond(t.prefix, w.parallel.data);
  if (w.parallel.data == 0 || beyond)
    c.at("prefix").fail(fmt::format("there is no {}{}", chakra_file(t.prefix, w.parallel.data).string(),
                                    beyond ? ", but a " + beyond->string() : ""));
  if (const auto n = node.find("compute")) {
    n->allow({"card_TFLOPS", "efficiency", "memory_GBps", "memory_efficiency", "source"});
    check_texts(*n, {"source"});
    maybe(*n, "card_TFLOPS", w.compute.card_TFLOPS, 1e-3, 1e9);
    maybe(*n, "efficiency", w.compute.efficiency, 1e-4, 1);
    maybe(*n, "memory_GBps", w.compute.memory_GBps, 1e-3, 1e9);
    maybe(*n, "memory_efficiency", w.compute.memory_efficiency, 1e-4, 1);
  }
  w.chakra = std::move(t);
}

void read_model_keys(const json::Node& node, LlmWorkload& w) {
  static constexpr std::string_view kPhases[] = {"training", "prefill", "decode"};
  static constexpr std::string_view kRecompute[] = {"none", "selective", "full"};
  if (const auto n = node.find("phase")) w.phase = Phase(n->one_of(kPhases));
  w.model = read_model(node.at("model"));
  w.parallel = node.has("parallel") ? read_parallel(node.at("parallel")) : Parallel{};
  if (w.phase == Phase::decode) w.parallel.sequence = false;  // one token for each sequence: nothing to cut
  w.sequence = Count(node.at("sequence").integer(1, 1ll << 32));
  read_batch(node.at("batch"), w);
  if (const auto n = node.find("bucket_bytes")) w.bucket_bytes = n->bytes();
  if (w.bucket_bytes < 1024) node.at("bucket_bytes").fail("expected at least 1024 bytes");
  if (const auto n = node.find("dtype")) w.dtype = dtype_of(*n);
  if (const auto n = node.find("gradient_dtype")) w.gradient_dtype = dtype_of(*n);
  w.dispatch_bytes = size_of(w.dtype);
  if (const auto n = node.find("dispatch_bytes")) w.dispatch_bytes = unsigned(n->integer(1, 8));
  if (const auto n = node.find("recompute")) w.recompute = Recompute(n->one_of(kRecompute));
  w.compute = read_compute(node.at("compute"), w.phase);
  maybe(node, "memory_GB", w.memory_GB, 1e-3, 1e9);
  w.overlap[std::size_t(Kind::data)] = w.overlap[std::size_t(Kind::pipeline)] = true;
  if (const auto n = node.find("overlap")) by_kind(*n, w.overlap, [](const json::Node& x) { return x.boolean(); });
}

// How calls are planned and played, as in scenarios.
void read_playing_keys(const json::Node& node, LlmWorkload& w) {
  if (const auto n = node.find("sm_share"))
    by_kind(*n, w.sm_share, [](const json::Node& x) { return x.number(0, 0.95); });
  if (const auto n = node.find("engine")) {
    w.engine = Engine(n->one_of(engine_names()));
    if (plays_ranks(w.engine))
      n->fail(
          fmt::format("found \"{}\", which is for scenarios; expected one of model, flow, simgrid", name(w.engine)));
  }
  if (const auto n = node.find("planner")) w.planner = PlannerKind(n->one_of(kPlanners));
  if (const auto n = node.find("algorithms"))
    for (const auto& [key, value] : n->members()) {
      const auto names = collective_names();
      const auto at = std::find(names.begin(), names.end(), key);
      if (at == names.end()) n->fail(fmt::format("found \"{}\"{}", key.substr(0, 60), suggestion(key, names)));
      const Collective kind = Collective(at - names.begin());
      const std::string found = value.string();
      std::vector<std::string_view> known{"auto"};
      for (const Algorithm& a : gccl::algorithms())
        if (a.kind == kind) known.push_back(a.name);
      if (found == "auto") continue;
      const Algorithm* const a = find_algorithm(kind, found);
      if (!a)
        value.fail(fmt::format("{} has no algorithm \"{}\"{}", key, found.substr(0, 60), suggestion(found, known)));
      w.algorithms[kind] = a;
    }
  if (const auto n = node.find("placement")) w.placement = read_placement(*n);
  if (const auto n = node.find("seed")) w.seed = std::uint64_t(n->integer(0, INT64_MAX));
  if (const auto n = node.find("expect")) {
    n->allow({"max_step_us", "min_step_us", "min_mfu_percent", "max_mfu_percent", "max_exposed_percent",
              "max_bubble_percent"});
    for (const auto& [key, value] : n->members()) {
      if (key.ends_with("_us"))
        value.nanos(1e3);
      else
        value.number(0, 1e18);
      if (key.ends_with("mfu_percent") && w.compute.card_TFLOPS == 0)
        value.fail("without \"card_TFLOPS\" there is no MFU");
      if (key.ends_with("mfu_percent") && w.chakra) value.fail("traces do not say what a model needs: there is no MFU");
      w.expectations.emplace_back(key, value);
    }
  }
}

}  // namespace

LlmWorkload read_workload(const std::filesystem::path& file) { return read_workload(json::Node::load(file)); }

LlmWorkload read_workload(const json::Node& node) {
  node.schema("gccl/workload/1");
  if (node.has("chakra"))
    node.allow({"$schema", "schema", "name", "description", "sources", "cluster", "chakra", "compute", "engine",
                "planner", "algorithms", "placement", "seed", "expect"});
  else
    node.allow({"$schema", "schema",         "name",           "description", "sources",    "cluster",
                "phase",   "model",          "parallel",       "sequence",    "batch",      "bucket_bytes",
                "dtype",   "gradient_dtype", "dispatch_bytes", "recompute",   "compute",    "memory_GB",
                "overlap", "sm_share",       "engine",         "planner",     "algorithms", "placement",
                "seed",    "expect"});
  LlmWorkload w{.where = node,
                .name = node.at("name").string(),
                .description = {},
                .cluster = {},
                .chakra = {},
                .model = {},
                .parallel = {},
                .compute = {},
                .algorithms = {},
                .placement = {},
                .expectations = {}};
  if (const auto n = node.find("description")) w.description = n->string();
  if (const auto n = node.find("sources"))
    for (const auto& [pointer, text] : n->members()) text.string();
  w.cluster = cluster_file(node.at("cluster"));
  if (node.has("chakra"))
    read_chakra_keys(node, w);
  else
    read_model_keys(node, w);
  read_playing_keys(node, w);
  if (!w.chakra) check(w, node);
  return w;
}

std::vector<std::filesystem::path> files_of_workload(const LlmWorkload& w) {
  std::vector<std::filesystem::path> all = files_of_cluster(w.cluster);
  all.push_back(w.where.file());
  if (!w.chakra) return all;
  for (Rank r = 0; r < w.parallel.ranks(); ++r) all.push_back(chakra_file(w.chakra->prefix, r));
  if (w.chakra->communicators) all.push_back(*w.chakra->communicators);
  return all;
}

}  // namespace gccl::sim::llm
