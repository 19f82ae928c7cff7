#include "libgccl/transports/shm/shm_fast_path.hpp"

#include <cassert>
#include <cstring>

#include "libgccl/transports/shm/pipe_program.hpp"

namespace gccl {
namespace {

using namespace shm;

class ShmFastPath final : public FastPath {
 public:
  explicit ShmFastPath(Port* port) : port_(port) {}

  std::unique_ptr<Program> compile(Schedule schedule, std::uint32_t element_bytes) override {
    return PipeProgram::compile(std::move(schedule), element_bytes, port_);
  }

  bool send(Rank peer, std::uint32_t channel, std::uint64_t signature, const void* data, std::uint32_t bytes) override {
    assert(bytes <= kShortBytesMax);
    return port_->put(*port_->end(peer, channel, false), signature, data, bytes);
  }

  bool receive(Rank peer, std::uint32_t channel, std::uint64_t signature, void* data, std::uint32_t bytes,
               Backoff* backoff) override {
    assert(bytes <= kShortBytesMax && backoff);
    Reader& reader = port_->end(peer, channel, true)->reader;
    const Cell* c = reader.peek();
    while (!c && !backoff->pause()) c = reader.peek();
    if (!c || c->signature != signature || c->piece_bytes != bytes) return false;
    const CellKind kind = read_once(c->kind);
    // The first piece of a longer message is none of this length.
    if (kind != CellKind::inline_data && read_once(c->far.message_bytes) != bytes) return false;
    const std::span<const std::byte> message = reader.piece(*c, kind, 0, bytes);
    if (!message.data()) return false;
    if (kind == CellKind::inline_data) {
      copy_short(data, message.data(), bytes);
    } else {
      std::memcpy(data, message.data(), message.size());
    }
    reader.pop_piece(*c, kind);
    return true;
  }

 private:
  Port* port_;
};

}  // namespace

std::unique_ptr<FastPath> shm_fast_path(void* port) { return std::make_unique<ShmFastPath>(static_cast<Port*>(port)); }

}  // namespace gccl
