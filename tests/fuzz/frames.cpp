// What a peer that has proved itself may still send: any bytes on the streams of a link, and any bytes where addresses,
// hellos and the frames of the bootstrap are expected. Nothing crashes, hangs or is written beyond its place, what is
// handed on is what was sent, and what decodes survives encoding.
//
// Input: kind, then for kind 0 how the receives are, and bytes for both streams; for kind 1 the same with descriptions
// of well-formed frames (of 6 bytes each) instead of bytes; for others the bytes to be decoded.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/communicator/descriptor.hpp"
#include "libgccl/transports/tcp/connect/connection_request.hpp"
#include "libgccl/transports/tcp/connect/port_address.hpp"
#include "libgccl/transports/tcp/data/frame.hpp"
#include "libgccl/transports/tcp/data/incoming.hpp"

namespace {

using namespace gccl;
using namespace gccl::tcp;
using Bytes = std::span<const std::byte>;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr std::uint64_t kSignature = 77;
constexpr std::size_t kLengths[] = {0, 1, 7, 8, 64, 1000, 4056, 4057, 5000, 9000};
std::size_t length_of(std::uint8_t code) { return kLengths[code % std::size(kLengths)]; }
// Byte `at` of message `sequence`.
std::byte content(std::uint32_t sequence, std::uint64_t at) { return std::byte(1 + (sequence * 31 + at) % 251); }

struct Receive {
  GCCL_Transfer transfer{};
  std::vector<std::byte> data;  // of exactly the length, for the sanitizer
  std::uint32_t sequence = 0;
  std::uint64_t consumed = 0;
  bool checks_content = false, done = false;
  std::vector<int> sent;  // how often each byte was

  static void consume(GCCL_Transfer* t, const void* piece, std::uint64_t offset, std::uint64_t bytes) {
    auto& r = *static_cast<Receive*>(t->owner);
    expect(!r.done && bytes > 0 && offset == r.consumed && bytes <= t->bytes - offset);
    expect(reinterpret_cast<std::uintptr_t>(piece) % 64 == 0);
    r.consumed += bytes;
    expect(r.consumed == t->bytes || bytes % t->grain == 0);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const std::byte b = static_cast<const std::byte*>(piece)[i];
      sum += std::uint64_t(b);
      if (r.checks_content) expect(b == content(r.sequence, offset + i));
    }
    volatile std::uint64_t kept = sum;  // every byte has been read
    (void)kept;
  }
};

struct Line {
  Fd sender;
  Stream stream;
  std::vector<std::byte> bytes;
  std::size_t sent = 0;
  bool failed = false;

  void open() {
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    sender = Fd(ends[0]);
    stream.fd = Fd(ends[1]);
  }
  // False when there is no more, and the end has been reported; or when nobody takes it, as nothing is posted for it.
  bool feed(std::size_t piece_bytes) {
    const std::size_t n = std::min(piece_bytes, bytes.size() - sent);
    if (n > 0) {
      const ssize_t written = send(sender.get(), bytes.data() + sent, n, MSG_NOSIGNAL);
      if (written > 0) sent += std::size_t(written);
      return written > 0;
    }
    sender.reset();
    return false;
  }
};

void describe_frames(Bytes in, std::array<Line, 2>* lines, std::vector<Receive>* receives) {
  for (; in.size() >= 6; in = in.subspan(6)) {
    const auto at = [&](std::size_t i) { return std::uint8_t(in[i]); };
    Frame f;
    f.sequence = std::uint32_t(at(0) % 8);
    f.acknowledge = at(1) & 1;
    f.signature = at(1) & 2 ? kSignature + 1 : kSignature;
    f.message_bytes = length_of(at(2));
    f.offset = std::min<std::uint64_t>(f.message_bytes, at(3) * 40u);
    f.bytes = std::min<std::uint64_t>(f.message_bytes - f.offset, at(4) == 255 ? f.message_bytes : at(4) * 40u);
    std::byte header[kFrameHeaderBytes];
    encode(f, header);
    auto& to = (*lines)[at(5) % 2].bytes;
    to.insert(to.end(), header, header + sizeof header);
    Receive* const r = f.sequence < receives->size() ? &(*receives)[f.sequence] : nullptr;
    for (std::uint64_t i = 0; i < f.bytes; ++i) {
      to.push_back(content(f.sequence, f.offset + i));
      if (r && f.message_bytes == r->transfer.bytes) ++r->sent[f.offset + i];
    }
  }
}

void receive(Bytes in, bool described) {
  if (in.size() < 8) return;
  const std::size_t piece_bytes = 1 + std::size_t(in[0]) * std::size_t(in[0]);
  std::vector<Receive> receives(1 + std::size_t(in[1]) % 6);
  Incoming incoming;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    Receive& r = receives[i];
    const auto how = std::uint8_t(in[2 + i]);
    r.sequence = std::uint32_t(i);
    r.checks_content = described;
    r.data.resize(length_of(how));
    r.sent.resize(r.data.size());
    r.transfer.owner = &r;
    r.transfer.bytes = r.data.size();
    r.transfer.signature = kSignature;
    r.transfer.data = r.data.data();
    r.transfer.grain = 1 + how / 32;
    if (how / 16 % 2 == 1) r.transfer.data = nullptr, r.transfer.consume = Receive::consume;
  }
  in = in.subspan(8);
  std::array<Line, 2> lines;
  for (Line& l : lines) l.open();
  if (described) {
    describe_frames(in, &lines, &receives);
  } else {
    lines[0].bytes.assign(in.begin(), in.begin() + std::ptrdiff_t(in.size() / 2));
    lines[1].bytes.assign(in.begin() + std::ptrdiff_t(in.size() / 2), in.end());
  }

  Completions done;
  Staging staging;
  std::size_t posted = 0;
  bool more = true;
  while (more) {
    if (posted < receives.size()) incoming.post(&receives[posted++].transfer);
    more = posted < receives.size();
    for (Line& l : lines) {
      if (l.failed) continue;
      const bool fed = l.feed(piece_bytes);
      more = more || fed;
      std::string problem;
      l.failed = !incoming.advance(&l.stream, &l == &lines[0], &done, &staging, &problem);
      expect(l.failed || problem.empty());
    }
    if (lines[0].failed || lines[1].failed) break;  // as a link does
  }
  GCCL_Transfer* list[8];
  const int n = done.take(list, 8);
  for (int i = 0; i < n; ++i) {
    auto& r = *static_cast<Receive*>(list[i]->owner);
    expect(!std::exchange(r.done, true));
    expect(list[i]->result == GCCL_SUCCESS || list[i]->result == GCCL_ERR_MISMATCH);
    if (list[i]->result == GCCL_ERR_MISMATCH) {
      expect(list[i]->signature_found != kSignature || list[i]->bytes_found != list[i]->bytes);
      continue;
    }
    if (list[i]->consume) expect(r.consumed == list[i]->bytes);
    const bool once = std::ranges::all_of(r.sent, [](int times) { return times == 1; });
    for (std::size_t k = 0; described && once && !list[i]->consume && k < r.data.size(); ++k)
      expect(r.data[k] == content(r.sequence, k));
  }
  for (std::size_t i = 0; i < posted; ++i) expect(incoming.cancel(&receives[i].transfer) != receives[i].done);
}

void decode_others(Bytes in) {
  std::byte address[GCCL_BACKEND_ADDRESS_BYTES] = {};
  std::copy_n(in.begin(), std::min(in.size(), sizeof address), address);
  if (PortAddress a, again; tcp::decode(address, &a)) {
    encode(a, address);
    expect(tcp::decode(address, &again) && again.addresses == a.addresses && again.nonce == a.nonce);
  }
  if (ConnectionRequest h, again; tcp::decode(in, &h)) {
    expect(tcp::decode(encode(h), &again));
    expect(again.communicator == h.communicator && std::strcmp(again.fault.text, h.fault.text) == 0);
  }
  if (Contribution c; Contribution::parse(in, &c)) expect(std::ranges::equal(c.head(), in));
  if (gccl::Answer a; gccl::Answer::parse(in, 64, &a)) expect(std::ranges::equal(a.head(), in));
  if (std::uint64_t signature = 0; in.size() >= sizeof signature) {
    std::memcpy(&signature, in.data(), sizeof signature);
    expect(!text_of_signature(signature, {.sequence = std::uint32_t(in.size()), .ranks = 4}).empty());
  }
  Rank rank = 0;
  if (parse_tcp_store_hello(in, 4, &rank).ok()) expect(std::ranges::equal(tcp_store_hello(rank, 4), in));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0]) {
    case 0: receive(bytes, false); break;
    case 1: receive(bytes, true); break;
    default: decode_others(bytes);
  }
  return 0;
}
