// Links by their kinds, against a plain list of them.
#include "libgccl/cluster/links.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace links_test {

using namespace gccl;

Link some_link(std::mt19937& random, unsigned kinds) {
  return {double(1 + random() % kinds), Nanos(random() % 2), random() % 2 ? Tier::nic : Tier::leaf};
}

TEST_CASE("links are those that were given, of few kinds or of more than are looked for") {
  for (const unsigned kinds : {1u, 5u, 40u, 1000u}) {
    CAPTURE(kinds);
    std::mt19937 random(kinds);
    Links links, more;
    std::vector<Link> list, second;
    for (int i = 0; i < 3000; ++i) links.push_back(list.emplace_back(some_link(random, kinds)));
    for (int i = 0; i < 3000; ++i) more.push_back(second.emplace_back(some_link(random, kinds)));
    links.append(more);
    list.insert(list.end(), second.begin(), second.end());
    REQUIRE(links.size() == list.size());
    CHECK(std::ranges::equal(links, list));
    for (LinkId l = 0; l < list.size(); ++l) {
      REQUIRE(links[l] == list[l]);
      REQUIRE(links.kinds()[links.kind(l)] == list[l]);
    }
    if (kinds <= 5) CHECK(links.kinds().size() <= 4 * kinds);

    links.change([](Link& l) { l.bandwidth_GBps *= 3; });
    for (Link& l : list) l.bandwidth_GBps *= 3;
    CHECK(std::ranges::equal(links, list));
  }
  CHECK(Links().empty());
  CHECK(std::ranges::equal(Links(3, {1, 2, Tier::core}), std::vector<Link>(3, {1, 2, Tier::core})));
}

}  // namespace links_test
