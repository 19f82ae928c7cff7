#include "sim/tuning/exports.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/control_characters.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/canvas.hpp"
#include "sim/tuning/regret.hpp"
#include "sim/tuning/segments.hpp"
#include "sim/tuning/summary.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return text;
}

// Cells of sizes that were asked for.
std::size_t grid_cells(const Json& document) {
  return std::size_t(
      std::ranges::count(document["cells"], false, [](const Json& c) { return c["bisection"].get<bool>(); }));
}

// What is to be known of the file as a whole.
std::string comments(const Json& document, Library library) {
  const Json all = exported_otherwise(document, library, {Operations::commute, 0});
  // One line, and a short one: NCCL's example takes none of 256 characters.
  const std::string cluster = without_control(cut(cluster_text(document), 80), '?');
  std::string text =
      fmt::format("# By gccl tune for {} ({} engine). Made for the numbers of ranks and the sizes below.\n", cluster,
                  document["engine"].get<std::string>());
  if (!all.empty())
    text += fmt::format("# At {} of the {} places simulated the fastest is a plan of GCCL that {} cannot carry out.\n",
                        all.size(), document["cells"].size(), kLibraryNames[std::size_t(library)]);
  if (const std::size_t missing = document["missing"].size(); missing > 0)
    text += fmt::format("# Not complete: {} of {} places were not simulated; there {} chooses as ever.\n", missing,
                        missing + grid_cells(document), kLibraryNames[std::size_t(library)]);
  return text;
}

std::string_view nccl_collective(Collective kind) {
  return kind == Collective::reduce_scatter ? "reducescatter" : name(kind);
}

// Segments of one library, by collective.
std::map<Collective, std::vector<TunedCalls>> by_collective(const Json& document, Library library,
                                                            double gain_percent = 0) {
  std::map<Collective, std::vector<TunedCalls>> all;
  for (TunedCalls& t : tuned_calls(document, library, gain_percent))
    if (std::ranges::any_of(t.segments, [](const Segment& s) { return s.tried != nullptr; }))
      all[t.kind].push_back(std::move(t));
  return all;
}

// What a rule names; nothing where Open MPI is to choose by itself.
std::optional<Counterpart> openmpi_algorithm(const Segment& s, Operations operations) {
  if (!s.tried || s.as_good) return std::nullopt;
  const Counterpart c = counterpart_of(*s.cell, *s.tried, Library::openmpi);
  return c.commuting && operations == Operations::any ? std::nullopt : std::optional(c);
}

// Why Open MPI is to choose by itself.
std::string why_its_own(const Segment& s) {
  if (!s.tried) return "";
  if (s.as_good) return ", as good by simulation";
  return fmt::format(": {} is for operations that commute", counterpart_of(*s.cell, *s.tried, Library::openmpi).name);
}

}  // namespace

LeftToOpenMpi left_to_openmpi(const Json& document, double gain_percent) {
  LeftToOpenMpi left;
  for (const Json& cell : document["cells"])
    if (const Json* const best = fastest(cell, Library::openmpi)) {
      const bool good = as_good(cell, *best, Library::openmpi, gain_percent);
      left.as_good += good;
      left.commuting += !good && counterpart_of(cell, *best, Library::openmpi).commuting;
    }
  return left;
}

std::string own_choices_text(const LeftToOpenMpi& left, std::size_t cells, double gain_percent) {
  return fmt::format(
      "at {} of {} places what Open MPI chooses by itself {} the fastest that rules can name, and stays "
      "its own choice (--export-gain)",
      left.as_good, cells,
      gain_percent > 0 ? fmt::format("takes at most {:g} % longer than", gain_percent) : std::string("is faster than"));
}

Json exported_otherwise(const Json& document, Library library, const Exporting& how) {
  Json all = Json::array();
  for (const Json& cell : document["cells"]) {
    if (cell["tried"].empty()) continue;
    const Json &best = cell["tried"][0], *named = exported(cell, library, how);
    if (const Json* const theirs = fastest(cell, library); !named && theirs)
      named = as_good(cell, *theirs, library, how.gain_percent);
    if (named && (*named)["time_us"] == best["time_us"]) continue;
    all.push_back({{"at", place_text(cell)},
                   {"best", best["algorithm"]},
                   {"best_us", best["time_us"]},
                   {"exported", named ? (*named)["algorithm"] : Json()},
                   {"exported_us", named ? (*named)["time_us"] : Json()}});
  }
  return all;
}

TuningTable tuning_table(const Json& document, const Cluster& cluster) {
  std::vector<Rank> on_node(cluster.nodes(), 0);
  for (Card c = 0; c < cluster.cards(); ++c) ++on_node[cluster.node_of(c)];
  TuningTable t{.name = document["cluster"]["name"].get<std::string>() + "-tuned",
                .description = fmt::format("By gccl tune for {}, {} engine, {}: the fastest of what was simulated{}.",
                                           cluster_text(document), document["engine"].get<std::string>(),
                                           document["dtype"].get<std::string>(),
                                           document["missing"].empty() ? "" : "; not complete"),
                .machine = {.cluster = std::string(cluster.name()),
                            .nodes = cluster.nodes(),
                            .cards_per_node = *std::ranges::max_element(on_node),
                            .backends = std::string(cluster.backends())}};
  for (const TunedCalls& calls : tuned_calls(document, std::nullopt))
    for (const Segment& s : calls.segments) {
      if (!s.tried) continue;
      const Json& tried = *s.tried;
      t.entries.push_back({.ranks_min = calls.ranks,
                           .ranks_max = calls.ranks,
                           .nodes_min = calls.nodes,
                           .nodes_max = calls.nodes,
                           .from_bytes = s.from,
                           .to_bytes = s.to,
                           .algorithm = find_algorithm(calls.kind, tried["algorithm"].get<std::string>()),
                           .protocol = tried["protocol"].is_string() ? tried["protocol"].get<std::string>() : "",
                           .chunks = tried["chunks"],
                           .channels = tried["channels"],
                           .predicted_us = tried["time_us"].get<double>(),
                           .predicted_at_bytes = s.cell->at("bytes").get<Count>()});
    }
  return t;
}

std::string nccl_csv(const Json& document) {
  std::string text = comments(document, Library::nccl) +
                     "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
                     "# channels -1: NCCL's own number, whose channels carry less than those simulated\n";
  for (const auto& [kind, list] : by_collective(document, Library::nccl))
    for (const TunedCalls& calls : list)
      for (const Segment& s : calls.segments) {
        if (!s.tried || !(*s.tried)["protocol"].is_string()) continue;
        text += fmt::format("{},{},{},{},{},-1,{},{},-1,-1\n", nccl_collective(kind), s.from, s.to - 1,
                            counterpart_of(*s.cell, *s.tried, Library::nccl).name,
                            lower((*s.tried)["protocol"].get<std::string>()), calls.nodes, calls.ranks);
      }
  return text;
}

// A rule for a number of ranks holds up to the next one, and the first for all below it: so numbers between and beyond
// those simulated get algorithm 0, which is Open MPI's own choice. So do sizes beyond the largest, and far below the
// smallest: the first rule has to be for 0 bytes.
std::string openmpi_rules(const Json& document, const Exporting& how) {
  const auto all = by_collective(document, Library::openmpi, how.gain_percent);
  std::string text = comments(document, Library::openmpi);
  if (const LeftToOpenMpi left = left_to_openmpi(document, how.gain_percent); left.as_good > 0)
    text += fmt::format("# A{}.\n", own_choices_text(left, document["cells"].size(), how.gain_percent).substr(1));
  text += fmt::format("{}  # collectives\n", all.size());
  for (const auto& [kind, list] : all) {
    std::vector<std::pair<Rank, const TunedCalls*>> ranks;
    if (list[0].ranks > 1) ranks.emplace_back(1, nullptr);
    for (std::size_t i = 0; i < list.size(); ++i) {
      ranks.emplace_back(list[i].ranks, &list[i]);
      if (i + 1 == list.size() || list[i + 1].ranks > list[i].ranks + 1) ranks.emplace_back(list[i].ranks + 1, nullptr);
    }
    const OpenMpiCollective their = *openmpi_collective(kind);
    text += fmt::format("{}  # {}\n{}  # numbers of ranks\n", their.id, their.name, ranks.size());
    for (const auto& [n, calls] : ranks) {
      if (!calls) {
        text += fmt::format("{} 1  # ranks, rules\n0 0 0 0  # Open MPI's own choice\n", n);
        continue;
      }
      const bool sizes = kind != Collective::barrier;
      text += fmt::format("{} {}  # ranks, rules: bytes, algorithm, fan in or out, segment\n", n,
                          calls->segments.size() + (sizes ? 1 : 0));
      for (const Segment& s : calls->segments) {
        const auto c = openmpi_algorithm(s, how.operations);
        text += fmt::format("{} {} 0 0  # {}\n", s.from, c ? c->id : 0,
                            c ? std::string(c->name) : "its own choice" + why_its_own(s));
      }
      if (sizes) text += fmt::format("{} 0 0 0  # not simulated\n", calls->segments.back().to);
    }
  }
  return text;
}

std::string openmpi_json(const Json& document, const Exporting& how) {
  Json collectives = Json::object();
  for (const auto& [kind, list] : by_collective(document, Library::openmpi, how.gain_percent)) {
    Json& sizes = collectives[std::string(openmpi_collective(kind)->name)] = Json::array();
    for (const TunedCalls& calls : list) {
      Json rules = Json::array();
      for (const Segment& s : calls.segments)
        if (const auto c = openmpi_algorithm(s, how.operations))
          rules.push_back(
              {{"msg_size_min", s.from}, {"msg_size_max", s.to - 1}, {"alg", c->id}, {"faninout", 0}, {"seg_size", 0}});
      sizes.push_back({{"comm_size_min", calls.ranks}, {"comm_size_max", calls.ranks}, {"rules", std::move(rules)}});
    }
  }
  const Json all = {{"rule_file_version", 3}, {"module", "tuned"}, {"collectives", std::move(collectives)}};
  return json::format_value(all, 1) + '\n';
}

}  // namespace gccl::sim
