// What a step sends, computes and keeps, against the closed forms of docs/parallelism.md, which are the papers'.
#include <cmath>
#include <tuple>

#include "tests/llm/llm_support.hpp"

using namespace gccl;
using namespace gccl::sim::llm;
using namespace gccl::test;
using doctest::Approx;

namespace {

double sent(const nlohmann::json& document, Kind kind, Rank stage = 0) {
  return sent_by(workload_of(document), stage)[std::size_t(kind)];
}
constexpr double kH = 1024, kS = 512, kL = 8, kV = 8192;
constexpr double kPsi = kL * (12 * kH * kH + 2 * kH) + 2 * kV * kH;  // parameters

}  // namespace

TEST_CASE("tensor parallelism sends four all-reduces of b s h for each layer, as Korthikanti et al. count") {
  for (const double t : {2., 8.}) {
    const auto at = [&](const char* sequence) {
      return patched(patched(plain_workload(), sequence),
                     fmt::format(R"({{"parallel": {{"tensor": {}}}}})", t).c_str());
    };
    const double reduce = 2 * (t - 1) / t * kS * kH * 2;  // of one micro-batch, a ring's
    const double batches = 16;
    // Without sequence parallelism the embedding's and the output's all-reduce, forward and backward, come to it.
    CHECK(sent(at(R"({"parallel": {"sequence": false}})"), Kind::tensor) == Approx(batches * (kL * 4 + 2) * reduce));
    // With it as much, in halves of all-gather and reduce-scatter, and gathers for the weights' gradients: two of a
    // layer, one of the output.
    CHECK(sent(at("{}"), Kind::tensor) == Approx(batches * (kL * (4 + 2 * 0.5) + 4 * 0.5 + 0.5) * reduce));
    CHECK(sent(at(R"({"recompute": "full"})"), Kind::tensor) ==
          Approx(batches * (kL * (6 + 2 * 0.5) + 4 * 0.5 + 0.5) * reduce));
  }
}

TEST_CASE("shared experts are cut by tensor parallelism as other blocks are, and gather their inputs again, too") {
  const double t = 4, gather = (t - 1) / t * kS * kH * 2, batches = 16;
  const auto at = [&](const char* experts) {
    return sent(patched(patched(plain_workload(), R"({"parallel": {"tensor": 4}})"), experts), Kind::tensor);
  };
  const double blocks = kL * 2, ends = 5;
  CHECK(at(R"({"model": {"experts": {"count": 8, "top_k": 2, "ffn": 512, "shared": 1}}})") ==
        Approx(batches * (blocks * 5 + ends) * gather));
  // Others are not cut: their layers communicate for their attention alone.
  CHECK(at(R"({"model": {"experts": {"count": 8, "top_k": 2, "ffn": 512, "dense_first": 3}}})") ==
        Approx(batches * ((3 + kL) * 5 + ends) * gather));
}

TEST_CASE("data parallelism sends 2 Psi for each step up to ZeRO 1, 3 Psi a micro-batch with ZeRO 3") {
  for (const double d : {2., 16.}) {
    const double m = 16 / d, ring = (d - 1) / d * kPsi * 2;
    const auto at = [&](int zero, const char* bucket) {
      return sent(
          patched(plain_workload(),
                  fmt::format(R"({{"parallel": {{"data": {}, "zero": {}}}, "bucket_bytes": "{}"}})", d, zero, bucket)
                      .c_str()),
          Kind::data);
    };
    for (const char* bucket : {"1MiB", "40MiB", "10GiB"}) {
      CHECK(at(0, bucket) == Approx(2 * ring).epsilon(1e-6));
      CHECK(at(1, bucket) == Approx(2 * ring).epsilon(1e-6));
      CHECK(at(2, bucket) == Approx((m + 1) * ring).epsilon(1e-6));  // gradients of each micro-batch
    }
    // The embeddings stay gathered between forward and backward.
    CHECK(at(3, "40MiB") == Approx(m * (3 * ring - ring * 2 * kV * kH / kPsi)).epsilon(1e-6));
  }
}

TEST_CASE("a pipeline sends b s h forward and as much back for each micro-batch, over tensor ranks a part each") {
  const auto at = [&](const char* parallel, Rank stage) {
    return sent(patched(plain_workload(), parallel), Kind::pipeline, stage);
  };
  const double one = kS * kH * 2;
  CHECK(at(R"({"parallel": {"pipeline": 4}})", 0) == Approx(16 * one));
  CHECK(at(R"({"parallel": {"pipeline": 4}})", 1) == Approx(16 * 2 * one));
  CHECK(at(R"({"parallel": {"pipeline": 4}})", 3) == Approx(16 * one));
  CHECK(at(R"({"parallel": {"pipeline": 4, "tensor": 8}})", 1) == Approx(16 * 2 * one / 8));
  // Interleaved: v times as much (Narayanan et al. 2021, section 2.2.2); the two ends of the model send once less.
  CHECK(at(R"({"parallel": {"pipeline": 4, "interleave": 2}})", 1) == Approx(16 * 4 * one));
  CHECK(at(R"({"parallel": {"pipeline": 4, "interleave": 2}})", 0) == Approx(16 * 3 * one));
}

TEST_CASE("experts are sent four all-to-alls of top-k tokens for each layer, fewer where a token goes to few nodes") {
  const char* moe = R"({"model": {"experts": {"count": 64, "top_k": 8, "ffn": 512, "shared": 1, "dense_first": 2}},
                        "parallel": {"data": 16, "expert": 16}})";
  const double layers = kL - 2, token = kH * 2;
  CHECK(sent(patched(plain_workload(), moe), Kind::expert) == Approx(layers * 4 * 15. / 16 * kS * 8 * token));
  // Dispatch and its like in the backward pass with one byte an element, combine with two.
  CHECK(sent(patched(patched(plain_workload(), moe), R"({"dispatch_bytes": 1})"), Kind::expert) ==
        Approx(layers * (2 + 2 * 0.5) * 15. / 16 * kS * 8 * token));
  // On two nodes of 8, each token once to each: 1/2 of that over the network, 7/8 of top-k inside a node.
  CHECK(sent(patched(patched(plain_workload(), moe), R"({"model": {"experts": {"nodes_max": 2}}})"), Kind::expert) ==
        Approx(layers * 4 * kS * token * (2 * 1. / 2 + 8 * 7. / 8)));
  // Experts' gradients go to the ranks with the same experts: none here, all of a stage's experts on each rank else.
  const double dense = (kL * (4 * kH * kH + 2 * kH) + 2 * 8 * kH * kH + 6 * (64 * kH + 2 * kH * 512) + 2 * kV * kH) * 2;
  CHECK(sent(patched(plain_workload(), moe), Kind::data) == Approx(2 * 15. / 16 * dense).epsilon(1e-6));
  const double experts = 6 * 64 * 2 * kH * 512 * 2;
  CHECK(sent(patched(patched(plain_workload(), moe), R"({"parallel": {"expert": 1}})"), Kind::data) ==
        Approx(2 * 15. / 16 * (dense + experts)).epsilon(1e-6));
}

TEST_CASE("context parallelism gathers keys and values forward and backward, and scatters their gradients") {
  const char* grouped = R"({"model": {"kv_heads": 4}, "parallel": {"context": 4, "tensor": 2}})";
  const double kv = 2 * 4 * 64;  // two of four heads of 64
  CHECK(sent(patched(plain_workload(), grouped), Kind::context) == Approx(16 * kL * 3 * 3. / 4 * kS * kv / 2 * 2));
  CHECK(sent(patched(patched(plain_workload(), grouped), R"({"recompute": "full"})"), Kind::context) ==
        Approx(16 * kL * 4 * 3. / 4 * kS * kv / 2 * 2));
}

TEST_CASE(
    "operations are those of Narayanan et al. 2021, section 5.1, and parameters those that models are named for") {
  const LlmWorkload w = workload_of(plain_workload());
  const double B = 16;
  CHECK(step_flops(w, false) == Approx(72 * B * kS * kL * kH * kH * (1 + kS / (6 * kH) + kV / (12 * kL * kH))));
  CHECK(all_parameters(w.model) == Approx(kPsi + kH));
  const LlmWorkload llama =
      workload_of(patched(plain_workload(), R"({"model": {"layers": 126, "hidden": 16384, "ffn": 53248,
    "heads": 128, "kv_heads": 8, "vocabulary": 128256, "gated": true}})"));
  CHECK(all_parameters(llama.model) == Approx(405.85e9).epsilon(0.001));  // "405B"
  const LlmWorkload deepseek =
      workload_of(patched(plain_workload(), R"({"model": {"layers": 61, "hidden": 7168, "ffn": 18432,
    "heads": 128, "vocabulary": 129280, "gated": true,
    "latent": {"q_rank": 1536, "kv_rank": 512, "rope_dim": 64, "nope_dim": 128, "value_dim": 128},
    "experts": {"count": 256, "top_k": 8, "shared": 1, "ffn": 2048, "dense_first": 3}}})"));
  CHECK(all_parameters(deepseek.model) == Approx(671e9).epsilon(0.002));  // arXiv 2412.19437
  CHECK(active_parameters(deepseek.model) == Approx(37e9).epsilon(0.02));
}

TEST_CASE("activations are those of Korthikanti et al. 2022, table 2") {
  const auto bytes = [&](const char* patch) {
    const LlmWorkload w = workload_of(patched(plain_workload(), patch));
    return memory_of(w, 0).activations / (kL * kS);  // of a token in a layer
  };
  const double a = 16;
  CHECK(bytes("{}") == Approx(34 * kH + 5 * a * kS));
  CHECK(bytes(R"({"parallel": {"tensor": 4}})") == Approx((34 * kH + 5 * a * kS) / 4));
  CHECK(bytes(R"({"parallel": {"tensor": 4, "sequence": false}})") == Approx(10 * kH + (24 * kH + 5 * a * kS) / 4));
  CHECK(bytes(R"({"parallel": {"tensor": 4}, "recompute": "selective"})") == Approx(34 * kH / 4));
  CHECK(bytes(R"({"recompute": "full"})") == Approx(2 * kH));
  // Of 34 h two are masks, the rest elements: 16 h and 2 a s of them, of any type.
  CHECK(bytes(R"({"dtype": "f32"})") == Approx((4 * 16 + 2) * kH + (4 * 2 + 1) * a * kS));
  // The first stage holds p micro-batches of L/p layers; interleaved (1 + (p-1)/(pv)) as much (section 4.2.3).
  CHECK(bytes(R"({"parallel": {"pipeline": 4}})") == Approx(34 * kH + 5 * a * kS));
  CHECK(bytes(R"({"parallel": {"pipeline": 4, "interleave": 2}})") == Approx((34 * kH + 5 * a * kS) * (1 + 3. / 8)));
}

TEST_CASE("a backward pass has the logits in f32 on the last stage, and the layer that it computes again") {
  const auto bytes = [&](const char* patch, Rank stage = 0) {
    return memory_of(workload_of(patched(plain_workload(), patch)), stage).backward / kS;  // of a token
  };
  CHECK(bytes("{}") == Approx(4 * kH + 4 * kV));  // Korthikanti et al. 2022, section 4.3
  CHECK(bytes(R"({"parallel": {"tensor": 4}})") == Approx((4 * kH + 4 * kV) / 4));
  CHECK(bytes(R"({"parallel": {"tensor": 4, "sequence": false}})") == Approx(4 * kH + 4 * kV / 4));
  CHECK(bytes(R"({"parallel": {"pipeline": 4}})") == 0);
  CHECK(bytes(R"({"parallel": {"pipeline": 4}})", 3) == Approx(4 * kH + 4 * kV));
  CHECK(bytes(R"({"parallel": {"pipeline": 4}, "recompute": "full"})") == Approx(34 * kH));
  CHECK(bytes(R"({"phase": "prefill", "batch": {"sequences": null}})") == 0);
}

TEST_CASE("weights, gradients and the optimiser's state are ZeRO's 2 + 2 + 12 bytes, cut by its stages") {
  const auto bytes = [&](int zero) {
    const Memory m =
        memory_of(workload_of(patched(plain_workload(),
                                      fmt::format(R"({{"parallel": {{"data": 16, "zero": {}}}}})", zero).c_str())),
                  0);
    return (m.weights + m.gradients + m.optimizer) / kPsi;
  };
  CHECK(bytes(0) == Approx(16));
  CHECK(bytes(1) == Approx(4 + 12. / 16));
  CHECK(bytes(2) == Approx(2 + 14. / 16));
  CHECK(bytes(3) == Approx(16. / 16));
  const Memory f32 = memory_of(workload_of(patched(plain_workload(), R"({"dtype": "f32"})")), 0);
  CHECK(f32.optimizer == Approx(8 * kPsi));  // no copy of the weights
}

TEST_CASE(
    "ZeRO 3 gathers two layers' weights and the embeddings of a stage, and sums what is as long, but nothing that one "
    "rank has alone") {
  const auto bytes = [&](const char* patch) {
    return memory_of(workload_of(patched(patched(plain_workload(), R"({"parallel": {"data": 16, "zero": 3}})"), patch)),
                     0)
        .gathered;
  };
  const double layer = 12 * kH * kH + 2 * kH, embedding = kV * kH;
  CHECK(bytes("{}") == Approx(layer * (2 * 2 + 2) + 2 * embedding * (2 + 2)));
  CHECK(bytes(R"({"model": {"tied": true}})") == Approx(layer * (2 * 2 + 2) + embedding * (2 + 2)));
  CHECK(bytes(R"({"parallel": {"pipeline": 2}})") == Approx(layer * (2 * 2 + 2) + embedding * (2 + 2)));
  CHECK(bytes(R"({"parallel": {"data": 1}})") == 0);
  // Each expert is on one rank: of a layer attention, router and normalisations are gathered.
  const double dense = 4 * kH * kH + 64 * kH + 2 * kH;
  CHECK(bytes(R"({"model": {"experts": {"count": 64, "top_k": 8, "ffn": 512}}, "parallel": {"expert": 16}})") ==
        Approx(dense * (2 * 2 + 2) + 2 * embedding * (2 + 2)));
  // Of layers that differ it is those that gather most, as far as the stage has them.
  const double routed = 64 * 2. * kH * 512;
  for (const auto& [patch, most, embeddings] :
       {std::tuple(R"({"model": {"experts": {"dense_first": 1}}, "parallel": {"expert": 16}})", layer, 2),
        {R"({"model": {"experts": {"dense_first": 1}}})", dense + routed, 2},
        {R"({"model": {"experts": {"dense_first": 4}}, "parallel": {"pipeline": 2}})", layer, 1}}) {
    const nlohmann::json experts = {{"model", {{"experts", {{"count", 64}, {"top_k", 8}, {"ffn", 512}}}}}};
    CHECK(bytes(patched(experts, patch).dump().c_str()) ==
          Approx(most * (2 * 2 + 2) + embeddings * embedding * (2 + 2)));
  }
}

namespace {

// Four sequences of which each card decodes a token, by memory of 100 GB/s alone.
LlmWorkload decoding(const std::string& patch) {
  return workload_of(patched(patched(plain_workload(), R"({"phase": "decode", "model": {"layers": 6},
    "batch": {"sequences": null, "micro": 4}, "compute": {"layer_us": null, "card_TFLOPS": 1e6, "memory_GBps": 100}})"),
                             patch.c_str()));
}
double us_of(const std::vector<Item>& p) {
  double us = 0;
  for (const Item& i : p) us += i.us;
  return us;
}

}  // namespace

TEST_CASE("a decoded layer reads its weights and its cache, whatever the first stage has") {
  const double weights = 2 * 12 * kH * kH, cache = 2 * 4 * kS * 2 * kH;  // keys and values of four sequences
  for (const int pipeline : {1, 7, 8}) {
    const LlmWorkload w = decoding(fmt::format(R"({{"parallel": {{"pipeline": {}}}}})", pipeline));
    CHECK(us_of(expand(w, 8).dense.forward) == Approx((weights + cache) / 100e3));
  }
  // Two halves of the sequences read the weights twice, and each its own caches.
  const LlmWorkload halved = decoding(R"({"parallel": {"tensor": 2}, "overlap": true})");
  CHECK(2 * us_of(expand(halved, 8).dense.forward) == Approx((2 * weights + cache) / 2 / 100e3));
}

TEST_CASE("a decoded layer of experts reads its router, its shared experts, and those that tokens are sent to") {
  const double expert = 2 * kH * 512, attention = 4 * kH * kH, cache = 4 * kS * 2 * kH;
  const auto at = [](const char* shared, const char* overlap = "false") {
    return us_of(expand(decoding(fmt::format(R"({{"model": {{"experts":
      {{"count": 32, "top_k": 8, "ffn": 512, "shared": {}}}}}, "parallel": {{"data": 4, "expert": 4}},
      "overlap": {}}})",
                                             shared, overlap)),
                        8)
                     .moe.forward);
  };
  // Of the eight experts on a card those that one of 16 tokens chooses, each of them with probability 8 / 32.
  const auto chosen = [](int tokens) { return 8 * (1 - std::pow(0.75, tokens)); };
  CHECK(at("3") == Approx(2 * (attention + cache + 32 * kH + (3 + chosen(16)) * expert) / 100e3));
  CHECK(at("3") - at("1") == Approx(2 * 2 * expert / 100e3));
  CHECK(2 * at("3", R"({"expert": true})") ==
        Approx(2 * (2 * (attention + 32 * kH + (3 + chosen(8)) * expert) + cache) / 100e3));
}

TEST_CASE("context ranks that decode attend to a part of the cache each, and add up what comes of it") {
  const LlmWorkload w = decoding(R"({"model": {"kv_heads": 4}, "parallel": {"context": 4, "tensor": 2}})");
  const double kv = 2 * 4 * 64, weights = (2 * 16 + 2 * 4) * 64 * kH + 8 * kH * kH;
  CHECK(us_of(expand(w, 8).dense.forward) == Approx(2 * (weights + 4 * kS / 4 * kv) / 2 / 100e3));
  // For each sequence and head an output of 64, the softmax's maximum and its sum; by a ring.
  CHECK(sent_by(w, 0)[std::size_t(Kind::context)] == Approx(6 * 2 * 3. / 4 * 4 * 16 * (64 + 2) / 2 * 2));
  // By operations alone: 4 s heads (head size) for each token, over a part of the cache, beside the products.
  const LlmWorkload computing =
      decoding(R"({"parallel": {"context": 4}, "compute": {"card_TFLOPS": 1, "memory_GBps": 1e9}})");
  CHECK(us_of(expand(computing, 8).dense.forward) == Approx(4 * (24 * kH * kH + 4 * kS / 4 * kH) / 1e6));
}

TEST_CASE("a decoded token attends to a latent cache as it is, by DeepSeek-V2's absorbed products") {
  const char* latent = R"({"model": {"latent": {"q_rank": 64, "kv_rank": 128, "rope_dim": 16, "nope_dim": 32,
                                                "value_dim": 32}},
                           "compute": {"card_TFLOPS": 1, "memory_GBps": 1e9}})";
  const auto us = [&](const char* sequence) {
    return us_of(expand(decoding(patched(nlohmann::json::parse(latent), sequence).dump()), 8).dense.forward);
  };
  // Scores of 128 + 16 and values of 128, each 2 operations, of 16 heads for each of 4 sequences and token of a cache.
  CHECK(us(R"({"sequence": 1512})") - us(R"({"sequence": 512})") == Approx(4 * 1000 * 2 * 16 * (144 + 128) / 1e6));
}

TEST_CASE("a prompt's output layer is computed for the last token of each sequence") {
  const LlmWorkload w = workload_of(
      patched(plain_workload(),
              R"({"phase": "prefill", "batch": {"sequences": null, "micro": 4}, "parallel": {"tensor": 2}, "compute":
                             {"layer_us": null, "card_TFLOPS": 1}})"));
  const Expansion e = expand(w, 8);
  CHECK(us_of(e.chunks[0].head.forward) == Approx(4 * 2 * kV * kH / 2 / 1e6));
  CHECK(e.traffic[e.chunks[0].head.forward[0].traffic].calls[0].bytes == 4 * kH * 2);
  CHECK(step_flops(w, false) == Approx(4 * (kS * kL * (2 * 12 * kH * kH + 4 * kS * kH) + 2 * kV * kH)));
}

TEST_CASE("selective recomputation is of the scores, half of the core, once more") {
  const auto us = [&](const char* recompute) {
    return us_of(expand(workload_of(patched(plain_workload(), fmt::format(R"({{"recompute": "{}", "compute":
                                              {{"layer_us": null, "card_TFLOPS": 1}}}})",
                                                                          recompute)
                                                                  .c_str())),
                        8)
                     .dense.backward);
  };
  CHECK(us("selective") - us("none") == Approx(kS * 4 * kS * kH / 2 / 2 / 1e6));  // of a causal core
}

TEST_CASE("traffic of a kind of layer that the model has none of is not there") {
  const char* zero = R"({"model": {"experts": {"count": 64, "top_k": 8, "ffn": 512}},
                         "parallel": {"data": 16, "expert": 16, "zero": 3}})";
  const auto kinds = [&](const char* patch) {
    return expand(workload_of(patched(patched(plain_workload(), zero), patch)), 8).traffic.size();
  };
  const auto mixed = kinds(R"({"model": {"experts": {"dense_first": 4}}})");
  CHECK(kinds("{}") == mixed - 2);                                             // a dense layer's weights and gradients
  CHECK(kinds(R"({"model": {"experts": {"dense_first": 8}}})") == mixed - 4);  // and tokens to and from experts
}

TEST_CASE("experts take as long as those of the rank that is sent most, drawn at random, too") {
  const auto workload = [](const char* load, int top_k, int count) {
    return workload_of(
        patched(plain_workload(),
                fmt::format(R"({{"model": {{"experts": {{"count": {}, "top_k": {}, "ffn": 512, "load": "{}"}}}},
    "parallel": {{"data": 64, "expert": 64}}, "batch": {{"sequences": 64}},
    "compute": {{"layer_us": null, "card_TFLOPS": 100}}}})",
                            count, top_k, load)
                    .c_str()));
  };
  const auto experts_us = [&](const char* load, int top_k, int count = 64) {
    const LlmWorkload w = workload(load, top_k, count);
    for (const Item& i : expand(w, 8).moe.forward)
      if (i.what == "experts") return i.us;
    return 0.;
  };
  double harmonic = 0;
  for (int k = 1; k <= 64; ++k) harmonic += 1. / k;
  const double random = experts_us("random", 2) / experts_us("uniform", 2);
  CHECK(experts_us("skewed", 2) / experts_us("uniform", 2) == Approx(64 / harmonic));
  // A token is sent to one expert once: with one expert on each of 64 ranks, of which it takes 8, to a rank 8 times as
  // often as in the mean at most, and with all of them everywhere alike. Of 2 experts on each it takes both at most.
  CHECK(experts_us("skewed", 8) / experts_us("uniform", 8) == Approx(8));
  CHECK(experts_us("skewed", 64) / experts_us("uniform", 64) == Approx(1));
  CHECK(experts_us("random", 64) / experts_us("uniform", 64) == Approx(1));
  CHECK(experts_us("skewed", 16, 128) / experts_us("uniform", 16, 128) == Approx(8));
  // And it keeps as many tokens for the backward pass.
  CHECK(memory_of(workload("skewed", 8, 64), 0).activations ==
        Approx(memory_of(workload("uniform", 64, 64), 0).activations));
  // The largest of 64 sums of 64 numbers between 0 and 2 / 64: 1 and 1.5 to 5 deviations of 0.072.
  CHECK(random > 1.1);
  CHECK(random < 1.36);
}
