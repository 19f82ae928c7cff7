#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "pmpi/engine/progress.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gccl::pmpi {
namespace {

std::atomic<bool> oversubscribed{false};
std::atomic<std::uint64_t> answers{0};
thread_local std::uint64_t answers_seen = 0;

// A peer may be in the middle of an MPI message to us: MPI's own progress happens inside MPI calls only. Nothing is
// ever sent to own_self().
void move_mpi() {
  int flag = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, 0, own_self(), &flag, MPI_STATUS_IGNORE);
}

}  // namespace

void set_oversubscribed(bool yes) { oversubscribed = yes; }
bool is_oversubscribed() { return oversubscribed.load(std::memory_order_relaxed); }

void count_answer() { answers.fetch_add(1, std::memory_order_relaxed); }
bool answered_since() {
  const std::uint64_t now = answers.load(std::memory_order_relaxed);
  return std::exchange(answers_seen, now) != now;
}
void move_messages_on() {
  if (!answered_since()) return;
  for (int i = 0; i < kLooks; ++i) move_mpi();
}

// A long wait moves MPI about as often as MPI's own would: a peer may need that for each element of this rank's window
// that it updates. A short one does without.
void Wait::pause() {
  ++polls_;
  const bool yields = is_oversubscribed();  // so does each poll of GCCL's then
  if (!mpi_moves_ && (yields ? polls_ > 16 : polls_ >= 512 && polls_ % 16 == 0)) move_mpi();
  if (yields) {
    if (polls_ % 4 == 0) sched_yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#endif
  if (polls_ > 20000 && polls_ % 16 == 0) sched_yield();
}

}  // namespace gccl::pmpi
