// Which links between the ranks of a communicator are slow. Ranks report what they have seen of theirs, all get all
// reports, and each comes to the same answer.
//
// A link from a to b is slow where b, in the midst of long messages, had to wait for their bytes although a had left
// them to the system: so neither end was late. Its rate is what came to b from all, or left a to all, whichever is
// more, in the time waited: links that share an end are no slower for that. It is compared with what the other links of
// the communicator reach, and with the cost model where that was measured on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::fault {

// Sent as it is between ranks of one release.
struct LinkReport {
  static constexpr std::size_t kLinks = 4;
  std::uint64_t elapsed_ns = 0;  // since the last report
  std::uint64_t away_ns = 0;     // of Arrivals, the most to one peer
  // The rank was ready to run and got no processor: nor did, so long, what carries its messages on its machine.
  std::uint64_t starved_ns = 0;
  std::uint64_t came = 0, sent = 0;  // long messages' bytes, from and to all peers
  std::uint64_t usual = 0;           // what a link to this rank usually reaches, in bytes a second; 0: not known
  struct Seen {
    std::uint64_t from = 0;                            // its rank + 1; 0: nothing more
    std::uint64_t bytes = 0, waited_ns = 0, best = 0;  // as Arrivals
  } seen[kLinks];  // links to this rank of which it has seen enough: those known to be slow, then the slowest
};

// Since the last reports, on the rank for which most has passed.
std::uint64_t elapsed_ns(std::span<const LinkReport> reports);

// Of an even number the upper one. Requires one at least.
std::uint64_t middle(std::vector<std::uint64_t> rates);

// The same reports give the same answers, whatever the rank.
class LinkHealth {
 public:
  // Fewer bytes, or less waiting, in the time between two reports say nothing; and it takes two reports in a row.
  static constexpr std::uint64_t kBytesMin = 1 << 20, kWaitedMinNs = 100'000'000;
  static constexpr int kReports = 2;
  static constexpr std::uint64_t kTryAgainNs = 30'000'000'000, kTryAgainMostNs = 60 * kTryAgainNs;
  static constexpr std::size_t kLinksMax = 16;  // that are followed; further ones stay unknown until one recovers

  // factor: slow is less than so many parts of what is expected; it recovers at twice that. `modelled`: of the cost
  // model, in bytes a second; 0: it was not measured on this machine.
  LinkHealth(double factor, double modelled) : factor_(factor), modelled_(modelled) {}

  struct Link {
    Rank from = 0, to = 0;
    bool slow = false;
    int in_a_row = 0;               // reports that say otherwise
    double rate = 0, expected = 0;  // in bytes a second, when that was found last
    // Slow, and to be planned around. Nobody sees then whether it recovers: so it is tried again, later each time that
    // it is still slow. In the ranks' time, which passes from report to report as on the rank for which most has
    // passed.
    bool avoided = false;
    std::uint64_t try_again_ns = 0, wait_ns = kTryAgainNs;
  };
  // By rank. Returns the links that became slow, or recovered.
  std::vector<Link> take(std::span<const LinkReport> reports);
  // Those that are slow, and those that may become it.
  const std::vector<Link>& links() const { return links_; }
  bool slow(Rank from, Rank to) const;
  // Those to be planned around have changed with the latest reports; and one of them is tried again.
  bool avoided_changed() const { return avoided_changed_; }
  bool tries() const { return tries_; }

 private:
  double expected(std::span<const LinkReport> reports) const;
  void take(std::span<const LinkReport> reports, Rank from, Rank to, const LinkReport::Seen& seen, double due,
            std::vector<Link>* changed);

  double factor_, modelled_;
  std::uint64_t time_ns_ = 0;
  std::vector<Link> links_;
  bool avoided_changed_ = false, tries_ = false;
};

}  // namespace gccl::fault
