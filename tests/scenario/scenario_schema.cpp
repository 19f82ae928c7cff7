// The schema of scenarios: it judges as the reader does, and shipped scenarios and the documentation hold to it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/scenario/judge/check.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("schema and reader judge every changed document alike") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  Json original = Json::parse(R"({
    "schema": "gccl/scenario/1", "name": "n", "description": "d", "cluster": ["../topologies/pcie-box.json"], "ranks": [8],
    "placement": "packed", "seed": 1,
    "runs": [
      { "label": "l", "collective": "allreduce", "bytes": {"from": 8, "to": 64, "factor": 2}, "dtype": "f32", "op": "sum",
        "in_place": false, "algorithms": ["all", "auto"], "chunks": 4, "channels": 1, "window": 8, "protocol": "auto", "groups": {"size": 4, "stride": 2},
        "engine": ["model"], "payload": "verify", "stragglers": [{"rank": 1, "start_us": 5, "slowdown": 2}],
        "expect": [{"bytes": 8, "engine": "model", "ranks": 8, "algorithm": "auto", "max_time_us": 1, "min_time_us": 1, "min_busbw_GBps": 1,
                    "correct": true, "within_percent_of": {"algorithm": "best", "percent": 3}},
                   {"bytes": 8, "within_percent_of": {"run": "m", "percent": 3}},
                   {"bytes": 8, "within_percent_of": {"result": "FILE", "percent": 3}}] },
      { "label": "m", "collective": "allreduce", "bytes": 8 },
      { "sequence": [{"collective": "alltoallv", "bytes": 64, "dtype": "f32", "in_place": false, "algorithm": "auto", "shares": 2,
                      "lanes": 1, "window": 2, "protocol": "auto", "groups": {"stride": 2}, "counts": {"distribution": "random", "seed": 4}}],
        "engine": "model", "payload": "none" },
      { "concurrent": [[{"collective": "broadcast", "bytes": 64, "root": 1}], [{"collective": "barrier"}]] } ] })");
  const Folder folder;
  const std::filesystem::path stored = folder.write("stored.json", R"({"schema":"gccl/result/1","runs":[]})");
  original["runs"][0]["expect"][2]["within_percent_of"]["result"] = stored.string();
  std::size_t changed = 0, refused = 0;
  const auto judge = [&](const Json& document) {
    std::string why = "accepted";
    try {
      scenario_of(document);
    } catch (const json::InputError& e) {
      why = e.what();
    }
    CAPTURE(document.dump());
    CAPTURE(why);
    CHECK(schema.accepts(document) == (why == "accepted"));
    ++changed;
    refused += why != "accepted";
  };
  judge(original);
  REQUIRE(refused == 0);
  // Rules that join two values are the reader's alone: these keys' values and absence are judged elsewhere.
  const auto joined = [](const std::string& path, const Json& value) {
    for (const char* key :
         {"/bytes", "/algorithm", "/ranks", "/cluster", "/engine", "/correct", "/channels", "/lanes", "/algorithms",
          "/collective", "/max_time_us", "/chunks", "/shares", "/factor", "/to", "/from", "/label", "/run", "/result"})
      if (path.ends_with(key) && (value.is_string() || (value.is_number() && value >= 0) || value.is_array()))
        return true;
    return path.ends_with("/root") || path.ends_with("/counts") || path.ends_with("/op") ||
           (path.ends_with("/payload") && value == "none");
  };
  const Json kValues[] = {nullptr, true,          false,          -1,        0, 0.5, 1e300, "", "x",
                          "none",  Json::array(), Json::object(), {{"x", 1}}};
  const auto visit = [&](auto&& self, const Json::json_pointer& at) -> void {
    const Json& value = original[at];
    if (value.is_object())
      for (const auto& [key, child] : value.items()) {
        Json document = original;
        const std::string path = (at / key).to_string();
        document[at].erase(key);
        const bool needed = path.ends_with("/bytes") || path.ends_with("/payload") || path.ends_with("/chunks") ||
                            path.ends_with("/shares") || path.ends_with("/counts") || path == "/runs/1/label";
        if (!needed) judge(document);
        document[at][key + "z"] = child;
        judge(document);
        document[at].erase(key + "z");
        for (const Json& other : kValues) {
          if (joined(path, other)) continue;
          document[at][key] = other;
          judge(document);
        }
        self(self, at / key);
      }
    if (value.is_array())
      for (std::size_t i = 0; i < value.size(); ++i)
        if (value[i].is_structured()) self(self, at / i);
  };
  visit(visit, Json::json_pointer());
  CHECK(changed > 400);
  CHECK(refused > changed / 2);
}

TEST_CASE("schema and reader have the same limits and forms of single values") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  Json modelled = whole(Json::parse(R"([{"collective": "allreduce", "bytes": {"from": 8, "to": "1MiB"}, "dtype": "f32",
    "stragglers": [{"rank": 1, "start_us": 5}], "expect": {"max_time_us": 5}}])"));
  modelled["placement"] = {{"cards", {0, 1}}};
  const Json faulty = whole(Json::parse(R"([{"collective": "allreduce", "bytes": 8, "compute_us": 5,
    "faults": [{"kind": "pause", "rank": 1, "at_us": 1, "every_us": 1000000, "until_us": 2, "for_us": 3},
               {"kind": "link_degraded", "link": "x", "latency_us": 5},
               {"kind": "rank_crash", "rank": 1, "after": {"rank": 1, "steps": 3}}],
    "recovery": {"policy": "spare", "spares": 1, "detection_us": 5000, "replace_after_us": 5, "reroute_after_us": 5,
                 "frame_bytes": 64, "heal_us": 5, "limit_us": 5}}])"));
  std::size_t refused = 0;
  const auto judge = [&](const Json& document, const char* pointer, const Json& value) {
    const std::string why =
        judged_alike(schema, document, pointer, value, [](const Json& changed) { scenario_of(changed); });
    if (why == "accepted") return;
    CAPTURE(why);
    CHECK(why.find(fmt::format(": {}: ", pointer)) != std::string::npos);
    ++refused;
  };
  const double year = 366 * 86400e6, hour = 3600e6;
  const auto times = [&](const Json& document, const char* pointer, double least, double most) {
    for (const double us : {-1.0, 0.0, 0.0004, 0.0005, least, least * 0.999, most, most * 1.001, 8.9e15, 9e15, 1e300})
      judge(document, pointer, us);
    for (const char* text : {"5", "1.2.3ms", ".ms", "1e3", "5 hours", "", "-5ms"}) judge(document, pointer, text);
  };
  times(modelled, "/runs/0/stragglers/0/start_us", 0, hour);
  times(modelled, "/runs/0/expect/max_time_us", 0, 8.9e15);
  times(faulty, "/runs/0/compute_us", 0, hour);
  times(faulty, "/runs/0/recovery/detection_us", 1000, year);
  for (const char* key : {"replace_after_us", "reroute_after_us", "heal_us", "limit_us"})
    times(faulty, fmt::format("/runs/0/recovery/{}", key).c_str(), 0, year);
  times(faulty, "/runs/0/faults/0/for_us", 0.0005, year);
  times(faulty, "/runs/0/faults/1/latency_us", 0, year);
  for (const Json& size :
       {Json("1.5"), Json("0.5"), Json("1.0"), Json("1."), Json(".5KiB"), Json("1.5 MB"), Json("1e3"), Json("1.2.3MB"),
        Json("0.0005EiB"), Json("."), Json("MB"), Json("-1"), Json(1ll << 50), Json((1ll << 50) + 1)})
    judge(faulty, "/runs/0/bytes", size);
  for (const std::int64_t bytes : {0, 1, 1 << 24, (1 << 24) + 1}) judge(faulty, "/runs/0/recovery/frame_bytes", bytes);
  for (const std::int64_t bytes : {0, 1}) judge(modelled, "/runs/0/bytes/from", bytes);
  for (const std::int64_t card : {4294967295ll, 4294967296ll}) judge(modelled, "/placement/cards/1", card);
  for (const Json& steps : {Json(0), Json(std::uint64_t(1) << 62), Json(1e300)})
    judge(faulty, "/runs/0/faults/2/after/steps", steps);
  for (const char* dtype : {"f32", "float32", "fp32", "", "i8", "uint8"}) judge(modelled, "/runs/0/dtype", dtype);
  // A fault that is drawn: one time is a bound of the others.
  for (const Json& every : {Json(0), Json(0.0004), Json(year * 1.001), Json("7")})
    judge(faulty, "/runs/0/faults/0/every_us", every);
  for (const char* key : {"at_us", "until_us"})
    for (const Json& us : {Json(-1), Json("7")}) judge(faulty, fmt::format("/runs/0/faults/0/{}", key).c_str(), us);
  judge(faulty, "/runs/0/faults/0/until_us", year * 1.001);
  CHECK(refused > 100);
}

TEST_CASE("every kind of check is in the schema and in the documentation") {
  const std::string schema = read_json(kRoot / "sim/scenario/scenario.schema.json").dump();
  const std::string formats = read_text(kRoot / "docs/formats.md");
  REQUIRE(checks().size() >= 6);
  for (const Check* check : checks()) {
    CAPTURE(check->key);
    CHECK(schema.find(fmt::format("\"{}\":", check->key)) != std::string::npos);
    CHECK(formats.find(fmt::format("`{}`", check->key)) != std::string::npos);
  }
}

TEST_CASE("every shipped scenario fits the schema and can be planned") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  std::size_t shipped = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "scenarios")) {
    if (entry.is_directory() || entry.path().parent_path().filename() == "availability") continue;
    CAPTURE(entry.path().string());
    CHECK(schema.accepts(read_json(entry.path())));
    const Campaign plan = make_campaign(read_scenario(entry.path()), {});
    CHECK(!plan.points.empty());
    double messages = 0;
    for (const Point& p : plan.points) messages += p.messages;
    CHECK(messages < 6e8);  // a minute on two cores
    ++shipped;
  }
  CHECK(shipped >= 12);
}
