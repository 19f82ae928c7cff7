// `gccl calibrate` finds the parameters that times were made from, whatever the machine did meanwhile.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "sim/measured/calibration/calibration.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::test;
using sim::Line;

namespace {

// A message takes a fixed time and one for each byte: Hockney, Parallel Computing 20 (1994). Up to and with a size by
// one line, beyond it by another.
struct Machine {
  Line below, above;
  double last_below;
  double ns(double bytes) const { return bytes > last_below ? above(bytes) : below(bytes); }
};

// Noise as of a machine with other load: a few percent always, and of each sample with some probability a multiple of
// its time, or a scheduler's slice on top of it.
class Noise {
 public:
  Noise(std::uint64_t seed, double relative, double outliers)
      : random_(seed), relative_(relative), outliers_(outliers) {}
  double operator()(double ns) {
    double t = ns * (1 + relative_ * std::abs(normal_(random_)));
    if (uniform_(random_) < outliers_) t = uniform_(random_) < 0.5 ? t * (2 + 48 * uniform_(random_)) : t + 4e6;
    return t;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double relative_, outliers_;
};

sim::Curve measured_curve(const Machine& m, Noise noise, double first, double last, std::size_t rounds) {
  sim::Curve curve;
  for (double x = first; x <= last; x *= 2) {
    curve.amounts.push_back(x);
    curve.ns.emplace_back();
    for (std::size_t r = 0; r < rounds; ++r) curve.ns.back().push_back(noise(m.ns(x)));
  }
  return curve;
}

Machine one_line(double fixed, double each) { return {{fixed, each}, {fixed, each}, 0}; }
bool near(double found, double truth, double share) { return std::abs(found - truth) <= share * truth; }

// A job of 2 nodes with 2 ranks each, or of one node.
sim::Calibration calibrated_job(bool several) {
  const Noise none(1, 0, 0);
  const auto curve = [&](const Machine& m) { return measured_curve(m, none, 8, 1 << 20, 9); };
  const auto peers = [&](double fixed, double each) { return measured_curve(one_line(fixed, each), none, 1, 4, 9); };
  const auto pairs = [&](const Machine& m, double out, double in) {
    sim::PairClass c{.a = 0, .b = 1, .ping_pong = curve(m), .long_bytes = 65536};
    c.fan_out = c.fan_out_long = peers(40, out);
    c.fan_in = c.fan_in_long = peers(30, in);
    return c;
  };
  sim::Calibration c{.backends = "shm,tcp", .date = "2026-01-02 03:04 UTC", .processor = "processor", .node = {0, 0}};
  c.inside = pairs(one_line(500, 0.125), 100, 60);
  c.inside->by = sim::Carrier::memory;
  if (several) {
    c.node = {0, 0, 1, 1};
    c.between = pairs(one_line(20'000, 0.5), 3000, 2000);
    c.between->at_once = curve(one_line(24'000, 0.8));
    c.between->pairs_at_once = 2;
  }
  c.combine = curve(one_line(0, 0.1));
  c.copy = curve(one_line(0, 0.05));
  return c;
}

std::shared_ptr<const Cluster> written_cluster(const Folder& folder, const sim::Calibration& c) {
  const sim::CalibrationFit fit = sim::fit_calibration(c);
  folder.write("p.json", sim::calibrated_parameters(c, fit, "p").dump());
  return load_cluster(folder.write("c.json", sim::calibrated_cluster(c, fit, "c", "p.json").dump()));
}

}  // namespace

TEST_CASE("a line is found although a fifth of the sizes are far off") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<sim::Timed> points;
    for (double x = 8; x <= 16e6; x *= 2) points.push_back({x, 1500 + 0.3 * x});
    for (int i = 0; i < 4; ++i) points[random() % points.size()].ns *= 2.0 + double(random() % 20);
    const Line found = sim::fit_line(points);
    CHECK(near(found.fixed_ns, 1500, 1e-6));
    CHECK(near(found.ns_each, 0.3, 1e-6));
  }
}

TEST_CASE("neither part of a line is negative") {
  const Line falling = sim::fit_line({{8, 100}, {64, 90}, {512, 80}});
  CHECK(falling.fixed_ns >= 0);
  CHECK(falling.ns_each >= 0);
  const Line steep = sim::fit_line({{8, 1}, {16, 100}, {32, 1000}});
  CHECK(steep.fixed_ns >= 0);
  CHECK(steep.ns_each >= 0);
}

TEST_CASE("the parameters of noisy times with outliers are found, and lie in the interval that is stated") {
  int inside = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const double outliers : {0.0, 0.1, 0.3, 0.7}) {
      CAPTURE(seed);
      CAPTURE(outliers);
      const Machine truth = one_line(300 * double(seed), 0.08 * double(1 + seed % 5));
      const auto fit = sim::fit_curve(measured_curve(truth, Noise(seed, 0.03, outliers), 8, 16 << 20, 60));
      const double share = outliers > 0.5 ? 0.12 : 0.06;
      CHECK(near(fit.line.fixed_ns, truth.below.fixed_ns, share));
      CHECK(near(fit.line.ns_each, truth.below.ns_each, share));
      if (outliers > 0.5) continue;
      CHECK(fit.line_error < 0.05);
      CHECK(!fit.pieces.last_below);
      CHECK(fit.fixed_ns.least <= fit.fixed_ns.value);
      CHECK(fit.fixed_ns.most >= fit.fixed_ns.value);
      // Noise only adds, so the interval is around a value that is a little longer.
      inside += fit.fixed_ns.least <= truth.below.fixed_ns * 1.06 && fit.fixed_ns.most >= truth.below.fixed_ns;
      ++runs;
    }
  CHECK(inside >= runs * 9 / 10);
}

TEST_CASE("where short and long messages go different ways, both lines and the size between them are found") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Machine truth{{400, 0.25}, {3000, 0.07}, double(1 << (10 + seed % 6))};
    const auto fit = sim::fit_curve(measured_curve(truth, Noise(seed, 0.02, 0.15), 8, 16 << 20, 60));
    REQUIRE(fit.pieces.last_below);
    CHECK(*fit.pieces.last_below >= truth.last_below / 2);
    CHECK(*fit.pieces.last_below <= truth.last_below * 2);
    CHECK(near(fit.pieces.below.fixed_ns, 400, 0.08));
    CHECK(near(fit.pieces.below.ns_each, 0.25, 0.15));
    CHECK(near(fit.pieces.above.ns_each, 0.07, 0.08));
    CHECK(fit.pieces_error < fit.line_error);
  }
}

TEST_CASE("a median's interval holds the median of what is drawn from, 19 times of 20") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> drawn(0, 1);  // whose median is 1
  int held = 0;
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> samples;
    for (int i = 0; i < 41; ++i) samples.push_back(drawn(random));
    const sim::Estimate e = sim::median_of(samples);
    CHECK(e.least <= e.value);
    CHECK(e.value <= e.most);
    held += e.least <= 1 && 1 <= e.most;
  }
  CHECK(held >= 930);
  CHECK(held <= 990);
}

TEST_CASE("a calibration's files are read, and its cluster has the times that were measured") {
  const JsonSchema parameters(nlohmann::json::parse(read_text(kRoot / "libgccl/cluster/parameters.schema.json")));
  const JsonSchema clusters(nlohmann::json::parse(read_text(kRoot / "libgccl/cluster/cluster.schema.json")));
  for (const bool several : {false, true}) {
    CAPTURE(several);
    const Folder folder;
    const sim::Calibration c = calibrated_job(several);
    const auto cluster = written_cluster(folder, c);
    CHECK(parameters.accepts(nlohmann::json::parse(read_text(folder.path / "p.json"))));
    CHECK(clusters.accepts(nlohmann::json::parse(read_text(folder.path / "c.json"))));
    REQUIRE(cluster->cards() == (several ? 4 : 2));
    const auto hop = [&](Card from, Card to) {
      std::vector<LinkId> route;
      cluster->route(from, to, route);
      Hop h{double(cluster->costs(from).overhead_ns + cluster->costs(to).receive_overhead_ns), 0};
      for (const LinkId l : route) {
        h.alpha_ns += double(cluster->links()[l].latency_ns);
        h.beta_ns_per_byte = std::max(h.beta_ns_per_byte, 1 / cluster->links()[l].bandwidth_GBps);
      }
      return h;
    };
    CHECK(near(hop(0, 1).alpha_ns, 500, 0.01));
    CHECK(near(hop(0, 1).beta_ns_per_byte, 0.125, 1e-3));
    CHECK(cluster->costs(0).overhead_ns == 100);
    CHECK(cluster->costs(0).receive_overhead_ns == 60);
    CHECK(near(cluster->costs(0).combine_GBps, 10, 1e-3));
    CHECK(near(cluster->costs(0).copy_GBps, 20, 1e-3));
    if (several) {
      CHECK(near(hop(0, 3).alpha_ns, 20'000, 0.01));
      CHECK(near(hop(0, 3).beta_ns_per_byte, 0.5, 1e-3));
    }
  }
}

TEST_CASE("over MPI one model has all pairs, and on one node nothing is said of messages between nodes") {
  for (const bool several : {false, true}) {
    CAPTURE(several);
    sim::Calibration c = calibrated_job(several);
    c.backends = "mpi";
    for (auto* pairs : {&c.inside, &c.between})
      if (*pairs) (*pairs)->by = sim::Carrier::mpi;
    const sim::CalibrationFit fit = sim::fit_calibration(c);
    const auto models = sim::calibrated_parameters(c, fit, "p")["transports"];
    REQUIRE(models.size() == 1);
    const auto& mpi = models["mpi"];
    CHECK(near(mpi["node"]["alpha_ns"], 500, 0.01));
    for (const char* key : {"net", "net_all"}) CHECK(mpi.contains(key) == several);
    if (several) CHECK(near(mpi["net"]["alpha_ns"], 20'000, 0.01));
    const std::string text = sim::calibration_text(c, fit, 200);
    CHECK(text.find("by MPI between ranks 0 and 1") != std::string::npos);
    CHECK((text.find("mpi/net/alpha_ns") != std::string::npos) == several);
  }
}

TEST_CASE("the planner goes by what was measured, and by what is compiled in where nothing was") {
  const Folder folder;
  const auto cluster = written_cluster(folder, calibrated_job(true));
  const TransportModel& memory = transport_model_of(cluster->transports(), "shm,tcp", true);
  CHECK(near(memory.costs.node.alpha_ns, 500, 1e-3));
  CHECK(near(memory.costs.node.beta_ns_per_byte, 0.125, 1e-3));
  CHECK(near(memory.costs.overhead_ns, 100, 1e-3));
  CHECK(near(memory.costs.combine_ns_per_byte, 0.1, 1e-3));
  CHECK(memory.tuning.preferences.size() == transport_model("shared-memory").tuning.preferences.size());
  const TransportModel& tcp = transport_model_of(cluster->transports(), "shm,tcp", false);
  CHECK(near(tcp.costs.node.alpha_ns, 500, 1e-3));
  CHECK(near(tcp.costs.net.alpha_ns, 20'000, 1e-3));
  CHECK(near(tcp.costs.net_all.beta_ns_per_byte, 0.8, 1e-3));
  CHECK(near(tcp.costs.overhead_ns, 3000, 1e-3));
  const TransportModel& loopback = transport_model_of(cluster->transports(), "tcp", true);
  CHECK(loopback.costs.net.alpha_ns == transport_model("tcp-loopback").costs.net.alpha_ns);
}

TEST_CASE("bursts of calls that took no longer than shorter ones are said to tell no overhead") {
  sim::Calibration c = calibrated_job(true);
  const auto text = [&] { return sim::calibration_text(c, sim::fit_calibration(c), 100); };
  CHECK(text().find("the overheads are too small") == std::string::npos);
  for (double& ns : c.between->fan_in.ns[1]) ns = 1;
  CHECK(text().find("between nodes: more calls one after the other took no longer than fewer") != std::string::npos);
}

TEST_CASE("which cards ranks have that are not numbered node by node is said, as a scenario takes it") {
  sim::Calibration c = calibrated_job(true);
  const auto text = [&] { return sim::calibration_text(c, sim::fit_calibration(c), 100); };
  CHECK(text().find("placement") == std::string::npos);
  c.node = {0, 1, 0, 1};
  CHECK(text().find(R"("placement": {"cards": [0, 2, 1, 3]})") != std::string::npos);
  c.node = {0, 1, 2, 1};
  CHECK(text().find(R"("placement": {"cards": [0, 1, 3, 2]})") != std::string::npos);
}

TEST_CASE("one peer shows no more than a bound of the overheads, and a message's time holds them") {
  sim::Calibration c = calibrated_job(false);
  for (sim::Curve* curve : {&c.inside->fan_out, &c.inside->fan_in}) *curve = {{1}, {{700, 710, 690}}};
  const sim::CalibrationFit fit = sim::fit_calibration(c);
  CHECK(!fit.inside->overhead_known);
  CHECK(near(fit.inside->overhead_ns.value, 500, 1e-6));
  CHECK(fit.inside->receive_overhead_ns.value == 0);
  c.inside->fan_out = {{1, 2}, {{700}, {5000}}};
  c.inside->fan_in = {{1, 2}, {{700}, {9000}}};
  const sim::CalibrationFit more = sim::fit_calibration(c);
  CHECK(more.inside->overhead_known);
  CHECK(more.inside->overhead_ns.value + more.inside->receive_overhead_ns.value <= 500.001);
}

TEST_CASE("times that do not grow with the size tell no bandwidth") {
  const auto unsupported = [](const sim::Calibration& c) {
    return sim::unsupported_bandwidth(sim::fit_calibration(c));
  };
  const sim::Calibration whole = calibrated_job(true);
  CHECK(unsupported(whole).empty());
  const sim::Curve level{{8, 64, 512}, {{100, 101, 102}, {99, 100, 101}, {98, 99, 100}}};
  const auto with = [&](auto change) {
    sim::Calibration c = whole;
    change(c);
    return unsupported(c);
  };
  CHECK(with([&](sim::Calibration& c) { c.inside->ping_pong = level; }) == "messages between ranks of a node");
  CHECK(with([&](sim::Calibration& c) { c.between->ping_pong = level; }) ==
        "messages between ranks of different nodes");
  CHECK(with([&](sim::Calibration& c) { c.between->at_once = level; }) ==
        "messages between ranks of different nodes by all pairs at once");
  CHECK(with([&](sim::Calibration& c) { c.combine = level; }) == "combining");
  CHECK(with([&](sim::Calibration& c) { c.copy = level; }) == "copying");
  CHECK(unsupported(calibrated_job(false)).empty());
}
