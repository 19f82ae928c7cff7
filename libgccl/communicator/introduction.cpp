#include "libgccl/communicator/introduction.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <iterator>

#include "gccl/gccl.h"
#include "libgccl/base/counted.hpp"
#include "libgccl/base/shortened.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/select/plan.hpp"

namespace gccl {
namespace {

// Each of these makes plans or adds messages, so a rank that has another one waits for what nobody sends.
enum AgreedSetting : std::size_t {
  kAlgorithm,
  kCheck,
  kBackends,
  kParameters,
  kAlgo,
  kTunedMachine,
  kTuning,
  kOnFailure,
  kLinkLost,
  kLinkCheck,
  kLinkSlow,
  kLinkAvoid
};
constexpr const char* kNames[] = {"GCCL_ALGORITHM",
                                  "GCCL_CHECK",
                                  "GCCL_BACKENDS (or GCCL_Config.backends)",
                                  "GCCL_PARAMETERS",
                                  "GCCL_ALGO",
                                  "the machine in GCCL_TUNING_FILE",
                                  "what GCCL_TUNING_FILE says",
                                  "GCCL_ON_FAILURE",
                                  "GCCL_LINK_LOST_MS",
                                  "GCCL_LINK_CHECK",
                                  "GCCL_LINK_SLOW",
                                  "GCCL_LINK_AVOID"};
static_assert(std::size(kNames) == Introduction::kSettings && kLinkAvoid + 1 == Introduction::kSettings);

// Read when the library is loaded, and not when memory may be short: what json does not find then ends the process.
[[maybe_unused]] const auto& models = transport_models();

std::uint64_t digest_of(const std::string& text) {
  std::uint64_t digest = text.size();
  for (const char c : text) digest = (digest ^ std::uint8_t(c)) * splitmix::kGolden;
  return digest;
}

void put(Introduction::Value* value, const std::string& text) {
  value->digest = digest_of(text);
  const bool fits = text.size() < sizeof value->text;
  std::snprintf(value->text, sizeof value->text, "%.*s%s", fits ? int(text.size()) : int(sizeof value->text) - 4,
                text.c_str(), fits ? "" : "...");
}

std::string quoted(const Introduction::Value& v) { return v.text[0] ? fmt::format("\"{}\"", v.text) : "nothing"; }

}  // namespace

void Introduction::end_texts() {
  host[sizeof host - 1] = text[sizeof text - 1] = 0;
  for (Value& v : settings) v.text[sizeof v.text - 1] = 0;
}

void Introduction::set_error(const Status& why) {
  code = why.code();
  put_shortened(text, why.text());
}

void Introduction::set_host(const std::string& name) { std::snprintf(host, sizeof host, "%s", name.c_str()); }

// Libraries of one version may still be different builds, and a rank that runs another algorithm waits for messages
// that nobody sends, or takes others for them.
void Introduction::set_plans(Rank ranks) {
  const Layout layout = Layout::flat(ranks);
  const View view = layout.view(0);
  for (const auto& [name, t] : transport_models()) {
    const CostModel costs = t.costs_on(view, 4);
    for (const Collective kind :
         {Collective::allreduce, Collective::reduce_scatter, Collective::reduce, Collective::broadcast,
          Collective::allgather, Collective::gather, Collective::scatter, Collective::alltoall, Collective::barrier})
      for (Count count = 1; count < 20'000'000; count = count * 7 + 2) {
        const Plan p = plan({.kind = kind, .count = count}, view, costs, t.tuning);
        for (const char c : p.algorithm->name) plans = (plans ^ std::uint8_t(c)) * splitmix::kGolden;
        plans = (plans ^ p.slicing.shares ^ p.slicing.lanes << 32) * splitmix::kGolden;
      }
  }
}

void Introduction::set_settings(const AgreedSettings& mine) {
  put(&settings[kAlgorithm], mine.authorities.named.text());
  put(&settings[kCheck], std::to_string(mine.check));
  put(&settings[kBackends], mine.backends);
  // Files of one name may differ, and those of several names may be the same: what is in them counts.
  const auto put_file = [](Value* value, const std::string& file, const std::string& more, const std::string& content) {
    const std::uint64_t digest = digest_of(content);
    const std::string name = file.size() > 60 ? "..." + file.substr(file.size() - 60) : file;
    put(value, fmt::format("{}{}, digest {:08x}", name, more, digest >> 32));
    value->digest = digest;
  };
  if (!mine.parameters.empty()) put_file(&settings[kParameters], mine.parameters, "", mine.costs);
  put(&settings[kAlgo], mine.authorities.lists.text());
  put(&settings[kOnFailure], mine.on_failure);
  put(&settings[kLinkLost], mine.link_lost_ms);
  put(&settings[kLinkCheck], mine.link_check ? "1" : "0");
  put(&settings[kLinkSlow], std::to_string(mine.link_slow));
  put(&settings[kLinkAvoid], mine.link_avoid ? "1" : "0");
  if (!mine.authorities.table) return;
  TuningTable decisions = *mine.authorities.table;
  const TuningTable::Machine& m = decisions.machine;
  put(&settings[kTunedMachine],
      fmt::format("{} of {} of {}{}{}", m.cluster, counted(m.nodes, "node"), counted(m.cards_per_node, "card"),
                  m.backends.empty() ? "" : " over ", m.backends));
  decisions.name = decisions.description = "";
  for (TuningTable::Entry& e : decisions.entries) e.predicted_us.reset(), e.predicted_at_bytes.reset();
  put_file(&settings[kTuning], decisions.file, fmt::format(", {} entries", decisions.entries.size()),
           write_tuning_table(decisions));
}

Status misfit(const Introduction& joins, const Introduction& member) {
  const auto wrong = [](std::string text) { return Status::error(std::move(text), GCCL_ERR_INVALID_USAGE); };
  if (joins.version != member.version)
    return wrong(
        fmt::format("this process runs GCCL {}, the members run {}: all need the same", joins.version, member.version));
  if (joins.plans != member.plans)
    return wrong(
        "this process and the members would run different algorithms for the same call: their libraries are different "
        "builds of one version; install one build on all machines");
  for (std::size_t i = 0; i < Introduction::kSettings; ++i)
    if (const auto& mine = joins.settings[i], &theirs = member.settings[i]; mine.digest != theirs.digest)
      return wrong(fmt::format("{} differs: the members have {}, this process has {}; set the same here", kNames[i],
                               quoted(theirs), quoted(mine)));
  return {};
}

Status compare(const std::vector<Introduction>& all, Rank me) {
  for (Rank r = 0; r < all.size(); ++r)
    if (all[r].version != all[me].version)
      return Status::error(fmt::format("rank {} runs GCCL {}, rank {} runs {}: all ranks need the same", r,
                                       all[r].version, me, all[me].version),
                           GCCL_ERR_INVALID_USAGE);
  for (Rank r = 0; r < all.size(); ++r)
    if (all[r].code) return Status::error(fmt::format("rank {} could not start: {}", r, all[r].text), all[r].code);
  for (Rank r = 1; r < all.size(); ++r)
    if (all[r].plans != all[0].plans)
      return Status::error(
          fmt::format("rank 0 and rank {} would run different algorithms for the same call: their libraries are "
                      "different builds of one version; install one build on all machines",
                      r),
          GCCL_ERR_INVALID_USAGE);
  for (std::size_t i = 0; i < Introduction::kSettings; ++i)
    for (Rank r = 1; r < all.size(); ++r) {
      const Introduction::Value &first = all[0].settings[i], &other = all[r].settings[i];
      if (first.digest == other.digest) continue;
      return Status::error(fmt::format("{} differs: rank 0 has {}, rank {} has {}; set the same on every rank",
                                       kNames[i], quoted(first), r, quoted(other)),
                           GCCL_ERR_INVALID_USAGE);
    }
  return {};
}

}  // namespace gccl
