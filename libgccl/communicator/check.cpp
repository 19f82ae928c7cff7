// Calls that differ: what GCCL_CHECK=1 compares before each, what is compared before a communicator is freed, and the
// words for what was found.
#include <algorithm>
#include <cstring>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/communicator.hpp"

namespace gccl {
namespace {

// What GCCL_CHECK=1 gathers of each call. Codes of user-defined types and operations are each process's own numbers;
// the signature says that they are user-defined, and the bytes of an element are compared.
struct Said {
  std::uint64_t signature, count, root, element_bytes;
};
constexpr std::size_t kSaidWords = sizeof(Said) / sizeof(std::uint64_t);
constexpr std::size_t kEntryWords = sizeof(History::Entry) / sizeof(std::uint64_t);

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

// The operation gathers this of every rank, as what frees the communicator.
void Communicator::compare_over(Operation* op, Operation::Checks checks, std::vector<std::uint64_t> mine) {
  op->checks = checks;
  op->check_mine = std::move(mine);
  op->check_all.assign(op->check_mine.size() * size(), 0);
  Work& w = op->work;
  w = {};
  w.what = {.kind = std::uint8_t(Collective::allgather),
            .purpose = members_.world ? Purpose::finalize : Purpose::free,
            .dtype = GCCL_UINT8,
            .count = op->check_mine.size() * sizeof(std::uint64_t)};
  w.call = {.kind = Collective::allgather, .count = w.what.count};
  w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(op->check_mine.data());
  w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(op->check_all.data());
}

bool Communicator::differ_in_digests(const Operation& op) const {
  for (std::size_t at = 0; at < op.check_all.size(); at += op.check_mine.size())
    if (op.check_all[at] != op.check_all[0]) return true;
  return false;
}

// Rank 0 counts against all the others.
void Communicator::add_to(Others* others) {
  std::lock_guard lock(lock_);
  if (!broken_.ok()) {
    others->failed = members_.id;
    others->code = std::uint64_t(broken_.code());
    return;
  }
  const std::uint64_t calls = splitmix::hash(members_.id ^ record_->history.digest());
  others->sum += rank() == 0 ? calls * (1 - std::uint64_t(size())) : calls;
  others->sum += record_->lengths_sum;
}

// All ranks made the same calls. What their all-to-alls say of each other's lengths; and what the world's ranks say of
// the communicators that were made from it.
Status Communicator::compare_others(const Operation& op) {
  const auto said = [&](Rank r) { return &op.check_all[r * op.check_mine.size()]; };
  std::uint64_t lengths = 0;
  for (Rank r = 0; r < size(); ++r) lengths += said(r)[1];
  if (lengths != 0) {
    const Status why =
        named(op.work, Status::error("in an earlier alltoallv the elements that one rank sent are not those that "
                                     "another rank was due to receive; GCCL_CHECK=1 tells which",
                                     GCCL_ERR_MISMATCH));
    break_down(why, rank(), false);
    return why;
  }
  if (op.check_mine.size() == 2) return {};
  bool all_there = true;
  std::uint64_t sum = 0;
  for (Rank r = 0; r < size(); ++r) {
    sum += said(r)[2];
    if (said(r)[3] && is_error(int(said(r)[4]))) world_->failed.push_back({said(r)[3], r, int(said(r)[4])});
    all_there &= said(r)[3] == 0 && said(r)[5] == 0;
  }
  if (sum == 0 || !all_there) return {};
  return named(op.work,
               Status::error("the ranks' calls on a communicator made from the world differ; GCCL_Comm_free of "
                             "it tells which",
                             GCCL_ERR_MISMATCH));
}

// The same operation once more, with the latest calls; every rank has found the same, and does the same.
void Communicator::gather_histories(Operation* op) {
  std::vector<std::uint64_t> mine(History::kKept * kEntryWords);
  for (std::uint32_t i = 0; i < History::kKept && i < op->work.what.sequence; ++i) {
    History::Entry e;
    if (record_->history.find(op->work.what.sequence - i, &e)) std::memcpy(&mine[i * kEntryWords], &e, sizeof e);
  }
  op->started = op->replaying = false;
  op->flow.reset();
  op->plan.reset();
  compare_over(op, Operation::Checks::histories, std::move(mine));
  number(op->work);
}

// Which call was the first that differed?
Status Communicator::compare_histories(const Operation& op) {
  const auto entry = [&](Rank r, std::uint32_t i) {
    History::Entry e;
    std::memcpy(static_cast<void*>(&e), &op.check_all[(r * History::kKept + i) * kEntryWords], sizeof e);
    return e;
  };
  const std::uint32_t last = op.work.what.sequence - 1;  // what gathered the digests
  const std::uint32_t kept = std::min(last, History::kKept - 2);
  Rank other = 1;
  while (other + 1 < size() && entry(other, 0).digest == entry(0, 0).digest) ++other;
  std::string text = "more than " + std::to_string(kept) + " calls ago";
  for (std::uint32_t i = kept; i-- > 0;) {
    const History::Entry a = entry(0, i), b = entry(other, i);
    if (a.digest == b.digest) continue;
    const std::string first = text_of_signature(a.signature, last - i, a.root, a.count, a.element_bytes);
    const std::string second = text_of_signature(b.signature, last - i, b.root, b.count, b.element_bytes);
    if (first != second) {
      text = who(0) + " called " + first + ", " + who(other) + " called " + second;
    } else if (i + 1 < kept || last == i + 1) {
      text = who(0) + " and " + who(other) + " called " + first + " with other lengths";
    }
    break;
  }
  const Status why = named(op.work, Status::error("the ranks' earlier calls differ: " + text, GCCL_ERR_MISMATCH));
  break_down(why, other, false);
  return why;
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
