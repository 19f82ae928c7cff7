// Scenarios on clusters whose parameters name "backends": plans are those of real communicators, and what the planner
// decides distinguishes no results.
#include <doctest/doctest.h>

#include <set>

#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/communicator/setting.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/table.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "tests/scenario/stand_ins.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const Json kHost = {{"cluster", "../topologies/host.json"}, {"ranks", 12}};

// Two nodes of six cards, with these backends.
class TwoNodes {
 public:
  explicit TwoNodes(const std::string& backends) {
    const Json cluster = {{"schema", "gccl/cluster/1"},
                          {"name", "two"},
                          {"parameters",
                           {{"base", (kRoot / "cost-models/host.json").string()},
                            {"backends", backends},
                            {"links", {{"nic", {{"bandwidth_GBps", 1.25}, {"latency_ns", 7000}}}}}}},
                          {"nodes",
                           {{{"count", 2},
                             {"cards", 6},
                             {"inside", {{"kind", "switch"}, {"link", "memory"}}},
                             {"nics", {{"count", 1}, {"bus", "memory"}, {"port", "nic"}}}}}},
                          {"fabric", {{"kind", "switch"}}}};
    file_ = folder_.write("two.json", cluster.dump());
  }
  Json more(int ranks) const { return {{"cluster", file_.string()}, {"ranks", ranks}}; }

 private:
  Folder folder_;
  std::filesystem::path file_;
};

const Json kBroadcasts = {
    {"collective", "broadcast"}, {"bytes", {"8KiB", "1MiB", "16MiB"}}, {"algorithms", {"all", "auto"}}};

}  // namespace

TEST_CASE("tables and findings have a column for each algorithm, however the planner cuts it up") {
  const Json result = result_of(plan_of(Json::array({kBroadcasts}), kHost));
  std::set<Json> cuts;
  for (const Json& row : result["runs"]) {
    CHECK(row["planned"] == true);
    cuts.insert(row["chunks"]);
  }
  REQUIRE(cuts.size() > 1);
  const std::string table = result_tables(result, 1000);
  CAPTURE(table);
  CHECK(table.find(", chunks") == std::string::npos);
  CHECK(table.find("\n  16 MiB ") != std::string::npos);
  CHECK(findings(result)[0]["headline"].get<std::string>().starts_with("use chain at every size"));
  // What a run states is reported.
  Json stated = kBroadcasts;
  stated["chunks"] = 4;
  Json several = result_of(plan_of(Json::array({kBroadcasts, stated}), kHost));
  for (Json& row : several["runs"])
    if (row["planned"] == true) row["time_us"] = 2 * row["time_us"].get<double>();
  CHECK(findings(several)[0]["headline"].get<std::string>().starts_with("use chain, chunks 4"));
}

TEST_CASE("a stored result is about the same point however the planner cut it up then") {
  const Folder folder;
  const std::filesystem::path file = folder.path / "planned.json";
  Json expecting = kBroadcasts;
  expecting["expect"] = {{"within_percent_of", {{"result", file.string()}, {"percent", 0}}}};
  const auto outcome = [&](const Json& stored, const Json& run) {
    std::ofstream(file) << stored.dump();
    return refusal(Json::array({run}), kHost);
  };
  const Json now = result_of(plan_of(Json::array({kBroadcasts}), kHost));
  Json otherwise = now, older = now, stated = now;
  for (Json& row : otherwise["runs"]) row["chunks"] = 77;
  for (Json& row : older["runs"]) row.erase("planned"), row["window"] = 5;
  for (Json& row : stated["runs"]) row["chunks"] = 77, row["planned"] = false;
  CHECK(outcome(now, expecting) == "accepted");
  CHECK(outcome(otherwise, expecting) == "accepted");
  CHECK(outcome(older, expecting) == "accepted");
  CHECK(outcome(stated, expecting).find("the nearest has chunks 77 instead of ") != std::string::npos);
  Json four = expecting;
  four["chunks"] = 4;
  CHECK(outcome(otherwise, four).find("the nearest has ") != std::string::npos);
  // Between two rows that differ in this alone, the one that is cut up alike is taken.
  Json both = older;
  for (Json row : now["runs"]) row["time_us"] = 1e-6, both["runs"].push_back(row);
  std::ofstream(file) << both.dump();
  const Json judged = result_of(plan_of(Json::array({expecting}), kHost));
  CHECK(judged["ok"] == false);
}

TEST_CASE("each group is planned for itself, as a communicator of its ranks would be") {
  const TwoNodes two("shm,tcp");
  // Of different sizes; and of one size, on one node and on two.
  const std::vector<std::vector<Rank>> kGroups[] = {{{0, 1}, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {{0, 1, 2}, {3, 6, 7}}};
  for (const auto& groups : kGroups) {
    std::size_t differ = 0;
    for (const char* kind : {"allreduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "reduce"})
      for (const int bytes : {480, 480'000}) {
        const Json run = {{"collective", kind}, {"bytes", bytes}, {"groups", groups}};
        const sim::Campaign plan = plan_of(Json::array({run}), two.more(12));
        const PreparedWorkload prepared = prepare(plan, plan.points.at(0));
        std::set<std::string_view> names;
        for (std::size_t g = 0; g < groups.size(); ++g) {
          Json alone = run;
          alone["groups"] = Json::array({groups[g]});
          const sim::Campaign own = plan_of(Json::array({alone}), two.more(12));
          const gccl::Plan& expected = own.points.at(0).part().plan();
          const SimulatedOperation& o = prepared.workload.operations.at(g);
          CAPTURE(kind);
          CAPTURE(g);
          CHECK(o.algorithm == expected.algorithm);
          CHECK(Slicing{o.shares, o.lanes, o.window} == expected.slicing);
          CHECK(*plan.points[0].predicted_us >= *own.points[0].predicted_us);
          names.insert(o.algorithm->name);
        }
        differ += names.size() > 1;
        const std::string named = row_head(plan, plan.points[0])["algorithm"];
        CHECK((named.find(" + ") != std::string::npos) == (names.size() > 1));
      }
    CHECK(differ > 0);
  }
}

TEST_CASE("a prediction is by the costs that the choice was made with") {
  const sim::Campaign plan = plan_of(Json::array({kBroadcasts}), kHost);
  const TransportModel& memory = transport_model("shared-memory");
  const View view = Layout::flat(12).view(0);
  for (const Point& p : plan.points) {
    const Call call{.kind = Collective::broadcast, .count = p.part().bytes / 4};
    const gccl::Plan& planned = p.part().plan();
    const CostModel costs = memory.costs_on(view, 4);
    CHECK(*p.predicted_us ==
          doctest::Approx(predicted(*planned.algorithm, call, view, costs, planned.slicing, memory.tuning) / 1e3));
    if (p.automatic) CHECK(planned.algorithm == gccl::plan(call, view, costs, memory.tuning).algorithm);
  }
}

TEST_CASE("every rank of a real communicator plans what the scenario plans") {
  const std::vector<std::vector<Rank>> kRanks[] = {
      {{0, 1, 2, 3, 4}}, {{0, 1, 2, 6, 7}}, {{0, 6, 1, 7}}, {{7, 0, 8, 9}}, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}};
  for (const std::string backends : {"shm,tcp", "tcp"}) {
    const TwoNodes two(backends);
    for (const auto& groups : kRanks) {
      std::vector<Rank> node_of;
      for (const Rank r : groups[0]) node_of.push_back(r / 6);
      const Layout layout = Layout::of(node_of);
      const Rank n = layout.ranks();
      for (std::size_t kind = 0; kind < collective_names().size(); ++kind)
        for (const Count bytes : {Count(600), Count(600'000), Count(60'000'000)}) {
          Json run = {{"collective", collective_names()[kind]}, {"dtype", "u8"}, {"groups", groups}};
          if (Collective(kind) != Collective::barrier) run["bytes"] = bytes;
          const sim::Campaign plan = plan_of(Json::array({run}), two.more(12));
          const gccl::Plan& planned = plan.points.at(0).part().plan();
          CHECK(plan.points[0].part().sliced);
          const bool blocks = total_bytes(Collective(kind), 1, n, 1) > 1;
          const Count count = Collective(kind) == Collective::barrier ? 0 : blocks ? bytes / n : bytes;
          const auto every = [](const void* c, Rank, Rank) { return *static_cast<const Count*>(c); };
          const Call call{.kind = Collective(kind), .count = count, .counts = every, .table = &count};
          for (Rank rank = 0; rank < n; ++rank) {
            Setting s;
            s.in_memory = backends.starts_with("shm") && layout.view(0).nodes == 1;
            s.cost_model = s.in_memory ? "shm" : "tcp";
            s.use(layout, rank);
            const gccl::Plan real = gccl::plan(call, s.first, s.costs, s.tuning);
            CAPTURE(collective_names()[kind]);
            CAPTURE(bytes);
            CAPTURE(rank);
            REQUIRE(real.algorithm);
            CHECK(real.algorithm->name == planned.algorithm->name);
            CHECK(real.slicing == planned.slicing);
          }
        }
    }
  }
}

TEST_CASE("ranks that share memory alone are on one node") {
  const TwoNodes two("shm");
  const Json run = {{"collective", "allreduce"}, {"bytes", 64}};
  CHECK(refusal(Json::array({run}), two.more(6)) == "accepted");
  CHECK(refusal(Json::array({run}), two.more(7))
            .ends_with("/cluster: no backend of \"shm\" reaches ranks on another node, and the 7 ranks on two are on "
                       "several; expected \"backends\": \"shm,tcp\" in its parameters, or ranks on one node"));
}

TEST_CASE("backends are what GCCL_BACKENDS can be with what comes with GCCL") {
  const Json run = {{"collective", "allreduce"}, {"bytes", 1 << 20}};
  for (const char* backends : {"tcp", "shm,tcp", "tcp,shm", "mpi", "shm,mpi"})
    CHECK(refusal(Json::array({run}), TwoNodes(backends).more(12)) == "accepted");
  CHECK(refusal(Json::array({run}), TwoNodes("ucx").more(12)).find("/backends: found \"ucx\"") != std::string::npos);
  // The first backend that reaches a peer is used.
  const auto planned = [&](const char* backends) {
    const TwoNodes two(backends);
    return plan_of(Json::array({run}), two.more(6)).points[0].part().plan().slicing;
  };
  CHECK(planned("tcp,shm") == planned("tcp"));
}
