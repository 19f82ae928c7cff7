#include "libgccl/backends/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace gccl::shm {
namespace {

constexpr std::uint64_t kMagic = 0x316d68736c636367;  // "gcclshm1"

// Segments of this process by name: ranks that share a process share the mapping too, so that their atomics have one
// address each and thread checkers can follow them.
std::mutex own_mutex;
std::map<std::string, std::weak_ptr<Segment>>& own() {
  static auto* const map = new std::map<std::string, std::weak_ptr<Segment>>;  // outlives every static
  return *map;
}

Status refused(const std::string& what, const std::string& name) {
  std::string text = what + " /dev/shm" + name + ": " + std::strerror(errno);
  if (errno == ENOSPC || errno == ENOMEM)
    text += "; /dev/shm is full: free it, or mount it larger (docker run --shm-size)";
  return Status::error(text, GCCL_ERR_SYSTEM);
}

}  // namespace

std::uint64_t process_start(std::uint32_t pid) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* at = std::strrchr(text, ')');  // the name before it may hold anything
  if (!at || std::strlen(at) < 4 || at[2] == 'Z' || at[2] == 'X') return 0;
  unsigned long long start = 0;
  // The 22nd field; the state is the third.
  if (std::sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) !=
      1)
    return 0;
  return start + 1;
}

Status Segment::create(std::uint32_t pipes, std::shared_ptr<Segment>* out) {
  std::shared_ptr<Segment> s(new Segment);
  std::uint64_t tag[2];
  if (::getrandom(tag, sizeof tag, 0) != ssize_t(sizeof tag)) return refused("cannot draw a name for", "");
  char name[64];
  std::snprintf(name, sizeof name, "/gccl-%016llx%016llx", static_cast<unsigned long long>(tag[0]),
                static_cast<unsigned long long>(tag[1]));
  s->name_ = name;
  s->bytes_ = kHeaderBytes + std::size_t(pipes) * sizeof(Pipe);
  s->fd_ = ::shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (s->fd_ < 0) return refused("cannot create", s->name_);
  s->named_ = true;
  if (::ftruncate(s->fd_, off_t(s->bytes_)) != 0) return refused("cannot size", s->name_);
  // Header and cells exist from the start: touching a page that the machine has no room for would kill the process.
  if (const int error = ::posix_fallocate(s->fd_, 0, off_t(kHeaderBytes))) {
    errno = error;
    return refused("cannot reserve", s->name_);
  }
  for (std::uint32_t i = 0; i < pipes; ++i)
    if (const int error =
            ::posix_fallocate(s->fd_, off_t(kHeaderBytes + i * sizeof(Pipe)), off_t(offsetof(Pipe, chunks)))) {
      errno = error;
      return refused("cannot reserve", s->name_);
    }
  s->base_ = ::mmap(nullptr, s->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd_, 0);
  if (s->base_ == MAP_FAILED) {
    s->base_ = nullptr;
    return refused("cannot map", s->name_);
  }
  Header& h = s->header();
  h.magic = kMagic;
  h.bytes = s->bytes_;
  h.owner_pid = std::uint32_t(::getpid());
  h.owner_start = process_start(h.owner_pid);
  std::lock_guard lock(own_mutex);
  own()[s->name_] = s;
  *out = std::move(s);
  return {};
}

Status Segment::open(const std::string& name, std::uint32_t pipes, std::shared_ptr<Segment>* out) {
  {
    std::lock_guard lock(own_mutex);
    if (const auto it = own().find(name); it != own().end())
      if ((*out = it->second.lock())) return {};
  }
  std::shared_ptr<Segment> s(new Segment);
  s->name_ = name;
  s->bytes_ = kHeaderBytes + std::size_t(pipes) * sizeof(Pipe);
  s->fd_ = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (s->fd_ < 0) return refused("cannot open", name);
  struct stat st;
  if (::fstat(s->fd_, &st) != 0) return refused("cannot look at", name);
  if (st.st_uid != ::geteuid() || std::size_t(st.st_size) != s->bytes_)
    return Status::error("/dev/shm" + name + " is not the segment that its rank announced", GCCL_ERR_SYSTEM);
  s->base_ = ::mmap(nullptr, s->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd_, 0);
  ::close(s->fd_);
  s->fd_ = -1;
  if (s->base_ == MAP_FAILED) {
    s->base_ = nullptr;
    return refused("cannot map", name);
  }
  if (s->header().magic != kMagic || s->header().bytes != s->bytes_)
    return Status::error("/dev/shm" + name + " comes from another version of the library", GCCL_ERR_SYSTEM);
  *out = std::move(s);
  return {};
}

bool Segment::reserve_chunks(std::uint32_t i) {
  const off_t at = off_t(kHeaderBytes + i * sizeof(Pipe) + offsetof(Pipe, chunks));
  return ::posix_fallocate(fd_, at, off_t(sizeof(Pipe::chunks))) == 0;
}

void Segment::unlink() {
  if (!named_) return;
  named_ = false;
  ::shm_unlink(name_.c_str());
}

Segment::~Segment() {
  unlink();
  if (fd_ >= 0) {
    std::lock_guard lock(own_mutex);
    own().erase(name_);
  }
  if (base_) ::munmap(base_, bytes_);
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace gccl::shm
