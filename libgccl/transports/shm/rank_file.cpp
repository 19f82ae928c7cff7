#include "libgccl/transports/shm/rank_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>

#include "libgccl/base/descriptor.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/transports/shm/reserve.hpp"
#include "libgccl/transports/shm/segment.hpp"

namespace gccl::shm {
namespace {

constexpr char kFolder[] = "/dev/shm/";
constexpr char kPrefix[] = "gccl-";
constexpr std::size_t kNameLength = sizeof kPrefix - 1 + 32;
constexpr std::uint64_t kMark = 0x326d68736c636367;  // "gcclshm2": at the beginning of a file that has been locked
constexpr std::uint64_t kMarkBytes = 65536;          // a multiple of every page size
constexpr std::time_t kOldSeconds = 600;             // longer than any rank takes from creating to marking

// Files of this process by name. Held too while a file is created, so that no sweep of another thread opens it before
// it is listed here.
std::mutex own_files_mutex;
std::map<std::string, std::weak_ptr<RankFile>>& own_files() {
  static NoDestructor<std::map<std::string, std::weak_ptr<RankFile>>> map;
  return *map;
}

Status refused(const std::string& what, const std::string& name, int error) {
  return Status::error(fmt::format("{} {}{}: {}", what, kFolder, name, text_of_error(error)), GCCL_ERR_SYSTEM);
}

bool is_name(const std::string& name) {
  return name.size() == kNameLength && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789abcdef", sizeof kPrefix - 1) == name.npos;
}

// By another process than this.
bool locked(int fd) {
  struct flock l {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  l.l_len = 1;
  return ::fcntl(fd, F_GETLK, &l) != 0 || l.l_type != F_UNLCK;
}

bool marked(int fd) {
  std::uint64_t mark = 0;
  return ::pread(fd, &mark, sizeof mark, 0) == ssize_t(sizeof mark) && mark == kMark;
}

}  // namespace

std::string text_of_error(int error) {
  std::string text = std::strerror(error);
  if (error == ENOSPC || error == ENOMEM)  // of reserving
    text += "; /dev/shm is full: free it, or mount it larger (docker run --shm-size)";
  if (error == EFBIG) text += kLimitText;
  return text;
}

// With own_files_mutex held.
void RankFile::sweep() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(kFolder), ::closedir);
  if (!folder) return;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (!is_name(name) || own_files().contains(name)) continue;
    const int fd = above_standard_streams(
        ::openat(::dirfd(folder.get()), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0) continue;
    struct stat st;
    // The mark first: what carries it has been locked before, and a lock that is gone never comes back. The other way
    // round a file could be locked and marked in between, and would be taken for a dead rank's.
    const bool dead = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == ::geteuid() &&
                      (marked(fd) || std::time(nullptr) - st.st_mtime > kOldSeconds) && !locked(fd);
    if (dead) ::unlinkat(::dirfd(folder.get()), entry->d_name, 0);
    ::close(fd);
  }
}

Status RankFile::create(std::shared_ptr<RankFile>* out) {
  std::shared_ptr<RankFile> f(new RankFile);
  std::uint64_t tag[2];
  if (::getrandom(tag, sizeof tag, 0) != ssize_t(sizeof tag)) return refused("cannot draw a name for", "", errno);
  char name[64];
  std::snprintf(name, sizeof name, "%s%016llx%016llx", kPrefix, static_cast<unsigned long long>(tag[0]),
                static_cast<unsigned long long>(tag[1]));
  f->name_ = name;
  f->path_ = "/" + f->name_;
  f->mine_ = true;
  {
    std::lock_guard lock(own_files_mutex);
    sweep();
    own_files()[f->name_] = f;
    // Before the lock: closing any descriptor of the file would drop it.
    f->fd_ = above_standard_streams(::shm_open(f->path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  }
  if (f->fd_ < 0) return refused("cannot create", f->name_, errno);
  f->named_ = true;
  struct flock l {};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  l.l_len = 1;
  if (::fcntl(f->fd_, F_SETLK, &l) != 0) return refused("cannot lock", f->name_, errno);
  if (const int error = reserve(f->fd_, 0, 4096)) return refused("cannot reserve", f->name_, error);
  if (const int error = resize(f->fd_, off_t(kMarkBytes))) return refused("cannot size", f->name_, error);
  if (::pwrite(f->fd_, &kMark, sizeof kMark, 0) != ssize_t(sizeof kMark))
    return refused("cannot mark", f->name_, errno);
  *out = std::move(f);
  return {};
}

Status RankFile::open(const std::string& name, std::shared_ptr<RankFile>* out) {
  if (!is_name(name)) return Status::error(fmt::format("\"{}\" is no name of a rank's file", name), GCCL_ERR_SYSTEM);
  {
    std::lock_guard lock(own_files_mutex);
    if (const auto it = own_files().find(name); it != own_files().end())
      if ((*out = it->second.lock())) return {};
  }
  std::shared_ptr<RankFile> f(new RankFile);
  f->name_ = name;
  f->path_ = "/" + f->name_;
  f->fd_ = above_standard_streams(::shm_open(f->path_.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (f->fd_ < 0) return refused("cannot open", name, errno);
  struct stat st;
  if (::fstat(f->fd_, &st) != 0) return refused("cannot look at", name, errno);
  if (st.st_uid != ::geteuid())
    return Status::error(fmt::format("{}{} belongs to user {}, this rank to {}", kFolder, name, st.st_uid, ::geteuid()),
                         GCCL_ERR_SYSTEM);
  if (!marked(f->fd_))
    return Status::error(fmt::format("{}{} comes from another version of the library", kFolder, name), GCCL_ERR_SYSTEM);
  if (!f->alive())
    return Status::error(
        fmt::format("{}{}: the process that made it has ended (or its locks do not reach here)", kFolder, name),
        GCCL_ERR_SYSTEM);
  *out = std::move(f);
  return {};
}

bool RankFile::alive() const { return mine_ || locked(fd_); }

void RankFile::unlink() {
  std::lock_guard lock(mutex_);
  if (!named_) return;
  named_ = false;
  ::shm_unlink(path_.c_str());
}

RankFile::~RankFile() {
  unlink();
  if (mine_) {
    std::lock_guard lock(own_files_mutex);
    own_files().erase(name_);
  }
  if (fd_ >= 0) ::close(fd_);
}

Status RankFile::take(std::size_t bytes, std::uint64_t* offset) {
  assert(mine_ && bytes > 0);
  bytes = (bytes + kMarkBytes - 1) / kMarkBytes * kMarkBytes;
  std::lock_guard lock(mutex_);
  std::uint64_t end = kMarkBytes;
  for (Range& r : ranges_) {
    end = r.offset + r.bytes;
    if (r.taken || r.bytes < bytes || Segment::used(fd_, r.offset)) continue;
    r.taken = true;
    *offset = r.offset;
    return {};
  }
  if (const int error = resize(fd_, off_t(end + bytes))) return refused("cannot size", name_, error);
  ranges_.push_back({.offset = end, .bytes = bytes, .taken = true});
  *offset = end;
  return {};
}

void RankFile::give_back(std::uint64_t offset) {
  std::lock_guard lock(mutex_);
  const auto range = std::ranges::find(ranges_, offset, &Range::offset);
  assert(range != ranges_.end() && range->taken);  // what take() gave, and once
  range->taken = false;
}

Status RankFiles::mine(std::shared_ptr<RankFile>* out) {
  std::lock_guard lock(mutex_);
  if (!mine_)
    if (const Status s = RankFile::create(&mine_); !s.ok()) return s;
  *out = mine_;
  return {};
}

void RankFiles::drop_unused() {
  std::lock_guard lock(mutex_);
  if (mine_ && mine_.use_count() == 1 && !mine_->announced) mine_.reset();
}

Status RankFiles::of(const std::string& name, std::shared_ptr<RankFile>* out) {
  std::lock_guard lock(mutex_);
  for (const auto& f : others_)
    if (f->name() == name) {
      *out = f;
      return {};
    }
  std::shared_ptr<RankFile> f;
  if (const Status s = RankFile::open(name, &f); !s.ok()) return s;
  others_.push_back(f);
  *out = std::move(f);
  return {};
}

}  // namespace gccl::shm
