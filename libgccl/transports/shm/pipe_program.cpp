#include "libgccl/transports/shm/pipe_program.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "libgccl/schedule/replay_order.hpp"

namespace gccl::shm {

static_assert(kReplayMessagesMax <= kCells - kCellsUnacknowledged);

namespace {

// From here on a message to several peers is written once.
constexpr std::uint32_t kCommonBytes = 256;

}  // namespace

std::unique_ptr<PipeProgram> PipeProgram::compile(Schedule schedule, std::uint32_t element_bytes, Port* port) {
  auto program = std::make_unique<PipeProgram>();
  program->port_ = port;
  const auto steps = replay_order(std::move(schedule));
  if (!steps) return nullptr;
  for (const gccl::Step& s : *steps) {
    const Count bytes = s.count() * element_bytes;
    if (bytes > ~std::uint32_t(0)) return nullptr;
    Step x{.op = s.op,
           .from_buffer = s.from.buffer(),
           .to_buffer = s.to.buffer(),
           .peer = s.peer,
           .bytes = std::uint32_t(bytes),
           .end = nullptr,
           .from = s.from.offset() * element_bytes,
           .to = s.to.offset() * element_bytes,
           .count = s.count()};
    if (!s.local()) {
      if (bytes > kShortBytesMax) return nullptr;
      x.end = port ? port->end(s.peer, 0, s.receives()) : nullptr;
      if (!x.end) return nullptr;
      Traffic& t = program->traffic;
      (s.op == Op::send ? t.messages_sent : t.messages_received) += 1;
      (s.op == Op::send ? t.bytes_sent : t.bytes_received) += bytes;
      // Pieces are combined as they come: none may end within an element.
      if (s.op == Op::recv_reduce && bytes > kBeginningBytes && kBeginningBytes % element_bytes != 0) return nullptr;
    }
    program->steps_.push_back(x);
    program->ends_.push_back(x.end);
  }
  program->join_sends();
  return program->fits() ? std::move(program) : nullptr;
}

// Reserves what the sends take of the pipes. True where all of a call's messages fit: then a sender never waits for a
// later step of its reader.
bool PipeProgram::fits() const {
  struct Load {
    std::uint32_t cells = 0, chunks = 0;
  };
  std::map<const End*, Load> loads;
  for (const bool reserved : {false, true})
    for (std::size_t i = 0, next = 0; i < steps_.size(); i = next) {
      const Step& s = steps_[i];
      next = i + s.same;
      if (s.op != Op::send) continue;
      for (End* const e : ends_of(s)) {
        if (!reserved) {
          if (!port_->reserve(*e, s.same > 1 ? kReservedCells : wanted(s.bytes))) return false;
          continue;
        }
        const std::uint32_t has = e->writer.reserved();
        Load& load = loads[e];
        load.cells += s.same > 1 ? 1 : cells_taken(s.bytes, has);
        load.chunks += s.same > 1 ? 0 : chunks_taken(s.bytes, has);
        if (load.cells > kCells - kCellsUnacknowledged || load.chunks > chunks(has)) return false;
      }
    }
  return true;
}

// At most kCommons of them: so a sender waits for readers of earlier calls alone, which are on their way.
void PipeProgram::join_sends() {
  std::uint32_t commons = 0, longest = 0;
  for (std::size_t i = 0, next = 0; i < steps_.size() && commons < kCommons; i = next) {
    Step& s = steps_[i];
    next = i + 1;
    if (s.op != Op::send || s.bytes < kCommonBytes) continue;
    const auto is_same = [&](const Step& x) {
      return x.op == Op::send && x.from_buffer == s.from_buffer && x.from == s.from && x.bytes == s.bytes &&
             std::none_of(std::as_const(steps_).data() + i, &x,
                          [&](const Step& before) { return before.peer == x.peer; });
    };
    while (next < steps_.size() && is_same(steps_[next])) ++next;
    s.same = std::uint32_t(next - i);
    if (s.same == 1) continue;
    ++commons;
    longest = std::max(longest, s.bytes);
  }
  if (commons > 0 && !port_->reserve_commons(commons, longest))
    for (Step& s : steps_) s.same = 1;
}

// Short messages come in one piece; of others each piece is used as it arrives, where it holds whole elements.
inline PipeProgram::Outcome PipeProgram::receive(Replay& replay, const Step& s, const std::byte* from,
                                                 std::byte* to) const {
  Reader& reader = s.end->reader;
  const Elements& elements = *replay.elements;
  for (;;) {
    const Cell* const c = reader.peek();
    if (!c) return Outcome::blocked;
    const CellKind kind = read_once(c->kind);
    const bool in_cell = kind == CellKind::inline_data;
    if (replay.received == 0 &&
        (c->signature != replay.signature || (in_cell ? c->piece_bytes : c->far.message_bytes) != s.bytes)) {
      replay.signature_found = c->signature;
      replay.bytes_found = in_cell ? c->piece_bytes : c->far.message_bytes;
      return Outcome::mismatch;
    }
    const std::uint32_t before = replay.received;
    const std::span<const std::byte> piece = reader.piece(*c, kind, before, s.bytes);
    if (!piece.data()) return Outcome::failed;
    const std::byte* const message = piece.data();
    const auto bytes = std::uint32_t(piece.size());
    const bool last = before + bytes == s.bytes;
    if (s.op == Op::recv) {
      copy_short(to + before, message, bytes);
    } else {
      elements.combine(to + before, from + before, message, bytes / elements.bytes);
    }
    reader.pop_piece(*c, kind);
    replay.received = last ? 0 : before + bytes;
    if (last) return Outcome::done;
  }
}

inline PipeProgram::Outcome PipeProgram::attempt(Replay& replay) const {
  const Step* const steps = steps_.data();
  const std::size_t n = steps_.size();
  for (; replay.next < n; ++replay.next) {
    const Step& s = steps[replay.next];
    std::byte* const from = replay.buffers.base[std::size_t(s.from_buffer)] + s.from;
    std::byte* const to = replay.buffers.base[std::size_t(s.to_buffer)] + s.to;
    switch (s.op) {
      case Op::send: {
        const bool put = s.same > 1 ? port_->put_common(ends_of(s), replay.signature, from, s.bytes)
                                    : port_->put(*s.end, replay.signature, from, s.bytes);
        if (!put) return Outcome::blocked;
        replay.next += s.same - 1;
        break;
      }
      case Op::recv:
      case Op::recv_reduce: {
        if (const Outcome outcome = receive(replay, s, from, to); outcome != Outcome::done) return outcome;
        break;
      }
      case Op::copy: std::memmove(to, from, s.bytes); break;
      case Op::reduce: replay.elements->combine(to, to, from, s.count); break;
      case Op::send_all:
      case Op::recv_reduce_all: return Outcome::failed;  // no view of a real rank makes them
    }
  }
  return Outcome::done;
}

PipeProgram::Outcome PipeProgram::advance(Replay& replay, Backoff* backoff) const {
  for (;;) {
    const Outcome outcome = attempt(replay);
    if (outcome != Outcome::blocked || !backoff || backoff->pause()) return outcome;
  }
}

PipeProgram::Awaited PipeProgram::awaited(const Replay& replay) const {
  const Step& s = steps_[replay.next];
  const End* const joint = s.same > 1 ? port_->awaited(ends_of(s), s.bytes) : nullptr;
  return {.peer = joint ? joint->peer : s.peer, .bytes = s.bytes, .steps = steps_.size(), .receives = s.op != Op::send};
}

bool PipeProgram::healthy(const Replay& replay, GCCL_Fault* fault) const {
  if (!port_) return true;
  const Step& s = steps_[replay.next];
  if (port_->healthy(ends_of(s), s.same > 1 ? s.bytes : 0)) return true;
  *fault = port_->fault();
  return false;
}

Difference PipeProgram::difference(const Replay& replay) const {
  const Step& s = steps_[replay.next];
  return {.peer = s.peer, .signature = replay.signature_found, .bytes = replay.bytes_found, .bytes_due = s.bytes};
}

// A cell that nobody can have written.
GCCL_Fault PipeProgram::fault(const Replay& replay) const {
  End& e = *steps_[replay.next].end;
  GCCL_Fault f{.result = GCCL_ERR_SYSTEM, .peer = e.peer, .text = {}};
  std::snprintf(f.text, sizeof f.text, "%s", port_->text_of_damage(e).c_str());
  return f;
}

}  // namespace gccl::shm
