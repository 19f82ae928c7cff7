// One communicator's use of shared memory: which ranks it reaches, and the transfers in flight.
//
// How a message of more than a cell travels was decided by measurements (constants in shm_transfers.cpp). Below 32 KiB
// it goes through a chunk, in pieces, so that the reader copies while the writer does. A longer one the reader fetches
// from the sender's memory, in one copy, except in two cases: below 4 MiB (512 KiB where the reader has mapped it)
// where the data may be fresh in the sender's caches, which the system reads at half speed; and above 32 MiB of
// ordinary memory where the sender has nothing else to do, as two processors copy faster than one. What lies in the
// segment's staging the readers copy from there.
//
// Ranks that are threads of one process read each other's memory by the system, too: a rank that gives up takes its
// buffers back while another thread may be in the middle of one. A copy of the program's own would crash then.
//
// At the start each rank reads a random number in each neighbour's memory. Where that fails, or another number is
// there, messages between the two go through chunks, except those in memory that the reader can map: whether it can is
// tried apart, as systems refuse the one and allow the other.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/base/environment.hpp"
#include "libgccl/schedule/types.hpp"
#include "libgccl/transports/shm/refusals.hpp"
#include "libgccl/transports/shm/segment.hpp"
#include "libgccl/transports/transfer_queue.hpp"

namespace gccl::shm {

// Messages from here on may be zero-copy sends: the receiver reads the sender's buffer, one copy by the system and not
// two through chunks.
inline constexpr std::uint32_t kZeroCopyBytes = 32 * 1024;

// Copies without a call for the commonest lengths.
inline void copy_short(void* to, const void* from, std::uint32_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes) {
    std::memcpy(to, from, bytes);
  }
}

// Indices into GCCL_Transfer::backend.
inline constexpr int kMoved = 0;        // bytes written or received
inline constexpr int kCellsToRead = 1;  // by the peer, before a zero-copy send's memory is free; 0 for other sends

// One direction of one channel to or from one peer, and its transfers.
struct End {
  Rank peer = 0;
  bool receives = false, listed = false;
  std::uint32_t index = 0;  // of the pipe in its segment
  Writer writer;
  Reader reader;
  TransferQueue transfers;  // the front is being written or read
  TransferQueue zero_copy;  // sends whose memory the peer reads
};

// What all ports of one rank share.
struct Instance {
  explicit Instance(const Environment& environment) : zero_copy(read_flag(environment, "GCCL_SHM_ZERO_COPY", true)) {}

  RankFiles files;
  std::atomic<std::uint32_t> node_ranks{0};  // of this rank's node, in the largest communicator so far
  const bool zero_copy;                      // this rank may read its neighbours' memory
  std::atomic<bool> has_said{false};         // in the log, that the system does not let it
};

// shm_port.cpp: opening, connecting, and what becomes of peers; shm_transfers.cpp: how messages move.
class Port {
 public:
  // `instance` must outlive the port.
  static Status open(Instance& instance, const GCCL_Port_spec& spec, std::unique_ptr<Port>* out, void* address);
  Status connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches);
  void connected();
  ~Port();

  int send(GCCL_Transfer* t);
  int receive(GCCL_Transfer* t);
  int poll(GCCL_Transfer** done, int max);
  void cancel(GCCL_Transfer* t);
  void abort(const GCCL_Fault& fault);
  const GCCL_Fault& fault() const { return fault_; }
  // Looks whether a peer has failed or aborted, or one that is waited for has left; false then. `waiting` are ends
  // that somebody waits on in addition to the transfers; `joint_bytes`, unless 0: for put_common() of a message of so
  // many bytes. Not for every poll.
  bool healthy(std::span<End* const> waiting = {}, std::uint32_t joint_bytes = 0);

  // The ends themselves, for a program that runs a whole schedule over them. Null where the peer is not reached, and
  // for reading while transfers are in flight on them.
  End* end(Rank peer, std::uint32_t channel, bool receives) {
    const std::uint32_t place = place_[peer];
    return place == kNowhere ? nullptr : &ends_[(place * channels_ + channel) * 2 + receives];
  }
  // Writes a whole message of at most a chunk, when no transfer is in flight on the end. False, and nothing written,
  // where there is no room.
  bool put(End& e, std::uint64_t signature, const void* data, std::uint32_t bytes) {
    if (bytes > kInlineBytes) return put_pieces(e, signature, static_cast<const std::byte*>(data), bytes);
    Cell* const c = e.writer.next();
    if (!c) return put_into_full(e, signature, data, bytes);
    c->kind = CellKind::inline_data;
    c->piece_bytes = std::uint16_t(bytes);
    c->signature = signature;
    copy_short(c->data, data, bytes);
    e.writer.publish(c);
    return true;
  }
  // The same message on several ends, written once; each has its cells reserved. At most kChunkBytes, and more than a
  // cell holds.
  bool put_common(std::span<End* const> ends, std::uint64_t signature, const void* data, std::uint32_t bytes);
  // Makes sure that so much of the end's pipe can be written to, or less where shared memory is scarce and messages can
  // be cut shorter; that so many messages at once of so many bytes can go to several ends. False: there is no memory.
  bool reserve(End& e, Reserved how_much);
  bool reserve_commons(std::uint32_t messages, std::uint32_t bytes);
  // Where the next cell on this end is none that a Writer can have written: what is wrong.
  std::string text_of_damage(End& e) const;
  // So much memory that all peers have mapped, the same at each call; null where there is not as much.
  std::byte* staging(std::size_t bytes);
  // Of ends on which the same message of so many bytes is to be written once, one that this waits for, of that peer if
  // one is named; null: none. Any thread, but no writer beside.
  End* awaited(std::span<End* const> ends, std::uint32_t bytes, std::optional<Rank> of = {}) const;
  Rank rank() const { return rank_; }
  std::uint64_t moved_bytes() const { return moved_bytes_; }  // of long messages

 private:
  static constexpr std::uint32_t kNowhere = ~0u;
  struct Neighbour {
    Rank rank;
    std::shared_ptr<RankFile> file{};
    std::shared_ptr<Segment> segment{};
    std::uint32_t pid = 0;   // in the process-id namespace of its own
    std::uint32_t ways = 0;  // in which its memory can be read; if any, it has that number here too
    MappedPeer mapped{};
  };

  // A chunk that all ends of this port have in common: which of them read it, and up to which of their cells.
  struct Common {
    std::uint32_t reserved = 0;  // bytes
    std::vector<std::pair<End*, std::uint64_t>> readers{};
  };

  bool put_into_full(End& e, std::uint64_t signature, const void* data, std::uint32_t bytes);
  bool put_pieces(End& e, std::uint64_t signature, const std::byte* data, std::uint32_t bytes);
  Status take_least();
  void keep_promise(const End& e);
  bool reserve_common(std::uint32_t i, std::uint32_t bytes, bool can_do_without);
  std::optional<std::uint32_t> free_common(std::uint32_t bytes);
  void fail_for_memory(const End& e) noexcept;
  bool advance(End& e, GCCL_Transfer** done, int max, int* count);
  bool advance_send(End& e, GCCL_Transfer* t);
  bool is_zero_copy(End& e, const GCCL_Transfer& t, SharedPlace* shared);
  bool advance_receive(End& e, GCCL_Transfer* t);
  void log_refusal(const Neighbour& n, const char* why);
  bool fetch(End& e, GCCL_Transfer* t, const Cell& c);
  void fail_for_mapping(Neighbour& n, int error);
  bool readable(Neighbour& n);
  const std::byte* address_here(Neighbour& n, const Cell& c, std::uint64_t message_bytes);
  void read_mapped(GCCL_Transfer* t, const std::byte* from, std::uint64_t bytes);
  bool read_by_system(End& e, GCCL_Transfer* t, std::uint64_t from, std::uint64_t bytes);
  void list(End& e);
  void fail(int result, Rank peer, const std::string& text);
  bool fail_if_aborted(Neighbour& n);
  Neighbour& neighbour(const End& e) { return neighbours_[place_[e.peer]]; }

  Rank rank_ = 0, size_ = 0;
  std::uint32_t channels_ = 0, node_ranks_ = 0;
  std::uint32_t my_place_ = 0;  // among the ranks of my node: the pipe to me, in any writer's segment, has it
  bool least_reserved_ = false;
  std::size_t promised_ = 0;           // this port's part of RankFile::promised
  std::vector<std::uint32_t> place_;   // by rank: index into neighbours_
  std::vector<Neighbour> neighbours_;  // the other ranks of my node
  std::vector<End> ends_;              // by neighbour, channel, direction
  std::vector<End*> active_;           // those with transfers
  std::array<Common, kCommons> commons_;
  std::uint32_t next_common_ = 0;
  std::size_t staged_ = 0;  // bytes of the segment's staging that are reserved
  Instance* instance_ = nullptr;
  std::shared_ptr<RankFile> file_;    // mine
  std::shared_ptr<Segment> segment_;  // in it: where I write
  pid_t pid_ = 0;                     // who opened it
  std::uint64_t probe_value_ = 0;     // what peers must find when they read this process's memory
  int reserve_error_ = 0;
  Refusals refusals_;  // common chunks count as kReservedChunks: they leave as much
  static constexpr std::uint64_t kFetchBytes = 128 * 1024;  // at a time when combined: less than a level-2 cache
  static constexpr std::align_val_t kPieceAlignment{4096};
  struct FreePiece {
    void operator()(std::byte* p) const { ::operator delete(p, kPieceAlignment); }
  };
  std::unique_ptr<std::byte, FreePiece> piece_;  // where fetched pieces are combined from
  GCCL_Fault fault_{};
  bool failed_ = false;
  std::uint32_t idle_polls_ = 0;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace gccl::shm
