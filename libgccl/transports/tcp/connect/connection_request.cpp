#include "libgccl/transports/tcp/connect/connection_request.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "libgccl/base/control_characters.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {
namespace {

// Little endian, without gaps; the fault's text, as long as it is, comes last.
struct [[gnu::packed]] HelloWire {
  char magic[4] = {'G', 'h', 'i', 2};
  std::uint8_t kind, fresh;
  std::uint64_t communicator, nonce;
  std::uint32_t from, to, channel, stream, streams;
  std::uint64_t connection;
  std::int32_t fault_result;
  std::uint32_t fault_peer;
};

}  // namespace

std::vector<std::byte> encode(const ConnectionRequest& h) {
  HelloWire w;
  w.kind = std::uint8_t(h.kind);
  w.fresh = h.fresh;
  w.communicator = h.communicator;
  w.nonce = h.nonce;
  w.from = h.from, w.to = h.to, w.channel = h.channel, w.stream = h.stream, w.streams = h.streams;
  w.connection = h.connection;
  w.fault_result = h.fault.result, w.fault_peer = h.fault.peer;
  const std::size_t text_bytes = strnlen(h.fault.text, sizeof h.fault.text - 1);
  std::vector<std::byte> bytes(sizeof w + text_bytes);
  std::memcpy(bytes.data(), &w, sizeof w);
  std::memcpy(bytes.data() + sizeof w, h.fault.text, text_bytes);
  return bytes;
}

bool decode(std::span<const std::byte> bytes, ConnectionRequest* h) {
  HelloWire w;
  if (bytes.size() < sizeof w || bytes.size() - sizeof w >= sizeof h->fault.text) return false;
  std::memcpy(static_cast<void*>(&w), bytes.data(), sizeof w);
  if (std::memcmp(w.magic, HelloWire{}.magic, sizeof w.magic) != 0) return false;
  if (w.kind < std::uint8_t(ConnectionRequest::Kind::stream) || w.kind > std::uint8_t(ConnectionRequest::Kind::leave))
    return false;
  if (w.fresh > 1) return false;
  if (w.streams < 1 || w.streams > Settings::kStreamsMax || w.stream >= w.streams) return false;
  *h = {};
  h->kind = ConnectionRequest::Kind(w.kind);
  h->communicator = w.communicator;
  h->nonce = w.nonce;
  h->from = w.from, h->to = w.to, h->channel = w.channel, h->stream = w.stream, h->streams = w.streams;
  h->connection = w.connection;
  h->fresh = w.fresh == 1;
  h->fault.result = w.fault_result, h->fault.peer = w.fault_peer;
  // Printed one day.
  const auto text = bytes.subspan(sizeof w);
  const std::string_view said(reinterpret_cast<const char*>(text.data()), text.size());
  without_control(said, ' ').copy(h->fault.text, sizeof h->fault.text - 1);
  return true;
}

}  // namespace gccl::tcp
