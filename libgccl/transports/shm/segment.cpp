#include "libgccl/transports/shm/segment.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "libgccl/base/no_destructor.hpp"
#include "libgccl/transports/shm/reserve.hpp"

namespace gccl::shm {
namespace {

constexpr std::uint32_t kClearing = 0x80000000;  // in Header::users: the last one is giving the memory back

// Segments of this process by id.
std::mutex own_segments_mutex;
std::map<std::uint64_t, std::weak_ptr<Segment>>& own_segments() {
  static NoDestructor<std::map<std::uint64_t, std::weak_ptr<Segment>>> map;
  return *map;
}

Status refused(const std::string& what, std::size_t bytes, const RankFile& file, const std::string& why) {
  return Status::error(fmt::format("{} {} bytes of /dev/shm/{}: {}", what, bytes, file.name(), why), GCCL_ERR_SYSTEM);
}

}  // namespace

std::size_t Segment::pipes_at(std::uint32_t pipes) {
  return kHeaderBytes + (pipes * sizeof(Control) + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
}

bool Segment::used(int file, std::uint64_t offset) {
  // Not through a mapping: what has been given back would be taken again by looking at it.
  std::uint32_t users = 0;
  const off_t at = off_t(offset + offsetof(Header, users));
  return ::pread(file, &users, sizeof users, at) == ssize_t(sizeof users) && users != 0;
}

Status Segment::map() {
  const std::size_t bytes = bytes_of(pipes_);
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_->descriptor(), off_t(offset_));
  if (base == MAP_FAILED) return refused("cannot map", bytes, *file_, text_of_mapping(errno));
  base_ = static_cast<std::byte*>(base);
  return {};
}

Status Segment::create(const std::shared_ptr<RankFile>& file, std::uint32_t pipes, std::shared_ptr<Segment>* out) {
  std::shared_ptr<Segment> s(new Segment);
  s->pipes_ = pipes;
  if (::getrandom(&s->id_, sizeof s->id_, 0) != ssize_t(sizeof s->id_))
    return refused("cannot draw a number for", 0, *file, text_of_error(errno));
  if (const Status t = file->take(bytes_of(pipes), &s->offset_); !t.ok()) return t;
  s->file_ = file;
  s->owner_ = true;
  if (const int error = reserve(file->descriptor(), off_t(s->offset_), off_t(pipes_at(pipes))))
    return refused("cannot reserve", pipes_at(pipes), *file, text_of_error(error));
  if (const Status t = s->map(); !t.ok()) return t;
  Header& h = s->header();
  h.bytes = bytes_of(pipes);
  h.id = s->id_;
  h.users.store(1, std::memory_order_release);
  s->counted_ = true;
  std::lock_guard lock(own_segments_mutex);
  own_segments()[s->id_] = s;
  *out = std::move(s);
  return {};
}

Status Segment::open(const std::shared_ptr<RankFile>& file, std::uint64_t offset, std::uint64_t id, std::uint32_t pipes,
                     std::shared_ptr<Segment>* out) {
  if (file->mine()) {
    std::lock_guard lock(own_segments_mutex);
    if (const auto it = own_segments().find(id); it != own_segments().end())
      if ((*out = it->second.lock())) return {};
    return Status::error("a rank of this process has left the communicator already", GCCL_ERR_PEER_LOST);
  }
  const Status ended = Status::error(
      fmt::format("/dev/shm/{} does not hold the segment that its rank announced", file->name()), GCCL_ERR_SYSTEM);
  struct stat st;
  if (::fstat(file->descriptor(), &st) != 0 || std::uint64_t(st.st_size) < bytes_of(pipes) ||
      offset > std::uint64_t(st.st_size) - bytes_of(pipes) || !used(file->descriptor(), offset))
    return ended;
  std::shared_ptr<Segment> s(new Segment);
  s->file_ = file;
  s->offset_ = offset;
  s->id_ = id;
  s->pipes_ = pipes;
  if (const Status t = s->map(); !t.ok()) return t;
  Header& h = s->header();
  for (std::uint32_t users = h.users.load(std::memory_order_acquire);;) {
    if (users == 0 || users >= kClearing) return ended;
    if (h.users.compare_exchange_weak(users, users + 1)) break;
  }
  s->counted_ = true;
  if (h.id != id || h.bytes != bytes_of(pipes)) return ended;
  *out = std::move(s);
  return {};
}

int Segment::space(Space* out) const {
  struct statvfs all {};
  if (::fstatvfs(file_->descriptor(), &all) != 0) return errno;
  *out = all.f_blocks == 0 ? Space{} : Space{.all = all.f_blocks * all.f_frsize, .free = all.f_bavail * all.f_frsize};
  return 0;
}

// 0, ENOSPC, or the error's number.
int Segment::leaves_free(std::size_t bytes, unsigned one_part_in) const {
  Space now;
  if (const int error = space(&now)) return error;
  return now.leaves(bytes, now.all / one_part_in) ? 0 : ENOSPC;
}

int Segment::reserve_here(std::size_t at, std::size_t bytes) {
  return reserve(file_->descriptor(), off_t(offset_ + at), off_t(bytes));
}

int Segment::reserve_pipe(std::uint32_t i, Reserved how_much) {
  assert(owner_ && i < pipes_);
  const std::size_t at = pipes_at(pipes_) + i * sizeof(Pipe);
  if (how_much > kReservedOneBeginning) {
    const std::size_t bytes = sizeof(Pipe::cells) + std::size_t(chunks(how_much)) * chunk_bytes(how_much);
    if (const int error = leaves_free(bytes, how_much == kReservedChunks ? kHalf : kEighth)) return error;
  }
  if (how_much == kReservedChunks) return reserve_here(at, sizeof(Pipe));
  int error = reserve_here(at, sizeof(Pipe::cells));
  for (std::uint32_t k = 0; k < chunks(how_much) && error == 0; ++k)
    error = reserve_here(at + offsetof(Pipe, chunks) + k * kChunkBytes, kBeginningBytes);
  return error;
}

int Segment::reserve_common(std::uint32_t i, std::uint32_t bytes, unsigned leaves_one_part_in) {
  assert(owner_ && i < kCommons && bytes <= kChunkBytes);
  if (const int error = leaves_free(bytes, leaves_one_part_in)) return error;
  return reserve_here(common_at(pipes_) + i * kChunkBytes, bytes);
}

int Segment::reserve_staging(std::size_t bytes) {
  assert(owner_ && bytes <= sizeof(Staging));
  if (const int error = leaves_free(bytes, kHalf)) return error;
  return reserve_here(staging_at(pipes_), bytes);
}

Segment::~Segment() {
  if (owner_) {
    std::lock_guard lock(own_segments_mutex);
    own_segments().erase(id_);
  }
  bool last = owner_ && !counted_;
  if (counted_) {
    std::atomic<std::uint32_t>& count = header().users;
    for (std::uint32_t users = count.load(); !last;) {
      if (users == 1) {
        last = count.compare_exchange_weak(users, kClearing);
      } else if (count.compare_exchange_weak(users, users - 1)) {
        break;
      }
    }
  }
  if (base_) ::munmap(base_, bytes_of(pipes_));
  if (last) {
    // The header goes last: from then on the room is free.
    const int file = file_->descriptor();
    release(file, off_t(offset_ + kHeaderBytes), off_t(bytes_of(pipes_) - kHeaderBytes));
    release(file, off_t(offset_), off_t(kHeaderBytes));
  }
  if (owner_) file_->give_back(offset_);
}

}  // namespace gccl::shm
