// Availability studies against the formulas of Young and Daly, and against what was published.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/availability/study.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

std::string shipped_rates(const json::Node& name) {
  return (kRoot / "cost-models/failures" / (name.string() + ".json")).string();
}
AvailabilityStudy study_of(const Json& document) {
  return read_study(json::Node::parse(document.dump(), kRoot / "scenarios/availability/test.json"), shipped_rates);
}

// A failure in 1.8 h.
const Json kStudy = {{"schema", "gccl/availability/1"},
                     {"name", "test"},
                     {"failures", "meta-rsc-1"},
                     {"cards", 16384},
                     {"days", 200},
                     {"replicas", 4},
                     {"checkpoint", {{"every_s", {120, 300, 612, 1200, 3600}}, {"write_s", 30}}},
                     {"restart_s", 600},
                     {"policies", "restart"},
                     {"spares", 1000}};

std::string complaint_of(const Json& more) {
  Json document = kStudy;
  document.update(more);
  try {
    study_of(document);
  } catch (const json::InputError& e) {
    const std::string text = e.what();
    return text.substr(text.find(": /") + 2);
  }
  return "accepted";
}

// The drawing of one number of cards, from a study of few days.
std::string drawing_of(const Json& every, const Json& spares, const Json& policies) {
  Json document = kStudy;
  document.update({{"cards", 1024}, {"days", 2}, {"replicas", 1}, {"spares", spares}, {"policies", policies}});
  document["checkpoint"]["every_s"] = every;
  const AvailabilityStudy s = study_of(document);
  const std::string page = availability_html(availability_json(s, simulate(s)));
  return page.substr(page.find("<svg"), page.find("</svg>") - page.find("<svg"));
}

std::vector<double> numbers_behind(const std::string& text, const std::string& before) {
  std::vector<double> all;
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos;)
    all.push_back(std::stod(text.substr(at += before.size())));
  return all;
}

}  // namespace

TEST_CASE("the part of the time that is kept is Daly's, and best at his interval") {
  const auto outcomes = simulate(study_of(kStudy));
  REQUIRE(outcomes.size() == 5);
  const double mttf = 86400 / (2048 * 6.5e-3);
  for (const AvailabilityOutcome& o : outcomes) {
    CAPTURE(o.interval);
    // Written out here a second time: the expected time for a segment of work is M e^(R/M) (e^((t+w)/M) - 1).
    const double expected = o.interval / (mttf * std::exp(600 / mttf) * (std::exp((o.interval + 30) / mttf) - 1));
    CHECK(std::abs(o.goodput - expected) < 5 * o.error + 5e-4);
    CHECK(o.daly == doctest::Approx(expected).epsilon(1e-9));
    CHECK(o.goodput + o.writing + o.lost + o.down + o.waiting + o.missing == doctest::Approx(1).epsilon(1e-9));
    CHECK(o.at_risk / double(o.failures) == doctest::Approx(mttf).epsilon(0.05));
  }
  CHECK(young_interval(30, mttf) == doctest::Approx(std::sqrt(2 * 30 * mttf)));
  CHECK(std::abs(daly_interval(30, mttf) - 612) < 20);
  for (const AvailabilityOutcome& o : outcomes) CHECK(outcomes[2].goodput >= o.goodput - 3 * o.error);
}

TEST_CASE("a checkpoint that a failure interrupts is written anew where the others go on") {
  Json document = kStudy;
  document["checkpoint"] = {{"every_s", 3600}, {"write_s", 7200}};
  document["policies"] = "spare";
  const auto outcomes = simulate(study_of(document));
  REQUIRE(outcomes.size() == 1);
  // Nothing else is lost: so long lasts what begins anew with each failure, M (e^(w/M) - 1) in the mean.
  const double mttf = 86400 / (2048 * 6.5e-3), written = mttf * (std::exp(7200 / mttf) - 1);
  CHECK(outcomes[0].goodput == doctest::Approx(3600 / (3600 + written)).epsilon(0.03));
}

TEST_CASE("waiting for repairs, shrinking and spares cost what they must") {
  Json document = kStudy;
  document["checkpoint"]["every_s"] = 600;
  document["policies"] = {"restart", "shrink", "spare"};
  document["spares"] = {0, 1000};
  document["repair_s"] = 43200;
  const auto outcomes = simulate(study_of(document));
  REQUIRE(outcomes.size() == 5);
  // Without spares each failure stops the job for the repair: 12 h of 12 h and 1.8 h and a restart.
  CHECK(outcomes[0].waiting > 0.8);
  CHECK(outcomes[1].waiting == 0);
  // A failed node is missing for 12 h, and half of 6.5 in 1000 is.
  CHECK(outcomes[2].missing == doctest::Approx(6.5e-3 * 0.5).epsilon(0.1));
  CHECK(outcomes[4].missing == 0);
  CHECK(outcomes[4].goodput > outcomes[2].goodput);
  CHECK(outcomes[2].goodput > outcomes[1].goodput);
}

TEST_CASE("whatever is done about failures, nodes fail at their rate, and parts of the time add up") {
  const double mttf = 86400 / (2048 * 6.5e-3);
  for (const double repair : {60.0, 7300.0, 86400.0})
    for (const double pause : {0.0, 300.0, 7200.0}) {
      Json document = kStudy;
      document["policies"] = {"restart", "shrink", "spare"};
      document["spares"] = {0, 2};
      document["repair_s"] = repair;
      document["shrink_s"] = document["restart_s"] = document["detection_s"] = pause;
      document["checkpoint"] = {{"every_s", 600}, {"write_s", 30}};
      document["days"] = 1000;
      for (const AvailabilityOutcome& o : simulate(study_of(document))) {
        CAPTURE(repair);
        CAPTURE(pause);
        CAPTURE(int(o.policy));
        CAPTURE(o.spares);
        for (const double part : {o.goodput, o.writing, o.lost, o.down, o.waiting, o.missing}) CHECK(part >= 0);
        CHECK(o.goodput + o.writing + o.lost + o.down + o.waiting + o.missing == doctest::Approx(1).epsilon(1e-9));
        if (o.failures > 5000) CHECK(o.at_risk / double(o.failures) == doctest::Approx(mttf).epsilon(0.05));
        // Who goes on after a pause that any failure meanwhile begins anew works e^-(pause/mttf) of the time.
        if (o.policy == AvailabilityPolicy::spare && o.spares == 2 && repair == 60)
          CHECK(1 - o.down == doctest::Approx(std::exp(-2 * pause / mttf)).epsilon(0.05));
      }
    }
}

TEST_CASE("a job without a node left waits for its repair, and begins at its checkpoint") {
  Json document = kStudy;
  document.update({{"cards", 8}, {"days", 3660}, {"replicas", 100}, {"repair_s", 86400 * 100}, {"restart_s", 0}});
  document["checkpoint"] = {{"every_s", 600}, {"write_s", 0}};
  document["policies"] = {"restart", "shrink", "spare"};
  document["spares"] = 0;
  const double mttf = 1 / 6.5e-3, expected = mttf / (mttf + 100);  // days
  for (const AvailabilityOutcome& o : simulate(study_of(document))) {
    CAPTURE(int(o.policy));
    CHECK(std::abs(o.goodput - expected) < 5 * o.error + 0.02);  // it begins whole
    CHECK(o.missing == 0);
    CHECK(o.at_risk / double(o.failures) == doctest::Approx(mttf * 86400).epsilon(0.1));
  }
}

TEST_CASE("without failures all time goes into work and checkpoints, and what a formula is about may be nothing") {
  Json document = kStudy;
  document.update({{"cards", 8}, {"days", 0.01}, {"replicas", 1}, {"spares", 0}});
  document["checkpoint"] = {{"every_s", 3600}, {"write_s", 36}};
  document["policies"] = {"restart", "shrink", "spare"};
  document["expect"] = {{"mttf_s", 1000}, {"max_daly_error_points", 2}};
  AvailabilityStudy s = study_of(document);
  for (const AvailabilityOutcome& o : simulate(s)) CHECK(o.goodput == doctest::Approx(1).epsilon(1e-6));
  Json found = availability_json(s, simulate(s));
  CHECK(found["settings"][0]["mttf_s"].is_null());
  CHECK(found["settings"][0]["standard_error_percent"].is_null());  // one replica says nothing of it
  CHECK(found["intervals"].empty());
  CHECK(found["expectations"][0]["ok"] == true);
  CHECK(found["expectations"][1]["found"] == "no failure");
  CHECK(found["ok"] == false);
  document["policies"] = "shrink";
  s = study_of(document);
  found = availability_json(s, simulate(s));
  CHECK(found["expectations"][0]["found"] == "no restarts that never wait for a node, which it is about");
  CHECK(found["expectations"][0]["ok"] == false);
}

TEST_CASE("rates so low that no number has the time between failures leave all time to work and checkpoints") {
  Json document = kStudy;
  document["checkpoint"] = {{"every_s", {60, 120, 4800, 9600}}, {"write_s", 5}};
  AvailabilityStudy s = study_of(document);
  s.rates.causes = {{.name = "never", .per_node_day = 1e-308}};
  const Json found = availability_json(s, simulate(s));
  for (std::size_t i = 0; i < s.intervals.size(); ++i) {
    const Json& setting = found["settings"][i];
    CHECK(setting["every_s"] == document["checkpoint"]["every_s"][i]);  // as it was stated, to the last digit
    const double every = setting["every_s"];
    REQUIRE(setting["daly_percent"].is_number());
    CHECK(setting["daly_percent"].get<double>() == doctest::Approx(100 * every / (every + 5)));
    CHECK(setting["goodput_percent"].get<double>() == doctest::Approx(100 * every / (every + 5)).epsilon(1e-3));
  }
  CHECK(availability_text(found).find("nan") == std::string::npos);
}

TEST_CASE("a chart of settings that all keep everything ends, and has a scale") {
  Json document = kStudy;
  document.update({{"cards", 8}, {"days", 0.01}, {"replicas", 1}, {"spares", 0}});
  document["checkpoint"] = {{"every_s", {60, 600}}, {"write_s", 0}};
  const AvailabilityStudy s = study_of(document);
  const Json found = availability_json(s, simulate(s));
  for (const Json& setting : found["settings"]) REQUIRE(setting["goodput_percent"] == 100);
  const std::string page = availability_html(found);
  for (const char* percent : {">90<", ">92<", ">98<", ">100<"}) CHECK(page.find(percent) != std::string::npos);
  for (const char* no_number : {"nan", "inf"}) CHECK(page.find(no_number) == std::string::npos);
}

TEST_CASE("a line of a chart goes from left to right, whatever the order in the study, and one interval is a dot") {
  const std::string given = drawing_of({612, 120, 3600, 300}, 4, "restart");
  const std::vector<double> from = numbers_behind(given, "<line x1=\""), to = numbers_behind(given, "x2=\"");
  REQUIRE(from.size() == 6 + 3 + 1);  // of the scale, between four intervals, in the legend
  for (std::size_t i = 0; i < from.size(); ++i) CHECK(from[i] < to[i]);
  const std::string one = drawing_of(300, 4, "restart");
  CHECK(one.find("width=\"3.2\"") != std::string::npos);
  CHECK(one.find("width=\"3.2\"") == one.rfind("width=\"3.2\""));
}

TEST_CASE("a chart of many policies shows each name once, tells lines apart, and labels of an axis do not overlap") {
  Json spares = Json::array();
  for (int i = 1; i <= 20; ++i) spares.push_back(i);
  const std::string chart = drawing_of({60, 61, 62, 600}, spares, {"restart", "shrink"});
  const double height = numbers_behind(chart, "height=\"").at(0);
  for (const double y : numbers_behind(chart, " y=\"")) CHECK(y < height);
  CHECK(chart.find(">restart, 1 spare<") < chart.find(">restart, 2 spares<"));
  CHECK(chart.find(">restart, 2 spares<") < chart.find(">restart, 10 spares<"));
  // The legend's lines: colour and dashes.
  std::set<std::string> looks;
  for (std::size_t at = 0; (at = chart.find("stroke-width=\"2\"", at)) != std::string::npos; ++at) {
    const std::size_t begin = chart.rfind("stroke=", at);
    looks.insert(chart.substr(begin, chart.find("/>", at) - begin));
  }
  CHECK(looks.size() == 21);
  CHECK(chart.find(">60 s<") != std::string::npos);
  CHECK(chart.find(">61 s<") == std::string::npos);
  CHECK(chart.find(">10 min<") != std::string::npos);
}

TEST_CASE("shipped rates and studies fit their schemas, and say what was published") {
  const JsonSchema rates_schema(read_json(kRoot / "sim/availability/failures.schema.json")),
      study_schema(read_json(kRoot / "sim/availability/availability.schema.json"));
  std::size_t rates = 0, studies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "cost-models/failures")) {
    CAPTURE(entry.path().string());
    CHECK(rates_schema.accepts(read_json(entry.path())));
    const FailureRates r = read_rates(json::Node::load(entry.path()));
    CHECK(!r.source.empty());
    double each = 0;
    for (const auto& c : r.causes) each += c.per_card_day;
    if (r.name == "llama3") CHECK(each * 16384 * 54 == doctest::Approx(419).epsilon(1e-3));
    ++rates;
  }
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "scenarios/availability")) {
    CAPTURE(entry.path().string());
    CHECK(study_schema.accepts(read_json(entry.path())));
    const AvailabilityStudy s = read_study(json::Node::load(entry.path()), shipped_rates);
    const Json result = availability_json(s, simulate(s));
    CHECK(result["ok"] == true);
    CHECK(availability_html(result).find("<svg") != std::string::npos);
    ++studies;
  }
  CHECK(rates == 6);
  CHECK(studies == 2);
}

TEST_CASE("what is wrong with a study is said") {
  CHECK(complaint_of({{"policies", "shrnk"}}).starts_with("/policies: found \"shrnk\"; did you mean \"shrink\"?"));
  CHECK(complaint_of({{"spares", {4, 8, 4}}}) == "/spares/2: 4 appears twice");
  CHECK(complaint_of({{"policies", {"spare", "spare"}}}) == "/policies/1: \"spare\" appears twice");
  CHECK(complaint_of({{"cards", {8, 8}}}) == "/cards/1: 8 appears twice");
  CHECK(complaint_of({{"checkpoint", {{"every_s", {60, "1min"}}, {"write_s", 1}}}}) ==
        "/checkpoint/every_s/1: \"1min\" appears twice");
  CHECK(complaint_of({{"cards", 12}}) == "/cards: 12 cards are no whole nodes of 8");
  CHECK(complaint_of({{"days", 0}}).starts_with("/days"));
  CHECK(complaint_of({{"checkpoint", {{"every_s", 0}, {"write_s", 1}}}}).starts_with("/checkpoint/every_s"));
  CHECK(complaint_of({{"expect", {{"mttf_s", {1, 2}}}}}) == "/expect/mttf_s: has 2 times for 1 numbers of cards");
  CHECK(
      complaint_of({{"days", 3660}, {"replicas", 10000}, {"cards", 10'000'000}}) ==
      "/: has about 1.5e+12 failures and ends in 3660 days of 10000 replicas of each setting, expected at most 1e+09");
  // Two failures in a thousand replicas: 64 numbers of cards x 64 spares x 64 intervals x 10,000 replicas.
  Json cards, spares, intervals;
  for (int i = 1; i <= 64; ++i) cards.push_back(8 * i), spares.push_back(i), intervals.push_back(i);
  CHECK(
      complaint_of({{"replicas", 10000},
                    {"days", 0.01},
                    {"cards", cards},
                    {"spares", spares},
                    {"checkpoint", {{"every_s", intervals}, {"write_s", 1}}}}) ==
      "/: has about 2.6e+09 failures and ends in 0.01 days of 10000 replicas of each setting, expected at most 1e+09");
  CHECK(complaint_of({{"repair", 3}}).find("repair_s") != std::string::npos);
}

TEST_CASE("times of a study have the same limits in its schema") {
  const JsonSchema schema(read_json(kRoot / "sim/availability/availability.schema.json"));
  const auto judge = [&](const char* pointer, const Json& value) {
    judged_alike(schema, kStudy, pointer, value, [](const Json& study) { study_of(study); });
  };
  for (const Json& time :
       {Json(-1), Json(0), Json(0.5), Json(1), Json(8.9e9), Json(9e9), Json("5"), Json("1.2.3s"), Json("2 min")}) {
    judge("/checkpoint/every_s", time);
    judge("/checkpoint/every_s", Json::array({time}));
    judge("/checkpoint/write_s", time);
    judge("/restart_s", time);
  }
}

TEST_CASE("what is wrong with failure rates is said, of their texts too") {
  const Json rates = {{"schema", "gccl/failures/1"},
                      {"name", "n"},
                      {"source", "s"},
                      {"description", "d"},
                      {"causes", {{{"cause", "c"}, {"per_card_day", 0.001}, {"note", "n"}}}}};
  const JsonSchema schema(read_json(kRoot / "sim/availability/failures.schema.json"));
  const auto complaint = [&](const char* pointer, const Json& value) {
    return judged_alike(schema, rates, pointer, value,
                        [](const Json& changed) { read_rates(json::Node::parse(changed.dump(), "rates.json")); });
  };
  CHECK(complaint("/name", "other") == "accepted");
  for (const char* pointer : {"/name", "/source", "/description", "/causes/0/cause", "/causes/0/note"})
    CHECK(complaint(pointer, 7) == fmt::format("rates.json: {}: found 7, expected a string", pointer));
  CHECK(complaint("/causes/0/per_card_day", 2).find("/causes/0/per_card_day: found 2") != std::string::npos);
}
