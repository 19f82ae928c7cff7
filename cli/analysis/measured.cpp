#include "cli/analysis/measured.hpp"

#include <fmt/format.h>

#include <thread>

#include "cli/analysis/live.hpp"
#include "cli/catalogue.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {

void add_measured_options(Command& command, MeasuredArguments& a, bool live) {
  command
      .add_option("measured", a.files,
                  "Measurements: CSV, what nccl-tests, rccl-tests, an OSU benchmark, IMB-MPI1, oneCCL's "
                  "benchmark, ucc_perftest or hccl_test printed, JSON of nccl-tests, rccl-tests or gccl bench, or NCCL "
                  "Inspector's JSON")
      ->required_unless(a.live)
      ->value("MEASURED");
  if (live)
    command.add_flag("--live", a.live,
                     "Instead measure this machine now, with gccl bench on --cards-per-node ranks (default: one per "
                     "core); --collective names what, by default all");
  command
      .add_option("--cluster", a.cluster,
                  fmt::format("Cluster description, or the name of a shipped one (gccl list topologies){}",
                              live ? "; with --live by default host" : ""))
      ->required_unless(a.live)
      ->value("CLUSTER");
  command
      .add_option("--system", a.system, "Only rows of systems with this in their name; the name where a file has none")
      ->value("TEXT");
  command
      .add_option("--collective", a.collective, "Only rows of this collective; the collective where a file says none")
      ->value("NAME");
  command.add_option("--nodes", a.nodes, "Only rows on so many nodes; their number where a file does not say it")
      ->check(Range{1, 1 << 20});
  command
      .add_option("--cards-per-node", a.cards,
                  "Only rows with so many cards on a node; their number where a file does not say it")
      ->check(Range{1, 1 << 20});
}

std::vector<std::filesystem::path> inputs_of(const MeasuredArguments& a) {
  std::vector<std::filesystem::path> all(a.files.begin(), a.files.end());
  for (const auto& file : files_of_cluster(a)) all.push_back(file);
  return all;
}

namespace {

sim::StatedOfRows stated_by(const MeasuredArguments& a) {
  sim::StatedOfRows stated;
  stated.system = a.system;
  if (a.nodes) stated.nodes = Rank(*a.nodes);
  if (a.cards) stated.cards = Rank(*a.cards);
  if (!a.collective.empty()) {
    stated.collective = sim::measured_collective(a.collective);
    if (!stated.collective)
      throw json::InputError(
          fmt::format("--collective: found \"{}\"{}", a.collective, suggestion(a.collective, collective_names())));
  }
  return stated;
}

}  // namespace

sim::Measured read_measured(const MeasuredArguments& a) {
  return sim::read_measurements(std::vector<std::filesystem::path>(a.files.begin(), a.files.end()), stated_by(a));
}

sim::Measured measured_now(const MeasuredArguments& a, const Cluster& cluster) {
  const sim::StatedOfRows stated = stated_by(a);
  if (!a.files.empty()) throw json::InputError(fmt::format("--live: found {} too, expected no files", a.files[0]));
  if (a.nodes.value_or(1) != 1)
    throw json::InputError(fmt::format("--nodes: found {}, expected 1: --live measures this machine", *a.nodes));
  Rank cards = 0;
  while (cards < cluster.cards() && cluster.node_of(cards) == 0) ++cards;
  const Rank ranks = a.cards ? Rank(*a.cards) : std::min(cards, std::max(2u, std::thread::hardware_concurrency()));
  if (ranks < 2 || ranks > cards)
    throw json::InputError(fmt::format("--cards-per-node: found {}, expected 2 to {}: the cards of a node of {}", ranks,
                                       cards, cluster.name()));
  const std::string what = stated.collective ? std::string(name(*stated.collective)) : "all";
  const std::vector<sim::MeasuredText> texts = {{fmt::format("gccl bench -n {}", ranks), measure_live(ranks, what)}};
  return sim::read_measurements(texts, stated);
}

sim::MeasuredClusters load_measured_clusters(const MeasuredArguments& a) {
  if (!a.parameters.empty()) return load_cluster(a);
  const ClusterUnder mpi = load_mpi_cluster(a);
  if (!mpi.cluster) return load_cluster(a);
  return {load_cluster(a), mpi.cluster};
}

MeasuredSet measured_set(const MeasuredArguments& a, const json::Node& description,
                         const std::vector<sim::Measurement>& rows) {
  if (!a.parameters.empty()) return {load_parameters(parameters_file_of(a)), parameters_file_of(a), {}};
  const bool two = description.has("mpi_parameters");
  const sim::RowKinds kinds = sim::kinds_of(rows);
  if (two && kinds.mpi > 0 && kinds.others > 0)
    throw json::InputError(
        fmt::format("{} measured row{} of MPI libraries and {} of others, and {} has parameters for each, expected "
                    "rows of one kind: choose them by --collective or --system, or state --parameters",
                    kinds.mpi, kinds.mpi == 1 ? " is" : "s are", kinds.others, description.at("name").string()));
  const json::Node value = description.at(two && kinds.mpi > 0 ? "mpi_parameters" : "parameters");
  return {read_parameters(value), value.is_string() ? parameters_file(value) : std::filesystem::path(), value.raw()};
}

}  // namespace gccl
