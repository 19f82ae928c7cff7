// gccl explain: why a call is carried out as it is.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <numeric>

#include "cli/authorities.hpp"
#include "cli/cluster_argument.hpp"
#include "cli/commands.hpp"
#include "cli/explain/question.hpp"
#include "cli/output.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/explanation.hpp"

namespace gccl {
namespace {

struct ExplainArguments : ClusterArgument {
  std::string collective = "allreduce", bytes, dtype = "f32", as = "gccl", json, svg;
  std::optional<std::int64_t> ranks, root;
  bool all = false;
};

template <class Names>
[[noreturn]] void unknown(std::string_view option, const std::string& found, const Names& names) {
  throw json::InputError(fmt::format("{}: found \"{}\"{}", option, found, suggestion(found, names)));
}

Question question_of(const ExplainArguments& a) {
  ClusterUnder under;
  if (a.parameters.empty() && a.as == kPlanners[std::size_t(PlannerKind::openmpi)]) under = load_mpi_cluster(a);
  if (!under.cluster) under = {load_cluster(a), json::valid_text(parameters_file_of(a).stem().string())};
  Question q{.cluster = std::move(under.cluster), .parameters = std::move(under.parameters), .cards = {}};
  const Card cards = q.cluster->cards();
  const std::int64_t ranks = a.ranks.value_or(std::int64_t(cards));
  if (ranks > std::int64_t(cards))
    throw json::InputError(fmt::format("--ranks: found {}, but {} has only {} cards", ranks, q.cluster->name(), cards));
  q.cards.resize(std::size_t(ranks));
  std::iota(q.cards.begin(), q.cards.end(), 0);
  if (q.cluster->backends() == "shm" && q.cluster->node_of(q.cards.back()) != q.cluster->node_of(0))
    throw json::InputError(
        fmt::format("--ranks: no backend of \"shm\" reaches ranks on another node of {}; expected "
                    "ranks on one node",
                    q.cluster->name()));
  const auto kind = collective_named(a.collective);
  if (!kind) unknown("--collective", a.collective, collective_names());
  if (has_counts(*kind))
    throw json::InputError(
        fmt::format("--collective: found \"{}\", whose blocks have lengths of their own; expected "
                    "one with blocks of one length, such as \"{}\"",
                    a.collective, std::string_view(a.collective).substr(0, a.collective.size() - 1)));
  q.kind = *kind;
  if (a.bytes.empty() && q.kind != Collective::barrier)
    throw json::InputError("--bytes is missing: expected a size such as 64KiB");
  if (!a.bytes.empty() && q.kind == Collective::barrier) throw json::InputError("--bytes: a barrier has no size");
  if (!a.bytes.empty()) {
    const auto bytes = json::parse_bytes(a.bytes);
    if (!bytes || *bytes > Count(1) << 50)
      throw json::InputError(
          fmt::format("--bytes: found \"{}\", expected a size such as 64KiB, at most 1 PiB", a.bytes));
    q.bytes = *bytes;
  }
  const auto dtype = dtype_named(a.dtype);
  if (!dtype) unknown("--dtype", a.dtype, dtype_names());
  q.dtype = *dtype;
  if (a.root && !has_root(q.kind))
    throw json::InputError(
        fmt::format("--root: {} has no root; expected broadcast, reduce, gather or scatter with it", a.collective));
  if (a.root.value_or(0) >= ranks)
    throw json::InputError(fmt::format("--root: found {}, expected a rank below {}", *a.root, ranks));
  q.root = Rank(a.root.value_or(0));
  const auto as = std::find(kPlanners.begin(), kPlanners.end(), a.as);
  if (as == kPlanners.end()) unknown("--as", a.as, kPlanners);
  q.as = PlannerKind(as - kPlanners.begin());
  q.authorities = authorities_of_environment();
  if (const Status s = check_table(q.authorities, *q.cluster, q.cards); !s.ok()) throw json::InputError(s.text());
  return q;
}

int explain_call(const ExplainArguments& a) {
  if (a.json == "-" && a.svg == "-")
    throw json::InputError("only one of --json and --svg can be written to standard output");
  check_outputs({a.json, a.svg}, files_of_cluster(a));
  const nlohmann::json document = answer(question_of(a));
  if (!a.json.empty()) write_output(a.json, json::format_value(document, 1) + '\n');
  if (!a.svg.empty()) write_output(a.svg, sim::explanation_svg(document));
  if (a.json != "-" && a.svg != "-") write_stdout(sim::explanation_text(document, a.all));
  return 0;
}

}  // namespace

void add_explain(Command& app, int& exit_code) {
  Command* command =
      app.add_subcommand("explain", "Why a call would be carried out as it is, and what would change that");
  const auto a = std::make_shared<ExplainArguments>();
  command->add_option("cluster", a->cluster, "Cluster description, or the name of a shipped one (gccl list topologies)")
      ->required();
  add_parameters_option(*command, *a);
  const auto names = [](auto list) { return OneOf(list.begin(), list.end()); };
  command->add_option("--collective", a->collective, "The collective operation")
      ->value("NAME")
      ->suggest(names(collective_names()))
      ->capture_default_str();
  command->add_option("--bytes", a->bytes, "Its size as nccl-tests counts: a rank's bigger buffer (64KiB, 1GiB)")
      ->value("SIZE");
  command->add_option("--ranks", a->ranks, "On the cluster's first so many cards (default: all)")
      ->check(Range{1, 1 << 24});
  command->add_option("--dtype", a->dtype, "Type of the elements")
      ->value("NAME")
      ->suggest(names(dtype_names()))
      ->capture_default_str();
  command->add_option("--root", a->root, "The root's rank, where there is one (default: 0)")->check(Range{0, 1 << 24});
  command
      ->add_option("--as", a->as,
                   "Who chooses: gccl, or what nccl or openmpi choose by default; openmpi's takes as long as the "
                   "cluster's mpi_parameters say, where it has any")
      ->value("NAME")
      ->suggest(names(kPlanners))
      ->capture_default_str();
  command->add_flag("--all", a->all, "Say of every protocol of every algorithm why it lost");
  command->add_option("--json", a->json, "Write all of it as JSON to this file, or to standard output when it is -")
      ->value("FILE");
  command->add_option("--svg", a->svg, "Write a picture to this file, or to standard output when it is -")
      ->value("FILE");
  command->examples({"gccl explain dgx-h100-superpod-2048 --collective allreduce --bytes 1MiB --ranks 256",
                     "gccl explain dgx-h100-superpod-2048 --bytes 1GiB --as nccl --svg why.svg",
                     "gccl explain leonardo --bytes 64KiB --ranks 64 --parameters leonardo-mpi"});
  command->callback([a, &exit_code] { exit_code = explain_call(*a); });
}

}  // namespace gccl
