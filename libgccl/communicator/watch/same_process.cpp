// Ranks of one communicator that the same process is. One thread makes the calls of several of them in a group, or as
// I-forms; where it waits for one of them instead, with the calls of the others to come afterwards, it waits for ever,
// and nobody answers for those others, as only a rank that waits does. But what they have begun can be seen from here.
#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "libgccl/base/log.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/communicator/watch/watch.hpp"

namespace gccl {
namespace {

// Where another thread may make the missing call after all, a wait is spoken of when it has lasted so long.
constexpr std::int64_t kSpeakNs = 10'000'000'000;
constexpr const char* kAdvice =
    "expected all of this process's calls to be begun before one is waited for: in a group "
    "(GCCL_Group_start, gccl::CommunicationGroup::grouped) or as I-forms; or a thread for each rank "
    "(gccl::CommunicationGroup::in_parallel)";

// Of this process. Taken with the lock of a watch held, and never the other way round.
std::mutex& here_mutex() {
  static NoDestructor<std::mutex> mutex;
  return *mutex;
}
std::vector<const Watch::Record*>& here() {
  static NoDestructor<std::vector<const Watch::Record*>> records;
  return *records;
}

}  // namespace

Watch::Here::Here(const Record& record) : record_(record) {
  const std::lock_guard lock(here_mutex());
  here().push_back(&record_);
}

Watch::Here::~Here() {
  const std::lock_guard lock(here_mutex());
  std::erase(here(), &record_);
}

// The wait there ends no sooner than that rank makes a call that it has not begun, or than what is sent to it finds
// room, where that may be.
bool Watch::waits_for_call(const Record& record, const Record& other, bool may_find_room) {
  const Waiting& w = record.waiting_;
  switch (w.in) {
    case In::collective:
      if (w.follows) return false;
      return std::int32_t(w.sequence - other.history.last()) > 0 &&
             (((w.receives || may_find_room) && w.peer == other.rank_) || depends_on(record, other.rank_));
    case In::recv: return w.peer == other.rank_ && std::int32_t(w.message - other.messages.sent(record.rank_)) > 0;
    case In::send:
      return may_find_room && w.peer == other.rank_ &&
             std::int32_t(w.message - other.messages.received(record.rank_)) > 0;
    default: return false;
  }
}

void Watch::compare_same_process(Record& record, std::int64_t now_ns) {
  const Waiting& w = record.waiting_;
  if (!w.blocked || !record.differs_.what.ok()) return;
  const std::lock_guard lock(here_mutex());
  const auto find = [&](bool may_find_room) {
    return std::ranges::find_if(here(), [&](const Record* other) {
      return other->id_ == record.id_ && other != &record && !other->broken.load(std::memory_order_relaxed) &&
             waits_for_call(record, *other, may_find_room);
    });
  };
  auto found = find(false);
  const bool certain = found != here().end();
  if (!certain) found = find(true);
  if (found == here().end()) {
    record.alone_in_ = 0;
    return;
  }
  const Record& other = **found;
  const std::string call =
      w.in == In::collective
          ? text_of_signature(w.signature, {w.sequence, Rank(record.world_rank_.size())})
          : fmt::format("{} {}", w.in == In::recv ? "recv from" : "send to", rank_text(w.peer, record.world_rank_));
  const char* const theirs = w.in == In::collective ? "it" : w.in == In::recv ? "the send" : "the receive";
  const std::string missing = fmt::format("{} has not begun {}, which this process is, too",
                                          rank_text(other.rank_, record.world_rank_), theirs);
  if (certain && alone())
    return differs(record, {rank_}, fmt::format("{}: {}, and its only thread waits here: {}", call, missing, kAdvice),
                   GCCL_ERR_INVALID_USAGE);
  if (std::exchange(record.alone_in_, w.number) != w.number) record.alone_since_ns_ = now_ns;
  if (record.alone_since_ns_ == 0 || now_ns - record.alone_since_ns_ < kSpeakNs) return;
  record.alone_since_ns_ = 0;  // once in a wait
  if (const void* const by = other.thread.load(std::memory_order_relaxed);
      !by || by == record.thread.load(std::memory_order_relaxed))
    log_line(kLogWarnings,
             fmt::format("{}, {}: has waited {} s: {}, and its latest collective, if it has made any, was no other "
                         "thread's. If the thread that waits here is to make it, that never happens: {}",
                         rank_text(record.rank_, record.world_rank_, true), call, kSpeakNs / 1'000'000'000, missing,
                         kAdvice));
}

}  // namespace gccl
