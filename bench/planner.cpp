// What a decision costs: a lookup in a tuning table, a plan by it, a plan by the model, and a call of NCCL's tuner.
// bench_planner [CLUSTER] [RANKS]: microseconds, the least of several rounds.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/select/plan.hpp"
#include "nccl_tuner/abi.hpp"

using namespace gccl;

namespace {

using Clock = std::chrono::steady_clock;

double us_of(int calls, const std::function<void(int)>& f) {
  double best = 1e300;
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) f(i);
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
  }
  return best;
}

// As long as a sweep of all collectives by powers of two would leave.
TuningTable table_of(Rank ranks, Rank nodes) {
  TuningTable t{
      .file = "table.json", .name = "t", .machine = {.cluster = "c", .nodes = nodes, .cards_per_node = ranks / nodes}};
  for (const Collective kind : {Collective::allreduce, Collective::allgather, Collective::reduce_scatter})
    for (Rank n = 2; n <= ranks; n *= 2)
      for (int b = 0; b < 28; ++b)
        t.entries.push_back({.ranks_min = n,
                             .ranks_max = 2 * n - 1,
                             .from_bytes = b ? Count(4) << b : 0,
                             .to_bytes = b < 27 ? Count(8) << b : TuningTable::Entry::kNoEnd,
                             .algorithm = find_algorithm(kind, "ring"),
                             .chunks = 8,
                             .channels = 4});
  return t;
}

void tuner(const char* what, const std::string& table, const std::string& cluster, Rank ranks, Rank nodes) {
  ::setenv("GCCL_TUNING_FILE", table.c_str(), 1);
  ::setenv("GCCL_CLUSTER", cluster.c_str(), 1);
  void* const library = ::dlopen(GCCL_TUNER, RTLD_NOW | RTLD_LOCAL);
  const auto* const plugin =
      library ? static_cast<const nccl::TunerV6*>(::dlsym(library, "ncclTunerPlugin_v6")) : nullptr;
  if (!plugin) {
    fmt::print("no tuner: {}\n", ::dlerror());
    return;
  }
  void* context = nullptr;
  const auto begin = Clock::now();
  plugin->init(&context, 1, ranks, nodes, nullptr, nullptr, nullptr);
  fmt::print("{}, made       {:12.0f}\n", what,
             std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  float costs[7][3] = {};
  int channels = 0;
  fmt::print("{}, asked      {:12.4f}\n", what, us_of(1000000, [&](int i) {
               plugin->get(context, i % 5, std::size_t(1) << (i % 32), 1, reinterpret_cast<float**>(costs), 7, 3, 0,
                           &channels);
             }));
  plugin->finalize(context);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "topologies/dgx-h100-superpod-2048.json";
  const auto cluster = load_cluster(file);
  const Rank ranks = argc > 2 ? Rank(std::atoi(argv[2])) : cluster->cards();
  std::vector<Card> cards(ranks);
  for (Rank r = 0; r < ranks; ++r) cards[r] = r;
  const Layout layout = layout_of(*cluster, cards);
  const View view = layout.view(0);
  Authorities authorities;
  authorities.table = std::make_shared<const TuningTable>(table_of(ranks, view.nodes));
  authorities = authorities.on(ranks, view.nodes);
  std::uintptr_t sum = 0;
  fmt::print("# us, {} ranks on {} nodes, a table of {} entries\n", ranks, view.nodes,
             authorities.table->entries.size());
  fmt::print("lookup in a table      {:12.4f}\n", us_of(1000000, [&](int i) {
               sum += std::uintptr_t(authorities.entries.find(Collective::allreduce, Count(1) << (i % 30)));
             }));
  std::vector<CostModel> models;
  fmt::print("cost models            {:12.0f}\n", us_of(1, [&](int) {
               models.clear();
               for (const Protocol& p : cluster->protocols()) models.push_back(cost_model(*cluster, cards, 4, p));
             }));
  Tuning measured, searched;
  searched.search = true;
  searched.channels_max = 32;
  const auto planned = [&](CostModels by, const Tuning& tuning, const Authorities& a, Collective kind) {
    return [&, by, kind](int i) {
      const Plan p = plan({.kind = kind, .count = Count(1) << (i % 26)}, view, by, tuning, a);
      sum += p.slicing.shares;
    };
  };
  const CostModels one(models.data(), 1);
  fmt::print("plan by a table        {:12.4f}\n",
             us_of(100000, planned(one, measured, authorities, Collective::allreduce)));
  fmt::print("plan by the model      {:12.2f}\n", us_of(260, planned(one, measured, {}, Collective::allreduce)));
  fmt::print("with all slicings      {:12.2f}\n", us_of(26, planned(models, searched, {}, Collective::allreduce)));
  std::string folder = (std::filesystem::temp_directory_path() / "gccl-bench-XXXXXX").string();
  if (::mkdtemp(folder.data())) {
    const std::string written = folder + "/table.json";
    std::ofstream(written) << write_tuning_table(*authorities.table);
    tuner("NCCL, by a table", written, "", ranks, view.nodes);
    std::filesystem::remove_all(folder);
  }
  tuner("NCCL, by a plan ", "", file, ranks, view.nodes);
  return sum == 1;
}
