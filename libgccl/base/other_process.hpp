// Another process of this machine: whether it is still there, and which threads it has.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>

namespace gccl {

// Process numbers are used again; a number and the time at which the process began are not.
struct OtherProcess {
  std::int32_t pid = 0;
  std::uint64_t began = 0;  // in ticks since the machine did; 0: the system does not say
  // Identifies the running machine and the process-id namespace, in which pid is its number; 0: the system does not
  // say.
  std::uint64_t place = 0;

  static OtherProcess me();
  // Whether the functions below mean anything here. Two containers may give themselves the same host name.
  bool seen_from(const OtherProcess& here) const { return pid != 0 && place != 0 && place == here.place; }
  enum class State : std::uint8_t { runs, stopped, ended };
  // As `ended` counts one that nobody has waited for yet.
  State state() const;
  // A descriptor that becomes readable when it ends, or -1 (it has ended, or the system has none).
  int open_watch() const;
};

// Its main thread, perhaps before others: false also where the system does not say.
bool main_thread_has_ended(std::int32_t pid);

// The threads of a process but for its main thread, one after the other: where that has ended before them, what the
// system gives under the process's number (its memory, its descriptors) it gives under theirs alone.
class OtherThreads {
 public:
  explicit OtherThreads(std::int32_t pid);
  // False: the system does not say which there are, for want of /proc or of a descriptor.
  bool known() const { return known_; }
  // 0: no more.
  std::int32_t next();
  // Whether it still is one of them, and its number not another one's.
  bool has(std::int32_t thread) const;

 private:
  std::int32_t pid_;
  bool known_ = false;
  std::unique_ptr<DIR, int (*)(DIR*)> folder_{nullptr, ::closedir};
};

}  // namespace gccl
