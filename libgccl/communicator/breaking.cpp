#include "libgccl/communicator/breaking.hpp"

#include <fmt/core.h>

#include <cstring>

namespace gccl {

Status reason(const Team& team, const Operation* op, const GCCL_Fault& f) {
  const Members& members = team.members;
  if (f.result == GCCL_ERR_TIMEOUT && op) {
    // The other rank's words may have come shortened, which they say; these are this rank's own.
    Rank peer = team.rank();
    const std::string what = op->awaited(&peer);
    const Status mine =
        members.in_context(op->text(), Status::error(fmt::format("waiting for {}, {}{}", members.name(peer), what,
                                                                 team.world->watch->report(*team.record, now_ns())),
                                                     f.result));
    return Status::error(fmt::format("{}; {}", f.text, mine.text()), f.result);
  }
  if (f.result != GCCL_ERR_PEER_LOST) return Status::error(f.text, f.result);
  const bool says_who = std::strncmp(f.text, "rank ", 5) == 0 || std::strncmp(f.text, "lost ", 5) == 0;
  const std::string text = says_who ? f.text : fmt::format("lost {}: {}", members.name(f.peer), f.text);
  return op && text.starts_with("lost") ? members.in_context(op->text(), Status::error(text, f.result))
                                        : Status::error(text, f.result);
}

Status in_context(const Members& members, const Descriptor& what, Status why) noexcept {
  try {
    return members.in_context(what.text(), why);
  } catch (...) {
    return why;
  }
}

Status in_context(const Members& members, const Operation& op, Status why) noexcept {
  try {
    return members.in_context(op.text(), why);
  } catch (...) {
    return why;
  }
}

void abort_ports(Ports& ports, const GCCL_Fault& f) noexcept {
  for (Ports::Port& port : ports.all()) try {
      if (port.state) port.backend->abort(port.state, &f);
    } catch (...) {  // what cannot be said is noticed when this rank leaves
    }
}

}  // namespace gccl
