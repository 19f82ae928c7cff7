// Pipes of the shared-memory transport: counts near the limits of 32 bits, and cells that nobody can have written.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <span>

#include "libgccl/transports/shm/segment.hpp"

using namespace gccl;
using namespace gccl::shm;

namespace {

struct TwoEnds {
  Control control{};
  std::unique_ptr<Pipe> pipe = std::make_unique<Pipe>();
  std::unique_ptr<CommonChunks> common = std::make_unique<CommonChunks>();
  Writer writer{&control, pipe.get()};
  Reader reader{&control, pipe.get(), common.get()};

  void write_short(std::uint64_t value) {
    Cell* const c = writer.next();
    REQUIRE(c);
    c->kind = CellKind::inline_data;
    c->piece_bytes = sizeof value;
    std::memcpy(c->data, &value, sizeof value);
    writer.publish(c);
  }
  void read_short(std::uint64_t value) {
    const Cell* const c = reader.peek();
    REQUIRE(c);
    const std::byte* const at = reader.piece(*c, c->kind, 0, sizeof value).data();
    REQUIRE(at);
    REQUIRE(std::memcmp(at, &value, sizeof value) == 0);
    reader.pop_inline();
  }
  // One message of 100 bytes through a chunk; false while no chunk is free.
  bool write_chunk(int value) {
    const std::span<std::byte> room = writer.room_in_chunk();
    if (room.empty()) return false;
    REQUIRE(room.size() >= 100);
    Cell* const c = writer.next();
    REQUIRE(c);
    std::memset(room.data(), value, 100);
    c->kind = CellKind::first;
    c->piece_bytes = 100;
    c->far.message_bytes = 100;
    c->far.place = writer.place_in_chunks();
    REQUIRE(writer.fill(100, true));
    c->ends_chunk = true;
    writer.publish(c);
    return true;
  }
  void read_chunk(int value) {
    const Cell* const c = reader.peek();
    REQUIRE(c);
    const std::byte* const at = reader.piece(*c, c->kind, 0, 100).data();
    REQUIRE(at);
    for (int i = 0; i < 100; ++i) REQUIRE(int(at[i]) == value);
    reader.pop_piece(*c, c->kind);
  }
};

TEST_CASE("a pipe has chunks to give however many short messages came since the last one") {
  for (const std::uint64_t between : {1ull << 10, (1ull << 31) - 64, 1ull << 31, (1ull << 31) + 64, 3ull << 30,
                                      (1ull << 32) - 32, 1ull << 32, (1ull << 32) + 64, 1ull << 40}) {
    CAPTURE(between);
    TwoEnds p;
    CHECK(p.writer.next() == nullptr);  // nothing is reserved yet
    CHECK(p.reader.peek() == nullptr);
    p.writer.opened(kReservedChunks);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 8; ++i) {
        REQUIRE(p.write_chunk(i));
        p.read_chunk(i);
      }
      for (std::uint64_t i = 0; i < 32; ++i) {
        p.write_short(i);
        p.read_short(i);
      }
      p.writer.skip(between / kCells);
      p.reader.skip(between / kCells);
    }
    // All eight at once, and not one more until they are read.
    for (int i = 0; i < 8; ++i) REQUIRE(p.write_chunk(i));
    CHECK_FALSE(p.write_chunk(8));
    for (int i = 0; i < 8; ++i) p.read_chunk(i);
    CHECK(p.write_chunk(9));
  }
}

TEST_CASE("cells, and memory that the peer reads, stay in order where the count passes 2^31 and 2^32") {
  for (const std::uint64_t start : {(1ull << 31) - 64, (1ull << 32) - 64, (1ull << 33) - 64}) {
    CAPTURE(start);
    TwoEnds p;
    p.writer.opened(kReservedCells);
    p.writer.skip(start / kCells);
    p.reader.skip(start / kCells);
    std::uint64_t written = 0, read = 0;
    for (int round = 0; round < 20; ++round) {
      while (p.writer.next()) p.write_short(written++);
      CHECK(written - read == kCells);  // full at the very count
      CHECK_FALSE(p.writer.room(1));
      const std::uint64_t last = p.writer.written();
      while (p.reader.peek()) {
        CHECK(p.writer.read_up_to(last) == false);
        p.read_short(read++);
      }
      CHECK(written == read);
      CHECK(p.writer.read_up_to(last));
      CHECK(p.writer.room(kCells));
    }
  }
}

TEST_CASE("a cell that no writer can have written leads nowhere") {
  TwoEnds p;
  p.writer.opened(kReservedChunks);
  Cell c{};
  const auto is = [&](int kind, std::uint32_t piece, std::uint64_t received, std::uint64_t bytes, std::uint64_t place) {
    c.kind = CellKind(kind);
    c.piece_bytes = std::uint16_t(piece);
    c.far.message_bytes = bytes;
    c.far.place = place;
    return p.reader.piece(c, c.kind, received, bytes).data() != nullptr;
  };
  enum { in_cell, first, more, address };
  // What is right, from the layout in pipe.hpp: pieces of 8 KiB, chunks of 32 KiB, 48 bytes in a cell.
  CHECK(is(in_cell, 48, 0, 48, 0));
  CHECK(is(in_cell, 0, 0, 0, 0));
  CHECK(is(first, 49, 0, 49, 0));
  CHECK(is(first, 8192, 0, 10000, 0));
  CHECK(is(more, 1808, 8192, 10000, 8192));
  CHECK(is(more, 8192, 32768 + 8192, 100000, 8192));
  CHECK(is(more, 8192, 32768, 40960, 7 * 32768));  // in the last chunk
  CHECK(is(more, 4096, 8192, 100000, 4096));       // pieces are shorter where chunks are
  // What is not.
  CHECK_FALSE(is(in_cell, 49, 0, 49, 0));        // beyond the cell
  CHECK_FALSE(is(in_cell, 8, 0, 48, 0));         // short of the message
  CHECK_FALSE(is(in_cell, 48, 8192, 8240, 0));   // in the middle of a longer one
  CHECK_FALSE(is(first, 8, 0, 8, 0));            // short messages lie in their cell
  CHECK_FALSE(is(first, 65535, 0, 65535, 0));    // beyond a piece
  CHECK_FALSE(is(first, 0, 0, 10000, 0));        // would never end
  CHECK_FALSE(is(first, 8192, 0, 100, 0));       // beyond the message
  CHECK_FALSE(is(more, 8192, 0, 10000, 0));      // the first one is missing
  CHECK_FALSE(is(first, 1808, 8192, 10000, 0));  // a second one begins
  CHECK_FALSE(is(first, 4000, 0, 10000, 0));     // would end within an element
  CHECK_FALSE(is(more, 100, 200, 100, 0));       // all has come
  CHECK_FALSE(is(first, 100, 0, 100, 32700));    // beyond the chunk
  CHECK_FALSE(is(first, 100, 0, 100, 8 * 32768));
  CHECK_FALSE(is(first, 100, 0, 100, ~0ull));
  CHECK_FALSE(is(more, 8192, 32768, 40960, 32768 - 4096));
  CHECK_FALSE(is(address, 0, 0, 100000, 0));
  for (int kind = 5; kind < 300; kind += 37) CHECK_FALSE(is(kind, 100, 0, 100, 0));

  // Common chunks: 8, as long as the pipe's, a message whole in one of them.
  enum { common = 4 };
  CHECK_FALSE(is(common, 100, 0, 100, 0));  // not reserved
  p.writer.opened_common(1);
  p.writer.opened_common(2);
  CHECK(is(common, 100, 0, 100, 1));
  CHECK(is(common, 32768, 0, 32768, 2));
  CHECK_FALSE(is(common, 100, 0, 100, 0));  // one that was refused, before others
  CHECK_FALSE(is(common, 100, 0, 100, 3));
  CHECK_FALSE(is(common, 48, 0, 48, 1));        // short messages lie in their cell
  CHECK_FALSE(is(common, 99, 0, 100, 1));       // short of the message
  CHECK_FALSE(is(common, 40000, 0, 40000, 1));  // beyond the chunk
  CHECK_FALSE(is(common, 100, 100, 200, 1));    // in the middle of a longer one
  p.writer.opened_common(7);
  CHECK(is(common, 100, 0, 100, 7));
  CHECK_FALSE(is(common, 100, 0, 100, 8));  // beyond the last
  CHECK_FALSE(is(common, 100, 0, 100, ~0ull));

  // Chunks that the writer has not reserved are not touched.
  TwoEnds q;
  q.writer.opened(kReservedCells);
  c.far.place = 0;
  c.kind = CellKind::first;
  c.piece_bytes = 100;
  CHECK(q.reader.piece(c, c.kind, 0, 100).data() == nullptr);
  q.writer.opened(kReservedOneBeginning);
  CHECK(q.reader.piece(c, c.kind, 0, 100).data() != nullptr);
  c.far.place = kChunkBytes;
  CHECK(q.reader.piece(c, c.kind, 0, 100).data() == nullptr);
  q.writer.opened(kReservedAllBeginnings);
  CHECK(q.reader.piece(c, c.kind, 0, 100).data() != nullptr);
  c.far.place = 0;
  c.piece_bytes = 8192;
  CHECK(q.reader.piece(c, c.kind, 0, 8192).data() == nullptr);
  q.writer.opened(kReservedChunks);
  CHECK(q.reader.piece(c, c.kind, 0, 8192).data() != nullptr);
}

TEST_CASE("a message is written whole or not at all, however much of the pipe there is") {
  for (const Reserved has : {kReservedOneBeginning, kReservedAllBeginnings, kReservedChunks}) {
    CAPTURE(has);
    TwoEnds p;
    p.writer.opened(has);
    const std::uint32_t all = has == kReservedOneBeginning ? 4096 : 32768;
    CHECK(p.writer.fits(48));
    CHECK(p.writer.fits(all));
    CHECK_FALSE(p.writer.fits(8 * 32768 + 1));
    if (has != kReservedChunks) CHECK_FALSE(p.writer.fits(all + 1));
    REQUIRE(p.write_chunk(1));
    CHECK(p.writer.fits(48));
    CHECK(p.writer.fits(49) == (has != kReservedOneBeginning));
    CHECK(p.writer.fits(all) == (has == kReservedChunks));  // else the first chunk is needed
    p.read_chunk(1);
    CHECK(p.writer.fits(all));
  }
  // What was written while there was less is free once it is read, though by then the pipe has grown.
  TwoEnds p;
  p.writer.opened(kReservedOneBeginning);
  for (int i = 0; i < 20; ++i) {
    if (i == 7) p.writer.opened(kReservedAllBeginnings);
    if (i == 13) p.writer.opened(kReservedChunks);
    REQUIRE(p.write_chunk(i));
    p.read_chunk(i);
  }
  for (int i = 0; i < 8; ++i) REQUIRE(p.write_chunk(i));
  CHECK_FALSE(p.write_chunk(8));
}

}  // namespace
