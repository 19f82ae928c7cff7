// When a step's tasks run, against the closed forms of pipelines.
#include "tests/llm/llm_support.hpp"

using namespace gccl;
using namespace gccl::sim::llm;
using namespace gccl::test;
using doctest::Approx;

namespace {

struct PlayedStep {
  LlmWorkload w;
  Expansion e;
  StepGraph g;
  Timeline t;
};
// All communications of a kind take the same time.
void played(const nlohmann::json& document, const ByKind<double>& us, PlayedStep& s,
            const std::function<void(StepCosts&)>& change = {}) {
  s.w = workload_of(document);
  s.e = expand(s.w, 8);
  s.g = schedule(s.e);
  StepCosts costs;
  costs.sm_share = s.w.sm_share;
  for (const Traffic& t : s.e.traffic) costs.us.push_back(us[std::size_t(t.kind)]);
  if (change) change(costs);
  s.t = timeline_of(s.g, s.e, costs);
  for (const StageTime& one : s.t.stages) {  // every microsecond is booked once
    CHECK(one.compute + one.slowed + one.idle(true) == Approx(s.t.step_us));
    for (std::size_t k = 0; k < kKinds; ++k)  // what a stage waits for is in flight, on it or on its way to it
      CHECK(one.exposed[k] <= one.busy[k] + 1e-6);
  }
}
double step_us(const nlohmann::json& document, const ByKind<double>& us = {}) {
  PlayedStep s{workload_of(document), {}, {}, {}};
  played(document, us, s);
  return s.t.step_us;
}

}  // namespace

TEST_CASE("1F1B idles (p-1)/m of its compute, interleaved (p-1)/(vm), as Narayanan et al. derive") {
  for (const auto& [p, v, m] :
       {std::tuple{2, 1, 16}, {4, 1, 16}, {8, 1, 16}, {8, 1, 4}, {4, 2, 16}, {2, 4, 8}, {4, 2, 4}}) {
    const auto sizes = fmt::format("{} stages, {} chunks each, {} micro-batches", p, v, m);
    CAPTURE(sizes);
    const nlohmann::json d =
        patched(plain_workload(), fmt::format(R"({{"parallel": {{"pipeline": {}, "interleave": {}}},
      "batch": {{"sequences": {}}}}})",
                                              p, v, m)
                                      .c_str());
    const double ideal = m * 8 * 3000. / p;
    CHECK(step_us(d) == Approx(ideal * (1 + double(p - 1) / (v * m))));
    PlayedStep s{workload_of(d), {}, {}, {}};
    played(d, {}, s);
    for (const StageTime& one : s.t.stages) CHECK(one.bubble == Approx(ideal * double(p - 1) / (v * m)));
    // No stage holds more micro-batches than 1F1B promises: min(p - stage, m) of each chunk.
    if (v > 1) continue;
    for (Rank stage = 0; stage < Rank(p); ++stage) {
      int held = 0, most = 0;
      for (const Pass& pass : passes_of(s.w, stage)) most = std::max(most, held += pass.backward ? -1 : 1);
      CHECK(most == std::min(p - int(stage), m));
    }
  }
}

TEST_CASE(
    "without overlap a step is the sum of compute and communication; with it the longer of the two and the ends") {
  // 61 layers of 10 ms with 3 ms of communication each, 2 ms of it forward... as four all-to-alls of 0.75 ms.
  const auto layers = [](bool overlap) {
    return patched(plain_workload(),
                   fmt::format(R"({{"model": {{"layers": 61, "experts": {{"count": 64, "top_k": 8, "ffn": 512}}}},
      "parallel": {{"data": 64, "expert": 64}}, "batch": {{"sequences": 64}}, "overlap": {{"expert": {}, "data": true}},
      "compute": {{"layer_us": {{"forward": 4000, "backward": 6000}}}}}})",
                               overlap)
                       .c_str());
  };
  ByKind<double> us{};
  us[std::size_t(Kind::expert)] = 750;
  CHECK(step_us(layers(false), us) == Approx(61 * 13000.));
  us[std::size_t(Kind::expert)] = 375;  // of a half
  const double overlapped = step_us(layers(true), us);
  CHECK(overlapped >= 61 * 10000.);
  CHECK(overlapped < 61 * 10000. * 1.06);  // where one half waits for its own all-to-all
}

TEST_CASE("gradients' reductions add to the step only the time that they last after the backward pass") {
  const char* two = R"({"parallel": {"data": 8, "zero": 0}, "batch": {"sequences": 16}, "bucket_bytes": "1GiB"})";
  nlohmann::json d = patched(plain_workload(), two);
  ByKind<double> us{};
  us[std::size_t(Kind::data)] = 5000;
  CHECK(step_us(d, us) == Approx(2 * 24000 + 5000));  // one bucket, full when the backward pass is over
  d["bucket_bytes"] = Count((8 * (12 * 1024 * 1024 + 2048.) + 2 * 8192 * 1024) * 2 / 8 + 1);  // one for each layer
  CHECK(step_us(d, us) == Approx(2 * 24000 - 8 * 2000 + 2000 + 8 * 5000));  // reductions take longer than layers
  us[std::size_t(Kind::data)] = 1500;
  CHECK(step_us(d, us) == Approx(2 * 24000 + 1500));  // all but the last are hidden
  d["overlap"] = {{"data", false}};
  CHECK(step_us(d, us) == Approx(2 * 24000 + 8 * 1500));
}

TEST_CASE("ZeRO 3 gathers the next layer while one is computed") {
  const nlohmann::json d = patched(plain_workload(), R"({"parallel": {"data": 16, "zero": 3}})");
  ByKind<double> us{};
  us[std::size_t(Kind::data)] = 100;  // embeddings and the first layer before anything else, their gradients at the end
  const double hidden = step_us(d, us);
  CHECK(hidden > 24000 + 300);
  CHECK(hidden < 24000 + 700);
  nlohmann::json serial = d;
  serial["overlap"] = false;
  CHECK(step_us(serial, us) == Approx(24000 + 100 * (8 * 3 + 2)));
}

TEST_CASE("communication that has part of the card slows compute down; kinds that share links slow each other down") {
  const nlohmann::json d =
      patched(plain_workload(), R"({"parallel": {"data": 8, "zero": 0, "tensor": 2}, "batch": {"sequences": 8},
    "overlap": {"data": true}, "sm_share": {"data": 0.25}, "bucket_bytes": 14000000})");
  ByKind<double> us{};
  us[std::size_t(Kind::data)] = 2000;
  us[std::size_t(Kind::tensor)] = 100;
  PlayedStep alone{workload_of(d), {}, {}, {}}, shared{workload_of(d), {}, {}, {}};
  played(d, us, alone);
  CHECK(alone.t.stages[0].compute == Approx(24000));
  CHECK(alone.t.stages[0].slowed > 0);
  CHECK(alone.t.together[std::size_t(Kind::data)][std::size_t(Kind::tensor)] > 0);
  played(d, us, shared, [](StepCosts& c) {
    c.slower[std::size_t(Kind::data)][std::size_t(Kind::tensor)] = 2;
    c.slower[std::size_t(Kind::tensor)][std::size_t(Kind::data)] = 2;
  });
  CHECK(shared.t.step_us > alone.t.step_us);
  CHECK(shared.t.stages[0].exposed[std::size_t(Kind::tensor)] > alone.t.stages[0].exposed[std::size_t(Kind::tensor)]);
}

TEST_CASE("each blocking communication is exposed once, on its own stage; others that wait meanwhile have a bubble") {
  const nlohmann::json d = patched(plain_workload(), R"({"parallel": {"tensor": 2, "pipeline": 4}})");
  ByKind<double> us{};
  us[std::size_t(Kind::tensor)] = 100;
  PlayedStep s{workload_of(d), {}, {}, {}};
  played(d, us, s);
  for (Rank stage = 0; stage < 4; ++stage) {
    // Of two layers 4 forward and 4 backward; the gathers for weights' gradients are hidden. At both ends of the
    // model 2, and at the last one the output's gather, which takes no time to compute here.
    const double each = 2 * 8 + (stage == 0 ? 2 : stage == 3 ? 3 : 0);
    CHECK(s.t.stages[stage].exposed[std::size_t(Kind::tensor)] == Approx(16 * each * 100));
    CHECK(s.t.stages[stage].busy[std::size_t(Kind::tensor)] == Approx(16 * (each + 2 * 2) * 100));
    CHECK(s.t.stages[stage].exposed[std::size_t(Kind::pipeline)] == 0);
  }
}

TEST_CASE("a send is in flight on both of its stages, and exposed where it is all that is left, or awaited") {
  const nlohmann::json d = patched(plain_workload(), R"({"parallel": {"pipeline": 2}, "batch": {"sequences": 1}})");
  ByKind<double> us{};
  us[std::size_t(Kind::pipeline)] = 500;
  PlayedStep s{workload_of(d), {}, {}, {}};
  played(d, us, s);
  // The first stage waits for the other's compute while it sends, and for the gradients.
  for (const auto& [stage, exposed] : {std::pair(0, 500.), {1, 1000.}}) {
    CHECK(s.t.stages[std::size_t(stage)].busy[std::size_t(Kind::pipeline)] == Approx(1000));
    CHECK(s.t.stages[std::size_t(stage)].exposed[std::size_t(Kind::pipeline)] == Approx(exposed));
  }
}

TEST_CASE("decoding adds up its layers and their all-reduces") {
  const nlohmann::json d = patched(
      plain_workload(), R"({"phase": "decode", "parallel": {"tensor": 8}, "batch": {"sequences": null, "micro": 4},
    "compute": {"layer_us": {"forward": 50}}})");
  ByKind<double> us{};
  us[std::size_t(Kind::tensor)] = 10;
  CHECK(step_us(d, us) == Approx(8 * (50 + 2 * 10) + 10));  // the embedding's, too
}

TEST_CASE("a step whose times are all multiplied takes as many times as long, be it for millions of years") {
  const nlohmann::json d =
      patched(plain_workload(), R"({"parallel": {"tensor": 2, "pipeline": 4, "data": 2}, "overlap": {"data": true},
    "sm_share": {"data": 0.3}, "bucket_bytes": "1MiB"})");
  const LlmWorkload w = workload_of(d);
  const Expansion e = expand(w, 8);
  const StepGraph short_graph = schedule(e);
  const auto us = [&](double times) {
    StepGraph g = short_graph;
    for (StepTask& t : g.tasks) t.us *= times;
    StepCosts costs;
    costs.sm_share = w.sm_share;
    for (std::size_t t = 0; t < e.traffic.size(); ++t) costs.us.push_back((100 + 7.7 * double(t)) * times);
    costs.slower[std::size_t(Kind::data)][std::size_t(Kind::tensor)] = 1.7;
    return timeline_of(g, e, costs).step_us;
  };
  const double once = us(1);
  for (const double times : {1e5 / 3, 1e9 / 7, 1e16 / 3}) CHECK(us(times) == Approx(once * times).epsilon(1e-6));
  const gccl::sim::StopFlag stop = true;
  StepCosts none;
  none.us.resize(e.traffic.size());
  CHECK_THROWS_AS(timeline_of(short_graph, e, none, &stop), gccl::sim::Interrupted);
}

TEST_CASE("a first stage that has the embedding alone passes on, reduces and updates when the gradients reach it") {
  // Of 8 stages the first and the last have no layer: six in 1F1B, m + 5 times forward and backward of one.
  const auto ends = [](const char* patch) {
    return patched(patched(plain_workload(), R"({"model": {"layers": 6}, "parallel": {"pipeline": 8}})"), patch);
  };
  ByKind<double> us{};
  us[std::size_t(Kind::embedding)] = 500;
  us[std::size_t(Kind::data)] = 700;
  CHECK(step_us(ends(R"({"model": {"tied": true}})"), us) == Approx(21 * 3000 + 500));
  CHECK(step_us(ends(R"({"parallel": {"data": 2}, "overlap": false})"), us) == Approx(13 * 3000 + 700));
  CHECK(step_us(ends(R"({"model": {"tied": true}, "parallel": {"data": 2}, "overlap": false})"), us) >=
        13 * 3000 + 700);
  // The first stage's last communication is its own: the last, which waits for it, has a bubble.
  const nlohmann::json cut = ends(R"({"model": {"tied": true}, "parallel": {"tensor": 2}})");
  PlayedStep tied{workload_of(cut), {}, {}, {}};
  us[std::size_t(Kind::tensor)] = 100;
  played(cut, us, tied);
  CHECK(tied.t.stages[7].exposed[std::size_t(Kind::tensor)] == Approx(16 * 3 * 100));
  const nlohmann::json gathered =
      ends(R"({"parallel": {"data": 2, "zero": 1}, "overlap": {"data": true}, "compute": {"optimizer_us": 40}})");
  PlayedStep s{workload_of(gathered), {}, {}, {}};
  played(gathered, us, s);
  for (std::size_t t = 0; t < s.g.tasks.size(); ++t) {
    const StepTask& task = s.g.tasks[t];
    if (task.stage == 0 && task.queue == Queue::forward) CHECK(s.t.begin[t] >= 700);  // of weights that are there
    if (task.what == "optimizer" && task.stage == 0) CHECK(s.t.begin[t] >= 700 + 13 * 3000);
  }
  const nlohmann::json alone = ends(R"({"compute": {"optimizer_us": 40}})");
  CHECK(step_us(alone) == Approx(21 * 3000 + 40));
  played(alone, {}, s);
  for (std::size_t t = 0; t < s.g.tasks.size(); ++t)
    if (s.g.tasks[t].what == "optimizer" && s.g.tasks[t].stage == 0) CHECK(s.t.begin[t] == Approx(21 * 3000));
}
