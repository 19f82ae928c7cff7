// What processes say to the launcher that has started them of joining a job: it must know who works and who waits,
// since nobody is left to admit those that wait when all others have ended.
//
// Datagrams to a socket of this machine without a file (unix(7), "abstract"), named in the environment: nothing has to
// be inherited, and nothing is left behind. Each process has a word of its own, which says that it is that one.
#pragma once

#include <string>

#include "libgccl/base/environment.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

// waits: to be admitted, and does nothing else meanwhile. gave_up: it waits no longer, and has not been admitted.
enum class JoinState : char { waits = 'w', joined = 'j', gave_up = 'g' };

inline constexpr char kJoinReport[] = "GCCL_JOIN_REPORT";

// The launcher's side.
class JoinReports {
 public:
  Status open();
  // For the environment of a process: "NAME:WORD".
  std::string place(const std::string& word) const { return name_ + ":" + word; }
  int descriptor() const { return fd_.get(); }
  // False: there is none.
  bool next(std::string* word, JoinState* state) const;

 private:
  Fd fd_;
  std::string name_;
};

// To the launcher, where the environment names one. Ok where it does not.
Status report_join(const Environment& environment, JoinState state);

}  // namespace gccl
