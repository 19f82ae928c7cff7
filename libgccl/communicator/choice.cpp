#include "libgccl/communicator/choice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "libgccl/algorithms/allreduce/torus2d.hpp"
#include "libgccl/algorithms/alltoall/hierarchical.hpp"
#include "libgccl/algorithms/parts/few_ranks.hpp"
#include "libgccl/base/nearest.hpp"
#include "libgccl/select/cheapest.hpp"

namespace gccl {
namespace {

// Round figures of a two-socket server of today, for the closed forms: shared memory through pipes and single copies;
// TCP over 10 to 25 Gbit/s Ethernet.
CostModel shared_memory_model() {
  CostModel m;
  m.node = m.net = m.net_all = {.alpha_ns = 250, .beta_ns_per_byte = 0.1};
  m.overhead_ns = 120;
  m.combine_ns_per_byte = 0.05;
  m.copy_ns_per_byte = 0.05;
  return m;
}
// On one machine the sender's processor does the receiver's part of TCP's work too.
CostModel network_model(bool one_machine) {
  CostModel m = shared_memory_model();
  m.net = {.alpha_ns = 15000, .beta_ns_per_byte = 0.8};
  m.net_all = {.alpha_ns = 15000, .beta_ns_per_byte = 1.6};
  m.overhead_ns = one_machine ? 9000 : 3000;
  return m;
}

// What all others may send to one rank at once, where a switch stands between: it keeps so much for one port.
constexpr double kBurstBytes = 256 * 1024;
// Between machines, what a rank passes on while the next arrives.
constexpr double kPassOnBytes = 64 * 1024;

}  // namespace

std::string Overrides::text() const {
  std::string s;
  for (std::size_t k = 0; k < std::size(by_kind_); ++k)
    if (by_kind_[k])
      s += (s.empty() ? "" : ",") + std::string(name(Collective(k))) + "=" + std::string(by_kind_[k]->name);
  return s;
}

Status Overrides::parse(const std::string& text, Overrides* out) {
  const auto wrong = [&](const std::string& what) {
    return Status::error("GCCL_ALGORITHM \"" + text + "\": " + what, GCCL_ERR_INVALID_ARGUMENT);
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) return wrong("\"" + item + "\" is not COLLECTIVE=ALGORITHM");
    const auto kind = collective_named(item.substr(0, equals));
    if (!kind)
      return wrong("there is no collective \"" + item.substr(0, equals) + "\"" +
                   suggestion(item.substr(0, equals), collective_names()));
    const Algorithm* a = find_algorithm(*kind, item.substr(equals + 1));
    if (!a) {
      std::vector<std::string_view> known;
      for (const Algorithm& x : algorithms())
        if (x.kind == *kind) known.push_back(x.name);
      return wrong("there is no algorithm \"" + item.substr(equals + 1) + "\" for " + std::string(name(*kind)) +
                   suggestion(item.substr(equals + 1), known));
    }
    out->by_kind_[std::size_t(*kind)] = a;
  }
  return {};
}

namespace {

// In shared memory a rank reads what it needs from whoever has it, so few ranks do best without going round: one step,
// and no byte is moved twice. Null where the closed forms are to decide.
const Algorithm* in_shared_memory(Collective kind, double bytes, Rank n) {
  const auto named = [kind](std::string_view name) { return find_algorithm(kind, name); };
  const bool few = n <= 8;
  switch (kind) {
    // Every rank reads and adds all vectors; long ones are worth a second step.
    case Collective::allreduce:
      if (few && bytes * (n - 1) <= 256 * 1024) return named("direct");
      return n <= 256 && bytes >= 64 * 1024 ? named("pairwise") : nullptr;
    case Collective::broadcast: return few ? named("direct") : nullptr;
    case Collective::reduce: return few && bytes * (n - 1) <= 64 * 1024 ? named("direct") : nullptr;
    case Collective::allgather: return few || bytes >= 16 * 1024 ? named("direct") : nullptr;
    case Collective::allgatherv: return few ? named("direct") : nullptr;
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv: return few || bytes >= 16 * 1024 ? named("pairwise") : nullptr;
    case Collective::alltoall: return few || bytes >= 1024 ? named("pairwise") : nullptr;
    case Collective::gather:
    case Collective::scatter: return few || bytes >= 16 * 1024 ? named("linear") : nullptr;
    case Collective::barrier: return few ? named("direct") : nullptr;
    default: return nullptr;
  }
}

// Between machines a vector in many shares costs its way through one link only, and a few shares more. In a chain these
// are n - 1, in a double tree 2 log n, but at four fifths of the rate (docs/performance.md).
bool passes_on(std::string_view algorithm) { return algorithm == "chain" || algorithm == "double_binary_tree"; }

// The closed forms' choice, apart from what they do not know. Null where they know nothing.
const Algorithm* over_network(const Call& call, const View& v, const CostModel& m, double bytes) {
  const Algorithm* best = cheapest(call, v, m);
  if (!best) return nullptr;
  const Rank n = v.all.size;
  const bool one_machine = v.nodes == 1;
  // All senders at once into one receiver: of the switch's buffers, and TCP's answer to their overflow; nor that there
  // are none on one machine, but processors that are busy.
  const double burst_bytes = call.kind == Collective::allreduce ? bytes : bytes * (n - 1);
  const bool fits = !one_machine && call.count > 0 && burst_bytes <= kBurstBytes;
  if (!fits && best->name == "pairwise" && reduces(call.kind))
    if (const Algorithm* ring = find_algorithm(call.kind, "ring"); ring && ring->can(call, v)) best = ring;
  // Of shares.
  if ((call.kind != Collective::broadcast && call.kind != Collective::reduce) || one_machine || n <= 2) return best;
  const double rate = m.net.beta_ns_per_byte, share = m.net.alpha_ns + kPassOnBytes * rate;
  double least = best->cost(call, v, m);
  for (const auto& [name, cost] : {std::pair("chain", bytes * rate + (n - 1) * share),
                                   std::pair("double_binary_tree", bytes * rate * 5 / 4 + 2 * std::log2(n) * share)}) {
    const Algorithm* const a = find_algorithm(call.kind, name);
    if (!a || !a->can(call, v) || cost >= least) continue;
    best = a;
    least = cost;
  }
  return best;
}

// How long the shares of a call are at most; 0: it goes in one piece. They keep what one step leaves behind in the
// caches for the next one, and let the steps of a chain overlap.
double share_bytes(Collective kind, std::string_view algorithm, const Setting& setting) {
  if (kind != Collective::allreduce && kind != Collective::reduce && kind != Collective::broadcast) return 0;
  if (setting.shared_memory) return kind == Collective::broadcast && algorithm == "direct" ? 0 : 2 << 20;
  if (setting.first.nodes == 1) return 2 << 20;
  if (kind != Collective::allreduce && setting.first.all.size > 2 && passes_on(algorithm)) return kPassOnBytes;
  return 8 << 20;  // each of them waits for the network anew
}

}  // namespace

std::string why_not(const Algorithm& a) {
  if (a.fits == few_ranks) return "it is for at most " + std::to_string(kFewRanks) + " ranks";
  if (a.fits == crossbar_ranks) return "it is for at most " + std::to_string(kCrossbarRanks) + " ranks";
  if (a.fits == torus2d_all_reduce_fits) return "it needs ranks in full rows and columns, which nothing describes here";
  if (a.fits == hierarchical_all_to_all_fits) return "it takes blocks side by side, without displacements";
  return "";
}

void choose(const Call& given, std::uint32_t element_bytes, const Setting& setting, const Overrides& overrides,
            Plan* plan) {
  // Whether a rank works in place is its own affair, the algorithm is not.
  Call call = given;
  call.in_place = false;
  const View& v = setting.first;
  const Rank n = v.all.size;
  const double bytes = double(call.count) * element_bytes;
  plan->shares = plan->lanes = 1;
  plan->window = 16;
  plan->algorithm = overrides.of(call.kind);
  if (plan->algorithm && !plan->algorithm->can(call, v)) plan->refused = std::exchange(plan->algorithm, nullptr);
  if (!plan->algorithm && call.kind == Collective::alltoallv) {  // planned anew for each call
    static const Algorithm* const pairwise = find_algorithm(Collective::alltoallv, "pairwise");
    plan->algorithm = pairwise;
  }
  if (!plan->algorithm && setting.shared_memory) plan->algorithm = in_shared_memory(call.kind, bytes, n);
  if (!plan->algorithm) {
    CostModel m = setting.shared_memory ? shared_memory_model() : network_model(v.nodes == 1);
    m.element_bytes = element_bytes;
    plan->algorithm = setting.shared_memory ? cheapest(call, v, m) : over_network(call, v, m, bytes);
  }
  if (n <= 1) return;

  if (const double most = share_bytes(call.kind, plan->algorithm->name, setting); most > 0)
    plan->shares = Count(std::clamp(bytes / most, 1.0, 4096.0));
  plan->lanes = std::min<Count>(setting.shared_memory ? 1 : 2, plan->shares);
}

}  // namespace gccl
