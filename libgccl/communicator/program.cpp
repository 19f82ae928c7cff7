#include "libgccl/communicator/program.hpp"

#include <cstring>
#include <optional>

namespace gccl {
namespace {

using shm::Cell;

constexpr std::size_t kStepsMax = 512;

bool nothing(const Step& s) {
  if (s.op == Op::send) return s.from.buffer != Buffer::none && s.from.count == 0;
  return (s.to.buffer != Buffer::none && s.to.count == 0) || (s.op == Op::copy && s.from == s.to);
}

// The schedule's steps with every send as early as it can be: sends are buffered and wait for nobody, so the peers get
// theirs before this rank begins to wait. That saves a turn of the scheduler per message where ranks share a processor.
// The order of sends among each other, and of receives, stays. Nothing when there are too many steps.
std::optional<std::vector<Step>> sends_first(Schedule schedule) {
  std::vector<Step> steps;
  while (const Step* s = schedule.next()) {
    if (nothing(*s)) continue;
    if (steps.size() == kStepsMax) return std::nullopt;
    std::size_t at = steps.size();
    if (s->op == Op::send)
      while (at > 0 && steps[at - 1].op != Op::send && !conflicts(*s, steps[at - 1])) --at;
    steps.insert(steps.begin() + std::ptrdiff_t(at), *s);
  }
  return steps;
}

}  // namespace

std::unique_ptr<Program> Program::compile(Schedule schedule, std::uint32_t element_bytes, Rank ranks, shm::Port* port) {
  auto program = std::make_unique<Program>();
  struct Load {
    std::uint32_t cells = 0, chunks = 0;
  };
  std::vector<Load> sent(ranks);
  const auto steps = sends_first(std::move(schedule));
  if (!steps) return nullptr;
  for (const gccl::Step& step : *steps) {
    const gccl::Step* const s = &step;
    const Count bytes = s->count() * element_bytes;
    if (bytes > ~std::uint32_t(0)) return nullptr;
    Step x{.op = s->op,
           .from_buffer = s->from.buffer,
           .to_buffer = s->to.buffer,
           .peer = s->peer,
           .bytes = std::uint32_t(bytes),
           .end = nullptr,
           .from = s->from.offset * element_bytes,
           .to = s->to.offset * element_bytes,
           .count = s->count()};
    if (!s->local()) {
      if (bytes > kProgramBytesMax) return nullptr;
      x.end = port ? port->end(s->peer, 0, s->receives()) : nullptr;
      if (!x.end) return nullptr;
      Traffic& t = program->traffic;
      (s->op == Op::send ? t.messages_sent : t.messages_received) += 1;
      (s->op == Op::send ? t.bytes_sent : t.bytes_received) += bytes;
      if (s->op == Op::send) {
        Load& load = sent[s->peer];
        load.cells += shm::pieces(x.bytes);
        load.chunks += bytes > shm::kInlineBytes;
        // All of a call's messages fit into the pipe: who sends never waits for a later step of its reader.
        if (load.cells > shm::kCells - shm::kCellsUntold || load.chunks > shm::kChunks) return nullptr;
      }
    }
    program->steps.push_back(x);
  }
  return program;
}

// Short messages come in one piece; of others each piece is used as it arrives, where it holds whole elements.
inline Replay::Outcome Replay::receive(const Program::Step& s, const std::byte* from, std::byte* to) {
  shm::Reader& reader = s.end->reader;
  for (;;) {
    const Cell* const c = reader.peek();
    if (!c) return Outcome::blocked;
    const bool in_cell = c->kind == shm::CellKind::inline_data;
    if (received_ == 0 &&
        (c->signature != signature_ || (in_cell ? c->piece_bytes : c->far.message_bytes) != s.bytes)) {
      signature_found_ = c->signature;
      bytes_found_ = in_cell ? c->piece_bytes : c->far.message_bytes;
      return Outcome::mismatch;
    }
    const std::uint32_t before = received_;
    const std::span<const std::byte> piece = reader.piece(*c, before, s.bytes);
    if (!piece.data()) return Outcome::damaged;
    const std::byte* const message = piece.data();
    const auto bytes = std::uint32_t(piece.size());
    const bool last = before + bytes == s.bytes;
    if (s.op == Op::recv) {
      shm::copy_short(to + before, message, bytes);
    } else if (shm::kPieceBytes % elements_->bytes == 0 || in_cell) {
      elements_->combine(to + before, from + before, message, bytes / elements_->bytes);
    } else if (last) {
      elements_->combine(to, from, message - before, s.count);
    }
    if (in_cell) {
      reader.pop_inline();
    } else {
      reader.pop_piece(before + bytes, s.bytes);
    }
    received_ = last ? 0 : before + bytes;
    if (last) return Outcome::done;
  }
}

Replay::Outcome Replay::advance() {
  const Program::Step* const steps = program_->steps.data();
  const std::size_t n = program_->steps.size();
  for (; next_ < n; ++next_) {
    const Program::Step& s = steps[next_];
    std::byte* const from = memory_.base[std::size_t(s.from_buffer)] + s.from;
    std::byte* const to = memory_.base[std::size_t(s.to_buffer)] + s.to;
    switch (s.op) {
      case Op::send: {
        const auto put = port_->put(*s.end, signature_, from, s.bytes);
        if (put != shm::Port::Put::done) return put == shm::Port::Put::no_memory ? Outcome::no_room : Outcome::blocked;
        break;
      }
      case Op::recv:
      case Op::recv_reduce: {
        if (const Outcome outcome = receive(s, from, to); outcome != Outcome::done) return outcome;
        break;
      }
      case Op::copy: std::memmove(to, from, s.bytes); break;
      case Op::reduce: elements_->combine(to, to, from, s.count); break;
    }
  }
  return Outcome::done;
}

}  // namespace gccl
