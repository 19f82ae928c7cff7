#include "libgccl/communicator/splitting.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

class OverParent : public Exchange {
 public:
  OverParent(CommunicatorCore& parent, Purpose purpose) : parent_(parent), purpose_(purpose) {}
  // Gathers among all ranks of the parent, and hands on those of `ranks`.
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t) override {
    std::vector<std::byte> everybody(mine.size() * parent_.size());
    Work w;
    w.what = {.kind = std::uint8_t(Collective::allgather),
              .purpose = purpose_,
              .dtype = GCCL_UINT8,
              .count = mine.size(),
              .bytes = everybody.size()};
    w.call = {.kind = Collective::allgather, .count = mine.size()};
    w.memory.base[std::size_t(Buffer::input)] = const_cast<std::byte*>(mine.data());
    w.memory.base[std::size_t(Buffer::output)] = everybody.data();
    Status s = parent_.run(std::move(w));
    if (!s.ok()) return s;
    if (ranks.empty()) {
      *all = std::move(everybody);
      return {};
    }
    all->clear();
    for (const Rank r : ranks)
      all->insert(all->end(), everybody.begin() + std::ptrdiff_t(r * mine.size()),
                  everybody.begin() + std::ptrdiff_t((r + 1) * mine.size()));
    return {};
  }
  std::vector<Rank> ranks;

 private:
  CommunicatorCore& parent_;
  const Purpose purpose_;
};

// Two ranks' lists differ, or they agree and another rank's does.
std::string text_of_lists(Rank a, std::uint64_t listed_a, Rank b, std::uint64_t listed_b, std::uint64_t members) {
  const auto lists = [](Rank r, std::uint64_t n) {
    return fmt::format("rank {} lists {}{}", r, n, n == 1 ? " rank" : " ranks");
  };
  const std::string same = ": expected the same list, in the same order, on each rank that is in it";
  if (listed_a == listed_b && listed_a == members)
    return fmt::format("ranks {} and {} list {} ranks each, but others or in another order{}", a, b, listed_a, same);
  const std::string both = a == b ? lists(a, listed_a) : lists(a, listed_a) + ", " + lists(b, listed_b);
  return fmt::format("{}, and {}{} in a list{}", both, members,
                     members == 1 ? " rank finds itself" : " ranks find themselves", same);
}

Status split_for(CommunicatorCore& parent, Purpose purpose, int color, int key, std::span<const int> listed,
                 std::unique_ptr<CommunicatorCore>* out) {
  if (parent.survival().refuses()) return parent.survival().refuse_once();
  struct Choice {
    std::int32_t color, key;
    std::uint64_t listed, list;  // how many ranks the caller lists, and which
  };
  Choice mine{color < 0 ? -1 : color, key, listed.size(), 0};
  for (const int rank : listed) mine.list = (mine.list ^ std::uint64_t(rank + 1)) * splitmix::kGolden;
  const Members& members = parent.members();
  OverParent exchange(parent, purpose);
  std::vector<std::byte> all;
  Status s = exchange.all_gather({reinterpret_cast<const std::byte*>(&mine), sizeof mine}, &all, -1);
  if (!s.ok()) return s;
  std::vector<Choice> choices(parent.size());
  assert(all.size() == choices.size() * sizeof choices[0]);
  std::memcpy(choices.data(), all.data(), all.size());
  // Every rank sees all lists, and so comes to the same answer.
  const auto callers =
      std::uint64_t(std::count_if(choices.begin(), choices.end(), [](Choice c) { return c.color >= 0; }));
  const auto lister = std::find_if(choices.begin(), choices.end(), [](Choice c) { return c.listed > 0; });
  for (const Choice& c : choices)
    if (lister != choices.end() && (c.color >= 0 || c.listed > 0) &&
        (c.listed != callers || c.listed != lister->listed || c.list != lister->list))
      return Status::error(
          fmt::format("Comm_create: {}", text_of_lists(Rank(&c - choices.data()), c.listed,
                                                       Rank(lister - choices.begin()), lister->listed, callers)),
          GCCL_ERR_MISMATCH);

  std::vector<Rank> ranks;
  for (Rank r = 0; r < parent.size(); ++r)
    if (choices[r].color == mine.color) ranks.push_back(r);
  std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) { return choices[a].key < choices[b].key; });
  Members m = members.part(ranks);
  m.id = (members.id + splitmix::kGolden * parent.count_split()) ^
         (std::uint64_t(std::uint32_t(mine.color)) + 1) * 0xbf58476d1ce4e5b9;
  if (mine.color < 0) {
    // Takes part in the parent's exchanges, with nothing to say.
    const std::size_t each = parent.world().transports->instances().size() * GCCL_BACKEND_ADDRESS_BYTES;
    for (const std::size_t bytes : {each, Ports::report_bytes(), Ports::report_bytes()})
      if (s = exchange.all_gather(std::vector<std::byte>(bytes), &all, -1); !s.ok()) return s;
    out->reset();
    return {};
  }
  exchange.ranks = ranks;
  return CommunicatorCore::create(parent.team().world, std::move(m), exchange, out);
}

// Where the caller is in the list; -1 where it is not.
Status find_place(const CommunicatorCore& parent, std::span<const int> ranks, int* place) {
  *place = -1;
  std::vector<bool> listed(parent.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || Rank(ranks[i]) >= parent.size())
      return invalid(fmt::format("ranks[{}] is {}: expected 0 to {}", i, ranks[i], parent.size() - 1));
    if (listed[Rank(ranks[i])]) return invalid(fmt::format("ranks[{}] repeats rank {}", i, ranks[i]));
    listed[Rank(ranks[i])] = true;
    if (Rank(ranks[i]) == parent.rank()) *place = int(i);
  }
  return {};
}

}  // namespace

Status split_communicator(CommunicatorCore& parent, int color, int key, std::unique_ptr<CommunicatorCore>* out) {
  return split_for(parent, Purpose::split, color, key, {}, out);
}

Status create_from(CommunicatorCore& parent, std::span<const int> ranks, std::unique_ptr<CommunicatorCore>* out) {
  if (parent.survival().refuses()) return parent.survival().refuse_once();  // `ranks` may go by the old numbers
  int key = -1;
  if (Status s = find_place(parent, ranks, &key); !s.ok()) return s;
  return split_for(parent, Purpose::create, key < 0 ? -1 : 0, key, ranks, out);
}

Status create_apart(const CommunicatorCore& parent, std::span<const int> ranks, std::uint64_t id, Exchange& exchange,
                    std::unique_ptr<CommunicatorCore>* out) {
  int place = -1;
  if (Status s = find_place(parent, ranks, &place); !s.ok()) return s;
  if (place < 0) return invalid(fmt::format("ranks does not list rank {}, which called", parent.rank()));
  const std::vector<Rank> members(ranks.begin(), ranks.end());
  Members m = parent.members().part(members);
  m.id = id;
  return CommunicatorCore::create(parent.team().world, std::move(m), exchange, out);
}

}  // namespace gccl
