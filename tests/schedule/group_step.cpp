// Steps to a group: which plain sends and receives they mean.
#include "libgccl/schedule/group_step.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "libgccl/schedule/layout.hpp"

using namespace gccl;

namespace {

std::vector<Step> steps_of(Schedule s) {
  std::vector<Step> all;
  while (const Step* step = s.next()) all.push_back(*step);
  return all;
}

// Ranks 4, 5, 6 and 7: the second node.
View second_node(Rank place) { return Layout::regular(8, 4).view(4 + place); }

constexpr Region kWhole{Buffer::input, 10, 7}, kPart{Buffer::output, 2, 2};

}  // namespace

TEST_CASE("a step to a group stays whole for a switch, and for that group alone") {
  View v = second_node(1);
  v.node_switch = true;
  const auto whole = steps_of(to_group(v, recv_reduce_all(Scope::node, 4, kWhole, kPart)));
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].op == Op::recv_reduce_all);
  CHECK(whole[0].to_group());
  CHECK(whole[0].from == kWhole);
  CHECK(steps_of(to_group(v, recv_reduce_all(Scope::rail, 2, kWhole, kPart))).size() == 2);
  // Alone in its group: nobody to share a switch with.
  View alone = Layout::regular(1, 1).view(0);
  alone.node_switch = true;
  const auto one = steps_of(to_group(alone, send_all(Scope::node, 1, kPart, Region{Buffer::output, 0, 2})));
  REQUIRE(one.size() == 1);
  CHECK(one[0].op == Op::copy);
}

// The definitions: a root's sum of everybody's part for it, and everybody's copy of each root's part. Messages are met
// in the order of sending, from one rank to another.
TEST_CASE("the plain steps of all members together do what the step says") {
  for (const Rank roots : {1u, 3u, 4u}) {
    // Three elements for each root: 7 parts have lengths that differ.
    for (const bool sums : {true, false}) {
      constexpr Count kCount = 7;
      std::map<std::pair<Rank, Rank>, std::vector<std::vector<std::string>>> sent;
      std::vector<std::vector<Step>> all;
      std::vector<std::map<Buffer, std::vector<std::string>>> memory(4);
      for (Rank r = 0; r < 4; ++r) {
        const Region in{Buffer::input, 0, kCount}, out{Buffer::output, 0, kCount};
        const Region own = r < roots ? out.part(r, roots) : Region{};
        for (Count i = 0; i < kCount; ++i) {
          memory[r][Buffer::input].push_back(std::to_string(r) + ":" + std::to_string(i));
          memory[r][Buffer::output].push_back("-");
        }
        if (!sums)
          for (Count i = own.offset(); i < own.offset() + own.count; ++i) memory[r][Buffer::output][i] = "part";
        all.push_back(steps_of(to_group(second_node(r), sums ? recv_reduce_all(Scope::node, roots, in, own)
                                                             : send_all(Scope::node, roots, own, out))));
        for (const Step& s : all.back()) {
          if (s.op != Op::send) continue;
          const auto& from = memory[r][s.from.buffer()];
          sent[{4 + r, s.peer}].emplace_back(from.begin() + std::ptrdiff_t(s.from.offset()),
                                             from.begin() + std::ptrdiff_t(s.from.offset() + s.from.count));
        }
      }
      for (Rank r = 0; r < 4; ++r) {
        std::map<Rank, std::size_t> taken;
        for (const Step& s : all[r]) {
          if (!s.receives()) continue;
          const auto& queue = sent[{s.peer, 4 + r}];
          REQUIRE(taken[s.peer] < queue.size());
          const auto& message = queue[taken[s.peer]++];
          REQUIRE(message.size() == s.to.count);
          for (Count i = 0; i < s.to.count; ++i)
            memory[r][s.to.buffer()][s.to.offset() + i] =
                s.op == Op::recv ? message[i] : memory[r][s.from.buffer()][s.from.offset() + i] + "+" + message[i];
        }
        for (const auto& [to, messages] : sent)
          if (to.second == 4 + r) CHECK(taken[to.first] == messages.size());
        const Region own = r < roots ? Region{Buffer::output, 0, kCount}.part(r, roots) : Region{};
        for (Count i = 0; i < kCount; ++i) {
          std::string found = memory[r][Buffer::output][i];
          if (!sums) {
            CHECK(found == "part");
          } else if (i >= own.offset() && i < own.offset() + own.count) {
            for (Rank m = 0; m < 4; ++m)
              CHECK(found.find(std::to_string(m) + ":" + std::to_string(i)) != std::string::npos);
            CHECK(found.size() == 4 * 3 + 3);
          } else {
            CHECK(found == "-");
          }
        }
      }
    }
  }
}

TEST_CASE("parts are near-equal, blocks equally far apart") {
  const Step parts = recv_reduce_all(Scope::node, 3, kWhole, kPart);
  CHECK(part_of(parts, 0) == Region{Buffer::input, 10, 3});
  CHECK(part_of(parts, 2) == Region{Buffer::input, 15, 2});
  // The third to the fifth of each ten elements.
  const Blocks blocks{Buffer::output, 2, 10, 3};
  const Step gather = send_all(Scope::node, 4, Region{Buffer::input, 0, 3}, blocks);
  CHECK(gather.to == Region{Buffer::output, 2, 33});
  CHECK(part_of(gather, 0) == Region{Buffer::output, 2, 3});
  CHECK(part_of(gather, 3) == Region{Buffer::output, 32, 3});
  CHECK(send_all(Scope::node, 4, Region{}, Blocks{Buffer::output, 2, 10, 0}).idle());
  CHECK(recv_reduce_all(Scope::node, 1, Blocks{Buffer::input, 0, 5, 5}, kPart).from.count == 5);
}

TEST_CASE("a step to a group waits for what touches any of its elements") {
  const Step reduces = recv_reduce_all(Scope::node, 4, kWhole, kPart);
  CHECK(conflicts(reduces, recv(1, {Buffer::input, 16, 1})));
  CHECK(!conflicts(reduces, send(1, {Buffer::input, 16, 1})));
  CHECK(conflicts(send(1, {Buffer::output, 3, 1}), reduces));
  CHECK(!conflicts(send(1, {Buffer::output, 4, 1}), reduces));
}
