// Whom a fault hits, and which of the ways between ranks: the same for simulated ranks and for real ones.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "sim/fault/faults.hpp"

namespace gccl::sim {

// Whether processes end by it.
bool ends_processes(const Fault& fault);

// Whether it takes links of the cluster, by their name.
bool cuts_links(const Fault& fault);

// Whether others may call a rank failed for it: a detector calls one that is silent for `detection`, in ns, or for a
// part of it.
bool may_look_like_failure(const Fault& fault, Nanos detection);

// When fault number `fault` of the plan has begun for somebody; null where it has not.
const FaultEvent* begin_of(std::span<const FaultEvent> events, std::size_t fault);

// The ranks to which it happens, of those on `cards` (by rank): on its card or node, else those it names.
std::vector<Rank> hit_by(const Fault& fault, std::span<const Card> cards, const Cluster& cluster);

// The cards of ranks and of so many spares after them, which are on the first free ones.
std::vector<Card> with_spares(std::vector<Card> cards, Rank spares, const Cluster& cluster);

// Whether it holds from before the ranks start: those of time 0 that do not act on processes that run.
bool begins_before_start(const Fault& fault);

// How many times as long the rank's own work takes by the stragglers among the active faults: of several the product.
double slowdown_by(std::span<const Fault> faults, const std::vector<bool>& active, Rank rank);

// How late the rank starts: of several late starts the latest.
Nanos late_by(std::span<const Fault> faults, Rank rank);

// Whether it concerns what `from` sends `to`. Requires a fault on what ranks send, and none on links of the cluster.
bool concerns(const Fault& fault, Rank from, Rank to);

// Whether what one rank sends another is lost.
using IsCut = std::function<bool(Rank from, Rank to)>;

// The ranks that some other one of these does not reach directly, nor by some of any `helpers` third ones of them; with
// those others.
std::map<Rank, std::vector<Rank>> unreachable(std::span<const Rank> ranks, const IsCut& cut, std::size_t helpers);

// Something happens with probability *to or, independently, with `more`: *to becomes the probability of either.
void add_chance(double* to, double more);

}  // namespace gccl::sim
