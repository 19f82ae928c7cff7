#include "libgccl/communicator/watch/comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>

#include "libgccl/base/crc32c.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl {
namespace {

// What GCCL_CHECK=1 gathers of each call. Codes of user-defined types and operations are each process's own numbers;
// the signature says that they are user-defined, and the bytes of an element are compared.
struct Said {
  std::uint64_t signature, count, root, element_bytes;
};
// Of digests that say of other communicators, too, which words say what.
constexpr std::size_t kOthersSum = 3, kFailedCount = 4, kFailedFirst = 5, kUneven = 7, kWordsWithOthers = 8;
constexpr std::size_t kEntryWords = sizeof(History::Entry) / sizeof(std::uint64_t);

// The checksum is of the bits, which are the same on every rank but for the sign and payload of NaNs.
std::uint64_t result_checksum(const std::byte* from, Count elements, GCCL_Dtype dtype, std::uint32_t element_bytes) {
  const auto whole = [&](auto zero, auto infinity) {  // elements of a float as wide as these
    using Bits = decltype(zero);
    constexpr std::size_t kAtOnce = 512;
    constexpr Bits kNoSign = Bits(~Bits(0)) >> 1;
    Bits some[kAtOnce];
    std::uint32_t crc = 0;
    for (Count at = 0; at < elements; at += kAtOnce) {
      const std::size_t n = std::min<Count>(kAtOnce, elements - at);
      std::memcpy(some, from + at * sizeof(Bits), n * sizeof(Bits));
      for (std::size_t i = 0; i < n; ++i)
        if (Bits(some[i] & kNoSign) > infinity) some[i] = kNoSign;
      crc = crc32c(std::as_bytes(std::span(some, n)), crc);
    }
    return std::uint64_t(crc);
  };
  switch (dtype) {
    case GCCL_FLOAT32: return whole(std::uint32_t(0), std::uint32_t(0x7f800000));
    case GCCL_FLOAT64: return whole(std::uint64_t(0), std::uint64_t(0x7ff0000000000000));
    case GCCL_FLOAT16: return whole(std::uint16_t(0), std::uint16_t(0x7c00));
    case GCCL_BFLOAT16: return whole(std::uint16_t(0), std::uint16_t(0x7f80));
    default: return crc32c({from, std::size_t(elements) * element_bytes});
  }
}

std::string text_of(const Said& s, std::uint32_t sequence) {
  return text_of_signature(s.signature, sequence, Rank(s.root), s.count, std::uint32_t(s.element_bytes));
}

// `said`: a FailedHere; its communicator is 0 where there is none.
void note_failure(World* world, Rank by, const std::uint64_t* said) {
  if (said[0] && is_error(int(said[1]))) world->failed.push_back({said[0], by, int(said[1])});
}

}  // namespace

Comparison::Comparison(Of of, std::vector<std::uint64_t> mine, std::size_t words)
    : of_(of), mine_(std::move(mine)), all_(words) {}

Comparison Comparison::of_all(Of of, const Members& members, std::vector<std::uint64_t> mine) {
  const std::size_t words = mine.size() * members.size();
  return {of, std::move(mine), words};
}

Comparison Comparison::of_descriptions(const Members& members, const Descriptor& call, std::uint64_t lengths_sum) {
  return of_all(Of::descriptions, members, {call.signature(), call.count, call.root, call.element_bytes, lengths_sum});
}

// To each rank, and then from each.
Comparison Comparison::of_lengths(const Members& members, const Lengths& lengths) {
  std::vector<std::uint64_t> mine(lengths.send_counts, lengths.send_counts + members.size());
  mine.insert(mine.end(), lengths.recv_counts, lengths.recv_counts + members.size());
  return of_all(Of::lengths, members, std::move(mine));
}

bool Comparison::has_one_result(const Work& work) {
  const Collective kind = work.call.kind;
  return work.what.purpose == Purpose::itself && !user_defined(work.what.dtype) &&
         (kind == Collective::allreduce || kind == Collective::allgather || kind == Collective::broadcast);
}

Comparison Comparison::of_results(const Members& members, const Work& work) {
  const Count elements = work.call.count * (work.call.kind == Collective::allgather ? members.size() : 1);
  Comparison c = of_all(
      Of::results, members,
      {result_checksum(work.memory.base[std::size_t(Buffer::output)], elements, work.what.dtype, work.elements.bytes)});
  c.call_ = work.what.text();
  return c;
}

Comparison Comparison::of_digests(const Members& members, std::uint64_t digest, std::uint64_t lengths,
                                  std::uint64_t messages, const Others* others, bool uneven) {
  std::vector<std::uint64_t> mine = {digest, lengths, messages};
  if (!others) return of_all(Of::digests, members, std::move(mine));
  const FailedHere first = others->failed.empty() ? FailedHere() : others->failed.front();
  mine.insert(mine.end(), {others->sum, others->failed.size(), first.communicator, first.code, std::uint64_t(uneven)});
  Comparison c = of_all(Of::digests, members, std::move(mine));
  c.failed_ = others->failed;
  return c;
}

Comparison Comparison::of_failures(const Members& members) const {
  assert(needs_failures());
  std::uint64_t most = 0;
  for (Rank r = 0; r < members.size(); ++r) most = std::max(most, of_rank(r)[kFailedCount]);
  std::vector<std::uint64_t> mine;
  for (const FailedHere& f : failed_) mine.insert(mine.end(), {f.communicator, f.code});
  mine.resize(most * 2);
  return of_all(Of::failures, members, std::move(mine));
}

Comparison Comparison::of_histories(const Members& members, const History& history, std::uint32_t sequence) {
  std::vector<std::uint64_t> mine(History::kKept * kEntryWords);
  for (std::uint32_t i = 0; i < History::kKept && i < sequence; ++i) {
    History::Entry e;
    if (history.find(sequence - i, &e)) std::memcpy(&mine[i * kEntryWords], &e, sizeof e);
  }
  return of_all(Of::histories, members, std::move(mine));
}

Work Comparison::work(const Members& members) {
  Work w;
  assert(!mine_.empty() && all_.size() == mine_.size() * members.size());  // what the gathering writes to
  w.what = {.kind = std::uint8_t(Collective::allgather),
            .purpose = !frees()        ? Purpose::check
                       : members.world ? Purpose::finalize
                                       : Purpose::free,
            .dtype = GCCL_UINT8,
            .count = mine_.size() * sizeof(std::uint64_t)};
  w.call = {.kind = Collective::allgather, .count = w.what.count};
  w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(mine_.data());
  w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(all_.data());
  return w;
}

bool Comparison::needs_histories() const {
  if (of_ != Of::digests) return false;
  for (std::size_t at = 0; at < all_.size(); at += mine_.size())
    if (all_[at] != all_[0]) return true;
  return false;
}

std::uint64_t Comparison::sum_of(std::size_t at) const {
  std::uint64_t sum = 0;
  for (; at < all_.size(); at += mine_.size()) sum += all_[at];
  return sum;
}

bool Comparison::needs_failures() const {
  if (of_ != Of::digests || mine_.size() != kWordsWithOthers || sum_of(1) != 0 || sum_of(2) != 0) return false;
  for (std::size_t at = kFailedCount; at < all_.size(); at += mine_.size())
    if (all_[at] > 1) return true;
  return false;
}

bool Comparison::needs_lengths() const {
  if (of_ != Of::descriptions) return false;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < all_.size(); at += mine_.size()) {
    if (std::memcmp(&all_[at], all_.data(), sizeof(Said)) != 0) return false;
    sum += all_[at + sizeof(Said) / sizeof(std::uint64_t)];
  }
  return sum != 0;
}

Comparison::Found Comparison::found(const Members& members, const Work& work, World* world) const {
  switch (of_) {
    case Of::descriptions: return in_descriptions(members, work);
    case Of::lengths: return in_lengths(members, work);
    case Of::results: return in_results(members);
    case Of::digests: return in_digests(members, work, world);
    case Of::failures: in_failures(world); break;
    case Of::histories: return in_histories(members, work);
  }
  return {};
}

// Every rank finds the same by itself.
Comparison::Found Comparison::in_descriptions(const Members& members, const Work& work) const {
  const auto said_by = [this](Rank r) {
    Said s;
    std::memcpy(&s, of_rank(r), sizeof s);
    return s;
  };
  const Said first = said_by(0);
  for (Rank r = 1; r < members.size(); ++r) {
    const Said other = said_by(r);
    if (std::memcmp(&first, &other, sizeof first) == 0) continue;
    const std::string mine = text_of(first, work.what.sequence), theirs = text_of(other, work.what.sequence);
    return {.why = Status::error(fmt::format("{} calls {}, {} calls {}", members.name(r), theirs, members.name(0),
                                             mine == theirs ? "the same with other lengths" : mine),
                                 GCCL_ERR_MISMATCH),
            .culprit = r};
  }
  return {};
}

// Those that differ from most; where no result has a majority, nobody knows who is right.
Comparison::Found Comparison::in_results(const Members& members) const {
  std::uint64_t usual = 0;
  Rank most = 0;
  for (const std::uint64_t sum : all_)
    if (const Rank n = Rank(std::count(all_.begin(), all_.end(), sum)); n > most) most = n, usual = sum;
  if (most == members.size()) return {};
  std::string who;
  Rank culprit = members.size();
  for (Rank r = 0; r < members.size(); ++r) {
    if (all_[r] == usual) continue;
    culprit = std::min(culprit, r);
    who += (who.empty() ? "" : ", ") + members.name(r);
  }
  return {.why = Status::error(fmt::format("{}: {} {} another result than {} of {} ranks (GCCL_CHECK=2): memory or a "
                                           "processor has erred, or an operation of the program's differs{}",
                                           call_, who, who.find(',') == who.npos ? "has" : "have", most, members.size(),
                                           2 * most > members.size() ? "" : "; which of them is right is not known"),
                               GCCL_ERR_MISMATCH),
          .culprit = culprit};
}

// Every rank finds the same by itself.
Comparison::Found Comparison::in_lengths(const Members& members, const Work& work) const {
  for (Rank to = 0; to < members.size(); ++to)
    for (Rank from = 0; from < members.size(); ++from) {
      const std::uint64_t sent = of_rank(from)[to], due = of_rank(to)[members.size() + from];
      if (sent != due)
        return {
            .why = Status::error(fmt::format("alltoallv #{}: {} sends {} {} elements where its recvcounts[{}] is {}",
                                             work.what.sequence, members.name(from), members.name(to), sent, from, due),
                                 GCCL_ERR_MISMATCH),
            .culprit = from};
    }
  return {};
}

// All ranks made the same calls. What their all-to-alls say of each other's lengths; and what the world's ranks say of
// the communicators that were made from it.
Comparison::Found Comparison::in_digests(const Members& members, const Work& work, World* world) const {
  if (sum_of(1) != 0)
    return {.why = members.in_context(
                work.what, Status::error("in an earlier alltoallv the elements that one rank sent are not those that "
                                         "another rank was due to receive; GCCL_CHECK=1 says which",
                                         GCCL_ERR_MISMATCH)),
            .culprit = members.rank};
  if (sum_of(2) != 0)
    return {.why = members.in_context(
                work.what, Status::error("some rank has sent another one, or itself, messages that it has not received",
                                         GCCL_ERR_MISMATCH)),
            .culprit = members.rank};
  if (mine_.size() == 3) return {};
  assert(mine_.size() == kWordsWithOthers && world);  // of_digests() with `others`
  bool all_there = true;
  for (Rank r = 0; r < members.size(); ++r) {
    const std::uint64_t* const said = of_rank(r);
    note_failure(world, r, said + kFailedFirst);
    all_there &= said[kFailedCount] == 0 && said[kUneven] == 0;
  }
  if (sum_of(kOthersSum) == 0 || !all_there) return {};
  return {.why = members.in_context(
              work.what, Status::error("the ranks' calls on a communicator made from the world differ; GCCL_Comm_free "
                                       "of it says which",
                                       GCCL_ERR_MISMATCH)),
          .breaks = false};
}

void Comparison::in_failures(World* world) const {
  for (std::size_t at = 0; at < all_.size(); at += 2) note_failure(world, Rank(at / mine_.size()), &all_[at]);
}

// Which call was the first that differed?
Comparison::Found Comparison::in_histories(const Members& members, const Work& work) const {
  const auto entry = [&](Rank r, std::uint32_t i) {
    History::Entry e;
    std::memcpy(static_cast<void*>(&e), of_rank(r) + i * kEntryWords, sizeof e);
    return e;
  };
  assert(members.size() > 1 && mine_.size() == History::kKept * kEntryWords);
  const std::uint32_t last = work.what.sequence - 1;  // what gathered the digests
  const std::uint32_t kept = std::min(last, History::kKept - 2);
  Rank other = 1;
  while (other + 1 < members.size() && entry(other, 0).digest == entry(0, 0).digest) ++other;
  std::string text = fmt::format("more than {} calls ago", kept);
  for (std::uint32_t i = kept; i-- > 0;) {
    const History::Entry a = entry(0, i), b = entry(other, i);
    if (a.digest == b.digest) continue;
    const std::string first = text_of_signature(a.signature, last - i, a.root, a.count, a.element_bytes);
    const std::string second = text_of_signature(b.signature, last - i, b.root, b.count, b.element_bytes);
    if (first != second) {
      text = fmt::format("{} called {}, {} called {}", members.name(0), first, members.name(other), second);
    } else if (i + 1 < kept || last == i + 1) {
      text = fmt::format("{} and {} called {} with other lengths", members.name(0), members.name(other), first);
    }
    break;
  }
  return {.why = members.in_context(
              work.what, Status::error(fmt::format("the ranks' earlier calls differ: {}", text), GCCL_ERR_MISMATCH)),
          .culprit = other};
}

Status calls_differ(const Members& members, const Descriptor& call, const Difference& found) {
  const Near near{call.sequence, members.size()};
  const std::uint64_t mine = call.signature();
  std::string theirs = text_of_signature(found.signature, near);
  if (found.signature != mine && theirs == text_of_signature(mine, near)) theirs += " with other lengths";
  if (found.signature == mine)
    theirs += fmt::format(" (a message of {} bytes where {} are due)", found.bytes, found.bytes_due);
  // A rank whose counts are zero, say, sends nothing, and does not wait.
  const bool past = !call.point_to_point() && Descriptor::calls_ahead(found.signature, call.sequence) > 0;
  return members.in_context(
      call,
      Status::error(
          fmt::format(
              "{} {}calls {}", members.name(found.peer),
              past ? fmt::format("went through its own #{} without what this rank waits for, and ", call.sequence) : "",
              theirs),
          GCCL_ERR_MISMATCH));
}

}  // namespace gccl
