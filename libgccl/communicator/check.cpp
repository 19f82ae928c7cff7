// Calls that differ: what GCCL_CHECK=1 compares before each, what is compared before a communicator is freed, and the
// words for what was found.
#include <cstring>

#include "libgccl/communicator/communicator.hpp"

namespace gccl {
namespace {

// What GCCL_CHECK=1 gathers of each call. Codes of user-defined types and operations are each process's own numbers;
// the signature says that they are user-defined, and the bytes of an element are compared.
struct Said {
  std::uint64_t signature, count, root, element_bytes;
};
constexpr std::size_t kSaidWords = sizeof(Said) / sizeof(std::uint64_t);

Said said_by(const std::vector<std::uint64_t>& all, Rank r) {
  Said s;
  std::memcpy(&s, all.data() + r * kSaidWords, sizeof s);
  return s;
}

std::string text_of(const Said& s, std::uint32_t sequence) {
  return text_of_signature(s.signature, sequence, Rank(s.root), s.count, std::uint32_t(s.element_bytes));
}

}  // namespace

// The descriptions of all ranks' calls are gathered before the call itself; then the lengths of an all-to-all, which
// only sender and receiver know.
void Communicator::check_first(Operation* op) {
  const Descriptor& what = op->work.what;
  const auto add = [&](Operation::Checks checks, Collective kind, std::size_t words) {
    auto* const check = new Operation(*this);
    check->checks = checks;
    check->given_up = true;
    Work& w = check->work;
    w.what = {.kind = std::uint8_t(kind),
              .purpose = Purpose::check,
              .dtype = GCCL_UINT8,
              .count = words * sizeof(std::uint64_t),
              .sequence = what.sequence};
    w.call = {.kind = kind, .count = w.what.count};
    check->check_all.resize(words * size());
    check->started_ns = op->started_ns;
    active_.fetch_add(1, std::memory_order_relaxed);
    queue_.push_back(check);
    return check;
  };
  const auto place = [](Operation* check) {
    check->work.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(check->check_mine.data());
    check->work.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(check->check_all.data());
  };
  Operation* const calls = add(Operation::Checks::descriptions, Collective::allgather, kSaidWords);
  calls->check_mine = {what.signature(), what.count, what.root, what.element_bytes};
  place(calls);
  if (op->work.call.kind != Collective::alltoallv) return;
  const Lengths& l = *op->work.lengths;
  Operation* const lengths = add(Operation::Checks::lengths, Collective::alltoall, 1);
  lengths->check_mine.assign(l.send_counts, l.send_counts + size());
  lengths->check_due.assign(l.recv_counts, l.recv_counts + size());
  place(lengths);
}

void Communicator::compare_checks(Operation* op) {
  const std::uint32_t sequence = op->work.what.sequence;
  const Said first = said_by(op->check_all, 0);
  for (Rank r = 1; r < size(); ++r) {
    const Said other = said_by(op->check_all, r);
    if (std::memcmp(&first, &other, sizeof first) == 0) continue;
    const std::string mine = text_of(first, sequence), theirs = text_of(other, sequence);
    // Every rank finds the same by itself.
    return break_down(Status::error(who(r) + " calls " + theirs + ", " + who(0) + " calls " +
                                        (mine == theirs ? "the same with other lengths" : mine),
                                    GCCL_ERR_MISMATCH),
                      r, false);
  }
}

// Only this rank sees what it is sent.
void Communicator::compare_lengths(Operation* op) {
  for (Rank r = 0; r < size(); ++r)
    if (op->check_all[r] != op->check_due[r])
      return break_down(
          Status::error(who(rank()) + ", alltoallv #" + std::to_string(op->work.what.sequence) + ": " + who(r) +
                            " sends it " + std::to_string(op->check_all[r]) + " elements where its recvcounts[" +
                            std::to_string(r) + "] is " + std::to_string(op->check_due[r]),
                        GCCL_ERR_MISMATCH),
          r, true);
}

Work Communicator::gather_before_leaving(const void* mine, std::size_t bytes, void* all) const {
  Work w;
  w.what = leave_descriptor();
  w.what.count = bytes;
  w.call = {.kind = Collective::allgather, .count = bytes};
  w.memory.base[std::size_t(Buffer::input)] = static_cast<std::byte*>(const_cast<void*>(mine));
  w.memory.base[std::size_t(Buffer::output)] = static_cast<std::byte*>(all);
  return w;
}

// Digests that differ: the ranks' latest calls tell which was the first.
Status Communicator::begin_to_compare(Operation** out) {
  *out = nullptr;
  {
    std::lock_guard lock(lock_);
    if (!broken_.ok() || !farewell_) return {};
  }
  if (std::ranges::count(farewell_->digests, farewell_->digests[0]) == std::ptrdiff_t(size())) {
    farewell_.reset();
    return {};
  }
  farewell_->mine.resize(History::kKept);
  farewell_->all.resize(std::size_t(History::kKept) * size());
  const std::uint32_t last = farewell_->last = record_->history.last();
  for (std::uint32_t i = 0; i < History::kKept && i < last; ++i) record_->history.find(last - i, &farewell_->mine[i]);
  return start(
      gather_before_leaving(farewell_->mine.data(), History::kKept * sizeof(History::Entry), farewell_->all.data()),
      out);
}

Status Communicator::compared() {
  std::lock_guard lock(lock_);
  if (!broken_.ok() || !farewell_) return {};
  const std::vector<std::uint64_t>& digests = farewell_->digests;
  Rank other = 0;
  while (digests[other] == digests[0]) ++other;
  const std::uint32_t last = farewell_->last;
  const auto entry = [&](Rank r, std::uint32_t i) { return farewell_->all[r * History::kKept + i]; };
  std::string text = "more than " + std::to_string(History::kKept) + " calls ago";
  for (std::uint32_t i = std::min(last, History::kKept - 2); i-- > 0;) {
    const History::Entry a = entry(0, i), b = entry(other, i);
    if (a.digest == b.digest) continue;
    const std::uint32_t sequence = last - i;
    const std::string first = text_of_signature(a.signature, sequence, a.root, a.count, a.element_bytes);
    const std::string second = text_of_signature(b.signature, sequence, b.root, b.count, b.element_bytes);
    if (first != second) {
      text = who(0) + " called " + first + ", " + who(other) + " called " + second;
    } else if (i + 1 < std::min(last, History::kKept - 2) || sequence == 1) {
      text = who(0) + " and " + who(other) + " called " + first + " with other lengths";
    }
    break;
  }
  break_down(
      Status::error(who_of(rank()) + ", " + leave_descriptor().text() + ": the ranks' earlier calls differ: " + text,
                    GCCL_ERR_MISMATCH),
      other, false);
  told_ = true;
  return broken_;
}

Status Communicator::differs(const Work& work, const Difference& found) const {
  const Near near{work.what.sequence, size()};
  const std::uint64_t mine = work.what.signature();
  std::string theirs = text_of_signature(found.signature, near);
  if (found.signature != mine && theirs == text_of_signature(mine, near)) theirs += " with other lengths";
  if (found.signature == mine)
    theirs += " (a message of " + std::to_string(found.bytes) + " bytes where " + std::to_string(found.bytes_due) +
              " are due)";
  return named(work, Status::error(who(found.peer) + " calls " + theirs, GCCL_ERR_MISMATCH));
}

Status Communicator::failure(const Operation& op) const {
  const Status& s = op.flow->status();
  return s.code() == GCCL_ERR_MISMATCH ? differs(op.work, op.flow->difference()) : named(op.work, s);
}

}  // namespace gccl
