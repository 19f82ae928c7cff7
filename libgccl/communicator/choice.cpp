#include "libgccl/communicator/choice.hpp"

#include <algorithm>

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
CostModel network_model() {
  CostModel m = shared_memory_model();
  m.net = {.alpha_ns = 15000, .beta_ns_per_byte = 0.8};
  m.net_all = {.alpha_ns = 15000, .beta_ns_per_byte = 1.6};
  m.overhead_ns = 9000;
  return m;
}

}  // namespace

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
    if (!kind) return wrong("there is no collective \"" + item.substr(0, equals) + "\" (see gccl list collectives)");
    const Algorithm* a = find_algorithm(*kind, item.substr(equals + 1));
    if (!a) {
      std::string known;
      for (const Algorithm& x : algorithms())
        if (x.kind == *kind && !x.variant) known += (known.empty() ? "" : ", ") + std::string(x.name);
      return wrong("there is no algorithm \"" + item.substr(equals + 1) + "\" for " + std::string(name(*kind)) +
                   "; there are " + known);
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

}  // namespace

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
  if (plan->algorithm && !plan->algorithm->can(call, v)) plan->algorithm = nullptr;
  if (!plan->algorithm && call.kind == Collective::alltoallv) plan->algorithm = find_algorithm(call.kind, "pairwise");
  if (!plan->algorithm && setting.shared_memory) plan->algorithm = in_shared_memory(call.kind, bytes, n);
  if (!plan->algorithm) {
    CostModel m = setting.shared_memory ? shared_memory_model() : network_model();
    m.element_bytes = element_bytes;
    plan->algorithm = cheapest(call, v, m);
    // All senders at once into one receiver: the closed forms know neither the switch's buffers nor TCP's answer to
    // their overflow.
    if (!setting.shared_memory && plan->algorithm->name == "pairwise" && reduces(call.kind))
      if (const Algorithm* ring = find_algorithm(call.kind, "ring"); ring && ring->can(call, v)) plan->algorithm = ring;
  }
  if (n <= 1) return;

  // Shares keep what one step leaves behind in the caches for the next one, and let the steps of a chain overlap.
  double share_bytes = 0;
  if (setting.shared_memory) {
    if (call.kind == Collective::allreduce) share_bytes = 2 << 20;
    if (call.kind == Collective::reduce) share_bytes = 2 << 20;
    if (call.kind == Collective::broadcast && plan->algorithm->name != "direct") share_bytes = 2 << 20;
  } else if (call.kind == Collective::allreduce || call.kind == Collective::broadcast ||
             call.kind == Collective::reduce) {
    share_bytes = 2 << 20;
    plan->lanes = 2;
  }
  if (share_bytes > 0) plan->shares = Count(std::clamp(bytes / share_bytes, 1.0, 4096.0));
  plan->lanes = std::min<Count>({plan->lanes, plan->shares, kLanesMax});
}

}  // namespace gccl
