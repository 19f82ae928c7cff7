// Which links are slow, from reports that are written down here; what follows is worked out by hand.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>

#include "libgccl/fault/link_health.hpp"
#include "libgccl/net/socket.hpp"
#include "libgccl/transports/tcp/data/waits.hpp"

using namespace gccl;
using namespace gccl::fault;

namespace {

constexpr std::uint64_t kMB = 1'000'000, kSecond = 1'000'000'000;

// `ranks` in a ring, each of which has got 100 MB from the one before it without waiting; links reach 1000 MB/s.
std::vector<LinkReport> ring(Rank ranks) {
  std::vector<LinkReport> all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    all[r].elapsed_ns = kSecond / 2;
    all[r].usual = 1000 * kMB;
    all[r].came = all[r].sent = 100 * kMB;
    all[r].seen[0] = {.from = (r + ranks - 1) % ranks + 1, .bytes = 100 * kMB, .waited_ns = 0, .best = 1000 * kMB};
  }
  return all;
}

// The same, where `to` has waited for so long.
std::vector<LinkReport> ring(Rank ranks, Rank to, std::uint64_t waited_ms) {
  std::vector<LinkReport> all = ring(ranks);
  all[to].seen[0].waited_ns = waited_ms * 1'000'000;
  return all;
}

}  // namespace

TEST_CASE("a link with less than a quarter of what others reach is slow after two reports, once") {
  LinkHealth health(4, 0);
  const auto slow = ring(4, 2, 500);  // 100 MB in 500 ms: 200 MB/s
  CHECK(health.take(slow).empty());
  CHECK_FALSE(health.slow(1, 2));
  const auto changed = health.take(slow);
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].from == 1);
  CHECK(changed[0].to == 2);
  CHECK(changed[0].slow);
  CHECK(changed[0].rate == doctest::Approx(200e6));
  CHECK(changed[0].expected == doctest::Approx(1000e6));
  CHECK(health.slow(1, 2));
  CHECK_FALSE(health.slow(2, 1));
  for (int i = 0; i < 5; ++i) CHECK(health.take(slow).empty());
}

TEST_CASE("a link that reaches a quarter is not slow, nor one that was slow in every second report alone") {
  LinkHealth health(4, 0);
  for (int i = 0; i < 5; ++i) CHECK(health.take(ring(4, 2, 399)).empty());  // 250.6 MB/s
  for (int i = 0; i < 5; ++i) {
    CHECK(health.take(ring(4, 2, 500)).empty());
    CHECK(health.take(ring(4)).empty());
  }
  CHECK(health.links().empty());
}

TEST_CASE("it recovers with twice that, after two reports, and may become slow again") {
  LinkHealth health(4, 0);
  const auto make_slow = [&] {
    health.take(ring(4, 2, 500));
    return health.take(ring(4, 2, 500)).size() == 1;
  };
  REQUIRE(make_slow());
  for (int i = 0; i < 5; ++i) CHECK(health.take(ring(4, 2, 201)).empty());  // 497.5 MB/s
  CHECK(health.take(ring(4, 2, 200)).empty());
  const auto changed = health.take(ring(4));
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].from == 1);
  CHECK_FALSE(changed[0].slow);
  CHECK(health.links().empty());
  CHECK(make_slow());
}

TEST_CASE("short waits, few bytes, and a sender that was away say nothing") {
  LinkHealth health(4, 0);
  for (int i = 0; i < 4; ++i) {
    auto few = ring(4, 2, 500);
    few[2].seen[0].bytes = few[2].came = few[1].sent = LinkHealth::kBytesMin - 1;
    CHECK(health.take(few).empty());
    auto brief = ring(4, 2, 99);
    brief[2].seen[0].bytes = brief[2].came = brief[1].sent = 2 * kMB;
    CHECK(health.take(brief).empty());
    auto away = ring(4, 2, 500);
    away[1].away_ns = 150'000'000;  // 100 MB in 350 ms: 286 MB/s
    CHECK(health.take(away).empty());
    away[1].away_ns = 600'000'000;
    CHECK(health.take(away).empty());
  }
}

TEST_CASE("a wait in which a rank at either end got no processor says nothing; one in which others got none does") {
  for (const Rank starved : {0, 1, 2, 3}) {
    LinkHealth health(4, 0);
    auto reports = ring(4, 2, 500);
    reports[starved].starved_ns = 150'000'000;  // 100 MB in 350 ms: 286 MB/s
    health.take(reports);
    CHECK(health.take(reports).size() == (starved == 1 || starved == 2 ? 0 : 1));
    reports[starved].starved_ns = 600'000'000;
    for (int i = 0; i < 4; ++i) CHECK(health.take(reports).empty());
  }
}

TEST_CASE("links that share their sender or their receiver are not slow for that") {
  LinkHealth health(4, 0);
  auto to_one = ring(4), from_one = ring(4);
  for (Rank r = 1; r < 4; ++r) {  // three times 100 MB in 600 ms at one end: 167 MB/s each, 500 MB/s together
    to_one[0].seen[r - 1] = {.from = r + 1, .bytes = 100 * kMB, .waited_ns = 600'000'000};
    from_one[r].seen[0] = {.from = 1, .bytes = 100 * kMB, .waited_ns = 600'000'000};
  }
  to_one[0].came = from_one[0].sent = 300 * kMB;
  for (int i = 0; i < 4; ++i) CHECK(health.take(to_one).empty());
  for (int i = 0; i < 4; ++i) CHECK(health.take(from_one).empty());
}

TEST_CASE("what is expected is the middle of what links reach, or less where the cost model says so") {
  const auto waits = [](std::uint64_t ms) { return ring(4, 2, ms); };
  const auto is_slow = [](LinkHealth health, const std::vector<LinkReport>& reports) {
    health.take(reports);
    return health.take(reports).size() == 1;
  };
  CHECK(is_slow({4, 0}, waits(500)));
  CHECK(is_slow({4, 900e6}, waits(500)));        // 200 MB/s < 225 MB/s
  CHECK_FALSE(is_slow({4, 700e6}, waits(500)));  // but not < 175 MB/s
  CHECK(is_slow({4, 5000e6}, waits(500)));
  // The slow one's own rate does not count: it is not in the middle.
  auto own = waits(500);
  own[2].usual = 200 * kMB;
  CHECK(is_slow({4, 0}, own));
  // Fewer than three know what a link reaches: the cost model alone, if it was measured here.
  auto two = waits(500);
  two[0].usual = two[3].usual = 0;
  CHECK_FALSE(is_slow({4, 0}, two));
  CHECK(is_slow({4, 900e6}, two));
  CHECK_FALSE(is_slow({4, 700e6}, two));
}

TEST_CASE("reports of ranks that there are not, and more slow links than are followed, do no harm") {
  LinkHealth health(4, 0);
  const Rank ranks = 2 * LinkHealth::kLinksMax;
  auto all = ring(ranks);
  for (LinkReport& r : all) {
    r.seen[0].waited_ns = kSecond;
    r.seen[1] = {.from = ranks + 1, .bytes = 100 * kMB, .waited_ns = kSecond};
    r.seen[2] = {.from = ~std::uint64_t(0), .bytes = 100 * kMB, .waited_ns = kSecond};
  }
  std::size_t found = 0;
  for (int i = 0; i < 4; ++i) found += health.take(all).size();
  CHECK(found == LinkHealth::kLinksMax);
  for (const LinkHealth::Link& l : health.links()) CHECK((l.from + 1) % ranks == l.to);
}

TEST_CASE("a slow link is avoided, tried again after half a minute of the ranks' time, and later each time") {
  LinkHealth health(4, 0);
  const auto slow = ring(4, 2, 500);
  auto unseen = ring(4);
  for (LinkReport& r : unseen) r.elapsed_ns = kSecond;
  unseen[3].elapsed_ns = 2 * kSecond;  // the rank for which most has passed counts
  unseen[2].seen[0] = {};
  const auto avoided = [&] { return !health.links().empty() && health.links()[0].avoided; };
  health.take(slow);
  CHECK_FALSE(health.avoided_changed());
  health.take(slow);
  CHECK(health.avoided_changed());
  CHECK(avoided());
  std::uint64_t wait_s = 30;
  for (int trial = 0; trial < 8; ++trial) {
    CAPTURE(trial);
    for (std::uint64_t s = 2; s < wait_s; s += 2) {
      CHECK(health.take(unseen).empty());
      CHECK_FALSE(health.avoided_changed());
    }
    health.take(unseen);
    CHECK(health.avoided_changed());
    CHECK(health.tries());
    CHECK_FALSE(avoided());
    CHECK(health.slow(1, 2));
    CHECK(health.take(slow).empty());  // known already, and one report is enough
    CHECK(health.avoided_changed());
    CHECK_FALSE(health.tries());
    CHECK(avoided());
    wait_s = std::min<std::uint64_t>(2 * wait_s, 1800);
  }
  // It recovers while it is tried.
  for (std::uint64_t s = 0; s < wait_s; s += 2) health.take(unseen);
  CHECK_FALSE(avoided());
  CHECK(health.take(ring(4)).empty());
  CHECK_FALSE(health.avoided_changed());
  CHECK(health.take(ring(4)).size() == 1);
  CHECK_FALSE(health.slow(1, 2));
  CHECK(health.links().empty());
}

TEST_CASE("a link that is avoided and recovers, as others' calls show, is avoided no longer") {
  LinkHealth health(4, 0);
  health.take(ring(4, 2, 500));
  health.take(ring(4, 2, 500));
  health.take(ring(4));
  CHECK_FALSE(health.avoided_changed());
  CHECK(health.take(ring(4)).size() == 1);
  CHECK(health.avoided_changed());
  CHECK(health.links().empty());
}

TEST_CASE("a receiver that does not wait shows no recovery by that alone: something must have come as fast as that") {
  LinkHealth health(4, 0);
  health.take(ring(4, 2, 500));
  health.take(ring(4, 2, 500));
  auto late = ring(4);
  for (const std::uint64_t best : {std::uint64_t(0), 249 * kMB}) {
    late[2].seen[0].best = best;
    for (int i = 0; i < 4; ++i) CHECK(health.take(late).empty());
  }
  late[2].seen[0].best = 250 * kMB;
  CHECK(health.take(late).empty());
  CHECK(health.take(late).size() == 1);
}

TEST_CASE(
    "a link that goes on over another connection, in the midst of a message, has not waited since the machine began") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Fd here(ends[0]), there(ends[1]);
  constexpr std::uint64_t kFrame = 1 << 20;
  tcp::Waits waits;
  waits.watch(here.get());
  waits.empty(here.get(), kFrame, 100);  // the middle of a frame
  waits.watch(there.get());
  waits.empty(there.get(), kFrame, 200);
  CHECK(waits.take(0).waited_ns == 0);
  waits.empty(there.get(), kFrame, 200);
  CHECK(waits.take(0).waited_ns > 0);
}
