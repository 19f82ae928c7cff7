// What a job's ranks and their launcher write, passed on to the launcher's own standard output and error.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch/output.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl::launch {

// While a reader takes nothing ranks are not read, and wait as they would on a terminal.
class JobOutput {
 public:
  // A rank's pipes, by their ends to read: each of their lines goes on with `tag` before it.
  void add(Fd out, Fd err, const std::string& tag);
  // A line of the launcher's own, to standard error.
  void say(std::string_view line) { err_.put(line); }

  // Adds what to wait for to `polled`: room where something waits for it, and the ranks' pipes where nothing does.
  void wait_for(std::vector<pollfd>& polled) const;
  void wait_for_room(std::vector<pollfd>& polled) const;  // that alone
  // Passes on what there is; `polled` is as wait_for() made it, and has been polled. False where no pipe had anything.
  bool pass_on(std::span<const pollfd> polled);
  // Writes what readers take now.
  void flush();

  // Others may hold the pipes of ranks that have ended: each is read as often from now on as what one can hold takes.
  void read_what_pipes_hold();
  // Writes the lines that were begun.
  void finish();

  std::size_t left() const { return out_.left() + err_.left(); }  // bytes that readers have not taken
  bool any_pipes() const { return !pipes_.empty(); }

  // The error number by which an output cannot be written, once and of the first of the two; else 0. A reader that left
  // is no failure of its own.
  int new_failure();
  bool failed() const { return failed_ != nullptr; }
  bool standard_error_failed() const { return failed_ == &err_; }

 private:
  struct Pipe {
    Fd from;
    TaggedStream lines;
    std::int64_t reads_left;
  };
  static constexpr std::size_t kOutputs = 2;

  Output out_{1}, err_{2};
  const Output* failed_ = nullptr;
  std::vector<Pipe> pipes_;
};

}  // namespace gccl::launch
