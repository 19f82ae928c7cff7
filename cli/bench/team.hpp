// The processes that mpirun or gccl launch has started, as a command that shares out its work sees them.
#pragma once

#include <string>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::bench {

class Team {
 public:
  virtual ~Team() = default;  // all leave
  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual Rank ranks_here() const = 0;  // on this one's machine, itself among them
  // What each of them gives, by rank. Ranks that wait leave the processor to others. Ends the process where one has
  // failed.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
};

// What the plug-ins that have ranks export as gccl_team: all of them meet. `command` for what is said when one fails.
// Null, with the reason, where they do not.
using TeamEntry = Team* (*)(const char* command, std::string* error);

}  // namespace gccl::bench
