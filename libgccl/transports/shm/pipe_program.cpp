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
  struct Load {
    std::uint32_t cells = 0, chunks = 0;
  };
  std::map<Rank, Load> sent;  // by peer
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
      if (s.op == Op::send) {
        Load& load = sent[s.peer];
        load.cells += pieces(x.bytes);
        load.chunks += bytes > kInlineBytes;
        // All of a call's messages fit into the pipe: a sender never waits for a later step of its reader.
        if (load.cells > kCells - kCellsUnacknowledged || load.chunks > kChunks) return nullptr;
      }
    }
    program->steps_.push_back(x);
    program->ends_.push_back(x.end);
  }
  program->join_sends();
  return program;
}

// At most kCommons of them: so a sender waits for readers of earlier calls alone, which are on their way.
void PipeProgram::join_sends() {
  std::uint32_t commons = 0;
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
    commons += s.same > 1;
  }
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
    } else if (kPieceBytes % elements.bytes == 0 || in_cell) {
      elements.combine(to + before, from + before, message, bytes / elements.bytes);
    } else if (last) {
      elements.combine(to, from, message - before, s.count);
    }
    reader.pop_piece(kind, before + bytes, s.bytes);
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
        const auto put = s.same > 1 ? port_->put_common(ends_of(s), replay.signature, from, s.bytes)
                                    : port_->put(*s.end, replay.signature, from, s.bytes);
        if (put != Port::Put::done) return put == Port::Put::no_memory ? Outcome::failed : Outcome::blocked;
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
  const End* const joint = s.same > 1 ? port_->awaited(ends_of(s)) : nullptr;
  return {.peer = joint ? joint->peer : s.peer, .bytes = s.bytes, .steps = steps_.size(), .receives = s.op != Op::send};
}

bool PipeProgram::healthy(const Replay& replay, GCCL_Fault* fault) const {
  if (!port_) return true;
  const Step& s = steps_[replay.next];
  if (port_->healthy(ends_of(s), s.same > 1)) return true;
  *fault = port_->fault();
  return false;
}

Difference PipeProgram::difference(const Replay& replay) const {
  const Step& s = steps_[replay.next];
  return {.peer = s.peer, .signature = replay.signature_found, .bytes = replay.bytes_found, .bytes_due = s.bytes};
}

// Either no memory to send from, or a cell that nobody can have written.
GCCL_Fault PipeProgram::fault(const Replay& replay) const {
  End& e = *steps_[replay.next].end;
  GCCL_Fault f{.result = GCCL_ERR_SYSTEM, .peer = e.receives ? e.peer : port_->rank(), .text = {}};
  const std::string text = e.receives ? port_->text_of_damage(e) : port_->text_of_no_memory(e);
  std::snprintf(f.text, sizeof f.text, "%s", text.c_str());
  return f;
}

}  // namespace gccl::shm
