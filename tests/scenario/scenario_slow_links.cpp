// Scenarios whose ranks look for slow links: what they find, agree on and plan around, in virtual time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "tests/scenario/played.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// One rank on each of four leaves, so that each uplink carries what one rank sends another.
const Json kFourLeaves = on_cards({0, 68, 136, 204}, "ethernet-cpu");
const Json kThreeLeaves = on_cards({0, 68, 136}, "ethernet-cpu");
// Of what rank 1 sends, that to rank 2.
const char* const kUplink = "leaf1->spine2";

Json slow_after(int operations, const Json& more = Json::object()) {
  Json fault = {{"kind", "link_degraded"},
                {"link", kUplink},
                {"after", {{"rank", 0}, {"operations", operations}}},
                {"bandwidth_percent", 5}};
  fault.update(more);
  return fault;
}

Json run_of(const Json& faults, const Json& recovery = Json::object(), const Json& more = Json::object()) {
  Json run = {{"collective", "allreduce"},
              {"bytes", "4MiB"},
              {"dtype", "f64"},
              {"algorithms", "ring"},
              {"chunks", 1},
              {"repeats", 14},
              {"faults", faults},
              {"compute_us", "50ms"},
              {"recovery",
               {{"policy", "shrink"},
                {"detection_us", "1s"},
                {"link_slow", 4},
                {"wire", "connections"},
                {"frame_bytes", "128KiB"}}}};
  run["recovery"].update(recovery);
  run.update(more);
  return Json::array({run});
}

Json faults_of(const Json& runs, const Json& world = kFourLeaves, std::uint64_t seed = 1) {
  const Json row = rows_of(runs, world, seed)[0];
  CHECK(row["wrong"] == 0);
  Json faults = row["faults"];
  CHECK(faults["violations"].empty());
  faults["operations"] = row["operations"];
  return faults;
}

std::vector<std::string> news(const Json& faults) {
  std::vector<std::string> all;
  for (const Json& e : faults["events"])
    if (e["event"] == "link_slow" || e["event"] == "link_recovered" || e["event"] == "planned_around")
      all.push_back(e["text"]);
  return all;
}

double took_us(const Json& faults, std::size_t operation) {
  const Json& o = faults["operations"][operation];
  return o["end_us"].get<double>() - o["begin_us"].get<double>();
}

}  // namespace

TEST_CASE("what is wrong with looking for slow links is said") {
  const auto why = [](const Json& recovery, const Json& more = Json::object()) {
    return complaint_of_run(run_of(Json::array(), recovery, more), kFourLeaves);
  };
  CHECK(why(Json::object()) == "accepted");
  CHECK(why({{"link_slow", 1}}) == "/recovery/link_slow: found 1, expected 0 (nobody looks) or a factor of 2 at least");
  CHECK(why({{"link_slow", 1001}}).starts_with("/recovery/link_slow: "));
  CHECK(why({{"link_slow", 0}, {"link_avoid", true}})
            .starts_with("/recovery/link_avoid: is about links that are slow, which nobody looks for"));
  CHECK(why({{"link_slow", 0}}, {{"expect", {{"slow_links", Json::array()}}}})
            .starts_with("/expect/slow_links: is about slow links, which nobody looks for"));
  CHECK(why({{"link_slow", 0}}, {{"expect", {{"max_link_detection_us", 5}}}})
            .starts_with("/expect/max_link_detection_us: is about slow links"));
  CHECK(why(Json::object(), {{"expect", {{"slow_links", {{2, 2}}}}}}) ==
        "/expect/slow_links/0: found rank 2 twice, expected two ranks");
  CHECK(why(Json::object(), {{"expect", {{"slow_links", {{1, 2}, {2, 1}}}}}}) == "/expect/slow_links/1: appears twice");
  CHECK(why(Json::object(), {{"engine", "flow"}, {"compute_us", 0}})
            .starts_with("/recovery/link_slow: engine \"flow\" plays no ranks that look for slow links"));
}

TEST_CASE("slow links are expected of ranks that are there, are enough, and are on several nodes") {
  const auto why = [](const Json& expect, const Json& world = kFourLeaves, const Json& recovery = Json::object()) {
    return complaint_of_run(run_of(Json::array(), recovery, {{"expect", expect}}), world);
  };
  const auto pairs = [](const Json& all) { return Json{{"slow_links", all}}; };
  CHECK(why(pairs({{1, 3}, {0, 2}})) == "accepted");
  CHECK(why(pairs({{1, 2}, {4, 0}})) == "/expect/slow_links/1/0: found rank 4, expected one below 4");
  const Json spare = {{"policy", "spare"}, {"spares", 1}};
  CHECK(why(pairs({{1, 4}}), kFourLeaves, spare) == "accepted");
  CHECK(why(pairs({{1, 5}}), kFourLeaves, spare) ==
        "/expect/slow_links/0/1: found rank 5, expected one below 5 (with the spares)");
  Json several = kFourLeaves;
  several["ranks"] = {3, 4};
  several.erase("placement");
  const std::string text = why(pairs({{1, 3}}), several);
  CHECK(text ==
        "/expect/slow_links/0/1: found rank 3, expected one below 3; \"cluster\" and \"ranks\" beside it say "
        "which results it is about");
  // Fewer than three do not know what their links should reach.
  Json two = kFourLeaves;
  two["ranks"] = 2;
  two["placement"] = {{"cards", {0, 68}}};
  const std::string few = ": is about slow links, of which 2 ranks say nothing; expected 3 ranks at least";
  CHECK(why(pairs({{0, 1}}), two) == "/expect/slow_links" + few);
  CHECK(why(pairs(Json::array()), two) == "/expect/slow_links" + few);
  CHECK(why({{"max_link_detection_us", 5}}, two) == "/expect/max_link_detection_us" + few);
  CHECK(why(Json::object({{"completed", true}}), two) == "accepted");
  Json shared = kFourLeaves;
  shared["placement"] = {{"cards", {0, 1, 68, 136}}};
  CHECK(why(pairs({{0, 2}}), shared) == "accepted");
  CHECK(why(pairs({{1, 2}, {1, 0}}), shared) ==
        "/expect/slow_links/1: found ranks 1 and 0 of one node, where no links are looked at; expected ranks of two");
}

TEST_CASE("a slow link is found, planned around at one operation, and the same seed is the same run") {
  const Json runs = run_of(Json::array({slow_after(4)}));
  const Json found = faults_of(runs);
  CHECK(found == faults_of(runs));
  CHECK(found["completed"] == true);
  CHECK(found["slow_links"] == Json::array({{1, 2}}));
  CHECK(found["plans_changed"] == 1);
  const auto said = news(found);
  REQUIRE(said.size() == 2);
  CHECK(said[0].starts_with("the link from rank 1 to rank 2 is slow, "));
  const std::string planned = "calls are planned around the link between rank 1 and rank 2, from operation ";
  REQUIRE(said[1].starts_with(planned));
  // The 4 MiB come in 2.1 MB a step over a link of 34 MB/s: six steps of 61 ms, where 3 ms are usual.
  const auto first = std::stoul(said[1].substr(planned.size()));
  for (std::size_t o = 0; o < 14; ++o) {
    CAPTURE(o);
    const double ms = took_us(found, o) / 1e3;
    if (o < 4 || o >= first) CHECK(ms < 20);
    if (o > 4 && o < first) CHECK(ms > 100);
  }
  CHECK(found["throughput_after_percent"].get<double>() > 95);
  CHECK(found["link_detection_us"].get<double>() < 1.5e6);
}

TEST_CASE("without planning around it a slow link is reported alone, and without looking it is not") {
  const Json reported = faults_of(run_of(Json::array({slow_after(4)}), {{"link_avoid", false}}));
  CHECK(reported["slow_links"] == Json::array({{1, 2}}));
  CHECK(reported["plans_changed"] == 0);
  CHECK(reported["throughput_after_percent"].get<double>() < 20);
  const Json unseen = faults_of(run_of(Json::array({slow_after(4)}), {{"link_slow", 0}}));
  CHECK(unseen["slow_links"].empty());
  CHECK(unseen["link_detection_us"].is_null());
  CHECK(news(unseen).empty());
}

TEST_CASE("three ranks, which have one ring, take an algorithm that sends nothing between the two") {
  const Json more = {{"algorithms", "auto"}, {"repeats", 16}};
  const Json ring = faults_of(run_of(Json::array({slow_after(4)})), kThreeLeaves);
  CHECK(ring["slow_links"] == Json::array({{1, 2}}));
  CHECK(ring["throughput_after_percent"].get<double>() < 20);
  const Json free = faults_of(run_of(Json::array({slow_after(4)}), Json::object(), more), kThreeLeaves);
  CHECK(free["slow_links"] == Json::array({{1, 2}}));
  CHECK(free["throughput_after_percent"].get<double>() > 30);
}

TEST_CASE("a link that is well again is tried, and calls are planned as before") {
  const Json found = faults_of(run_of(Json::array({slow_after(3, {{"for_us", "9s"}})}), {{"limit_us", "100s"}},
                                      {{"compute_us", "2s"}, {"repeats", 26}}));
  CHECK(found["completed"] == true);
  const auto said = news(found);
  REQUIRE(said.size() == 4);
  CHECK(said[0].starts_with("the link from rank 1 to rank 2 is slow, "));
  CHECK(said[1].starts_with("calls are planned around the link between rank 1 and rank 2"));
  CHECK(said[2].starts_with("calls are planned as if no link were slow"));
  CHECK(said[3] == "the link from rank 1 to rank 2 is no longer slow");
  CHECK(found["plans_changed"] == 2);
}

TEST_CASE("two links that are slow are both planned around where a ring allows that") {
  Json other = slow_after(4);
  other["link"] = "leaf3->spine0";
  const Json found = faults_of(run_of(Json::array({slow_after(4), other})));
  CHECK(found["slow_links"] == Json::array({{1, 2}, {3, 0}}));
  CHECK(found["throughput_after_percent"].get<double>() > 95);
}

TEST_CASE("links inside nodes, which are faster by design, are not looked at and not compared with") {
  const Json pairs = {{"cluster", "../topologies/ethernet-cpu.json"},
                      {"ranks", 8},
                      {"placement", {{"cards", {0, 1, 68, 69, 136, 137, 204, 205}}}}};
  const Json found = faults_of(run_of(Json::array({slow_after(4)})), pairs);
  for (const Json& l : found["slow_links"]) CHECK((l[0].get<int>() / 2 == 1 && l[1].get<int>() / 2 == 2));
  const auto said = news(found);
  REQUIRE(said.size() >= 1);
  const auto at = said[0].find("where ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(said[0].substr(at + 6)) < 688);  // MB/s of a NIC; memory has 10000
}

// Without computing, reports follow on operations at once, and a crash comes before, during and behind one.
TEST_CASE("a rank that crashes around a report is shrunk away, and those left look anew") {
  std::set<std::string> traces;
  for (const int at_us : {0, 5, 50, 100, 300, 1000, 2000, 4000}) {
    CAPTURE(at_us);
    const Json crash = {
        {"kind", "rank_crash"}, {"rank", 3}, {"after", {{"rank", 3}, {"operations", 3}}}, {"at_us", at_us}};
    const Json found = faults_of(run_of(Json::array({crash}), {{"detection_us", "100ms"}},
                                        {{"compute_us", 0}, {"repeats", 6}, {"expect", {{"completed", true}}}}));
    CHECK(found["completed"] == true);
    CHECK(found["dead"] == Json::array({3}));
    CHECK(found["slow_links"].empty());
    CHECK(found["false_alarms"].empty());
    CHECK(found["lost"] == 0);
    CHECK(found["doubled"] == 0);
    traces.insert(found["trace"]);
  }
  CHECK(traces.size() >= 4);
}

TEST_CASE("a rank that comes in a failed one's place reports with the others") {
  const Json crash = {{"kind", "rank_crash"}, {"rank", 2}, {"after", {{"rank", 2}, {"operations", 2}}}};
  const Json found = faults_of(run_of(Json::array({crash, slow_after(8)}),
                                      {{"policy", "rejoin"}, {"detection_us", "200ms"}}, {{"repeats", 24}}));
  CHECK(found["completed"] == true);
  CHECK(found["dead"] == Json::array({2}));
  CHECK(found["slow_links"] == Json::array({{1, 2}}));
  CHECK(found["plans_changed"] == 1);
}
