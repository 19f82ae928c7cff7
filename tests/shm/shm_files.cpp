// Files of ranks in shared memory: they show which ranks live, a rank that died leaves none, and their memory is given
// back.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/transports/shm/rank_file.hpp"
#include "libgccl/transports/shm/segment.hpp"
#include "tests/support/child.hpp"

using namespace gccl;
using namespace gccl::shm;

namespace {

std::string path_of(const std::string& name) { return "/dev/shm/" + name; }
bool exists(const std::string& name) { return ::access(path_of(name).c_str(), F_OK) == 0; }

// A process that has a rank's file, does as it is asked and then waits to be killed.
struct Owner {
  std::optional<test::Child> process;
  std::string name;
  explicit Owner(const std::function<void(RankFile&)>& then) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    process.emplace([&] {
      std::shared_ptr<RankFile> file;
      if (!RankFile::create(&file).ok()) ::_exit(1);
      if (::write(ends[1], file->name().data(), file->name().size()) < 0) ::_exit(1);
      ::close(ends[1]);
      then(*file);
      for (;;) ::pause();
    });
    ::close(ends[1]);
    char text[64];
    const ssize_t n = ::read(ends[0], text, sizeof text);
    REQUIRE(n > 0);
    name.assign(text, std::size_t(n));
    ::close(ends[0]);
  }
  // The process ends, as a zombie at first.
  void kill() {
    process->kill();
    siginfo_t info;
    ::waitid(P_PID, id_t(process->pid()), &info, WEXITED | WNOWAIT);
  }
};

TEST_CASE("a rank's file shows that its process lives, until it ends") {
  Owner owner([](RankFile&) {});
  std::shared_ptr<RankFile> file;
  const Status s = RankFile::open(owner.name, &file);
  REQUIRE_MESSAGE(s.ok(), s.text());
  CHECK_FALSE(file->mine());
  CHECK(file->alive());
  owner.kill();  // nobody has waited for it yet
  CHECK_FALSE(file->alive());
}

TEST_CASE("a child that a rank forked does not keep it alive") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Owner owner([&](RankFile&) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, 0);
      char wait;
      ::close(ends[1]);
      if (::read(ends[0], &wait, 1) < 0) ::_exit(1);  // until the test has ended
      ::_exit(0);
    }
  });
  ::close(ends[0]);
  std::shared_ptr<RankFile> file;
  REQUIRE(RankFile::open(owner.name, &file).ok());
  CHECK(file->alive());
  owner.kill();
  CHECK_FALSE(file->alive());
  ::close(ends[1]);
}

TEST_CASE("a rank whose main thread has ended lives on in the others") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Owner owner([&](RankFile&) {
    pthread_t other;
    ::pthread_create(
        &other, nullptr,
        [](void*) -> void* {
          for (;;) ::pause();
        },
        nullptr);
    ::syscall(SYS_exit, 0);  // this thread alone
  });
  ::close(ends[1]);
  ::close(ends[0]);
  std::shared_ptr<RankFile> file;
  REQUIRE(RankFile::open(owner.name, &file).ok());
  // Until /proc calls it a zombie, which it is not.
  for (char state = 0; state != 'Z';) {
    std::ifstream stat("/proc/" + std::to_string(owner.process->pid()) + "/stat");
    std::string text;
    REQUIRE(std::getline(stat, text));
    state = text[text.rfind(')') + 2];
    ::usleep(1000);
  }
  CHECK(file->alive());
  owner.kill();
  CHECK_FALSE(file->alive());
}

TEST_CASE("files that killed processes left are removed by the next one; nobody else's are") {
  Owner living([](RankFile&) {});
  std::string left[3];
  for (std::string& name : left) {
    Owner owner([](RankFile&) {});
    name = owner.name;
    CHECK(exists(name));
    owner.kill();  // another job that starts on this machine may remove it before this test does
  }
  // A file of another library, or one that is just being made, stays.
  char strange_name[64];
  std::snprintf(strange_name, sizeof strange_name, "gccl-%032x", unsigned(::getpid()));
  const std::string strange = strange_name;
  const int fd = ::open(path_of(strange).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  ::close(fd);
  std::shared_ptr<RankFile> mine, second;
  REQUIRE(RankFile::create(&mine).ok());
  REQUIRE(RankFile::create(&second).ok());
  for (const std::string& name : left) CHECK_FALSE(exists(name));
  CHECK(exists(living.name));
  CHECK(exists(mine->name()));
  CHECK(exists(second->name()));
  CHECK(exists(strange));
  ::unlink(path_of(strange).c_str());
  // The first one's lock is still there after the second has looked around.
  test::Child child([&] {
    const int file = ::open(path_of(mine->name()).c_str(), O_RDWR);
    struct flock l {};
    l.l_type = F_WRLCK;
    l.l_len = 1;
    return ::fcntl(file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid == ::getppid() ? 0 : 1;
  });
  CHECK(child.wait() == 0);
}

// What happens between two steps of this process: set, it is called once.
std::function<void()> after_shm_open, before_pread;
void once(std::function<void()>& hook) {
  if (const auto h = std::exchange(hook, nullptr)) h();
}

TEST_CASE("a file that another process is just making is not removed, whatever it has done meanwhile") {
  int made[2], go_on[2], done[2];
  for (int* const ends : {made, go_on, done}) REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const auto notify = [](const int(&to)[2]) {
    if (::write(to[1], "", 1) != 1) ::abort();
  };
  const auto wait = [](const int(&from)[2]) {
    char byte;
    if (::read(from[0], &byte, 1) != 1) ::abort();
  };
  test::Child maker([&] {
    after_shm_open = [&] {
      notify(made);
      wait(go_on);
    };
    std::shared_ptr<RankFile> file;
    const bool good = RankFile::create(&file).ok();
    notify(done);
    if (good) wait(go_on);
    return good && exists(file->name()) ? 0 : 1;
  });
  wait(made);  // and neither locked nor marked
  before_pread = [&] {
    notify(go_on);
    wait(done);
  };
  std::shared_ptr<RankFile> mine;
  CHECK(RankFile::create(&mine).ok());
  CHECK_FALSE(before_pread);  // it has looked
  notify(go_on);
  CHECK(maker.wait() == 0);
}

// A process that opens a neighbour's segment, looks into it, and has it until it is asked to let go.
struct NeighbourProcess {
  struct Place {
    char name[40];
    std::uint64_t offset, id;
  };
  std::optional<test::Child> process;
  int to = -1, from = -1;
  NeighbourProcess() {
    int there[2], back[2];
    REQUIRE(::pipe2(there, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(back, O_CLOEXEC) == 0);
    process.emplace([&] {
      ::close(there[1]);
      Place p{};
      if (::read(there[0], &p, sizeof p) != ssize_t(sizeof p)) ::_exit(1);
      std::shared_ptr<RankFile> file;
      std::shared_ptr<Segment> segment, other;
      const bool good = RankFile::open(p.name, &file).ok() && Segment::open(file, p.offset, p.id, 20, &segment).ok() &&
                        segment->pipe(4)->chunks[0][0] == std::byte(1) &&
                        !Segment::open(file, p.offset, p.id + 1, 20, &other).ok() &&
                        !Segment::open(file, p.offset + (1 << 26), p.id, 20, &other).ok();
      if (::write(back[1], good ? "y" : "n", 1) != 1) ::_exit(1);
      char wait;
      if (::read(there[0], &wait, 1) < 0) ::_exit(1);
      segment.reset();
      ::_exit(0);
    });
    ::close(there[0]);
    ::close(back[1]);
    to = there[1];
    from = back[0];
  }
  char opens(const RankFile& file, const Segment& segment) {
    Place p{.name = {}, .offset = segment.offset(), .id = segment.id()};
    std::snprintf(p.name, sizeof p.name, "%s", file.name().c_str());
    REQUIRE(::write(to, &p, sizeof p) == ssize_t(sizeof p));
    char said = 0;
    return ::read(from, &said, 1) == 1 ? said : char(0);
  }
  int let_go() {
    REQUIRE(::write(to, "", 1) == 1);
    ::close(to);
    const int status = process->wait();
    ::close(from);
    return status;
  }
};

TEST_CASE("memory of segments is given back by the last who uses it, and taken again") {
  NeighbourProcess neighbours[5];  // before the file: a child would know it as its own
  std::shared_ptr<RankFile> file;
  REQUIRE(RankFile::create(&file).ok());
  const auto kib = [&] {
    struct stat st;
    REQUIRE(::fstat(file->descriptor(), &st) == 0);
    return st.st_blocks / 2;
  };
  const auto before = kib();
  std::uint64_t furthest = 0;
  for (NeighbourProcess& neighbour : neighbours) {
    std::shared_ptr<Segment> mine, next;
    REQUIRE(Segment::create(file, 20, &mine).ok());
    CHECK(kib() - before < 16);  // header and controls alone
    CHECK(mine->reserve_pipe(3, kReservedAllBeginnings) == 0);
    CHECK(mine->reserve_pipe(4, kReservedChunks) == 0);
    CHECK(kib() - before > 256);
    mine->pipe(4)->cells[0].sequence = 5;
    mine->pipe(4)->chunks[0][0] = std::byte(1);
    CHECK(neighbour.opens(*file, *mine) == 'y');
    const std::uint64_t offset = mine->offset();
    mine.reset();
    CHECK(kib() - before > 256);  // the neighbour still reads
    REQUIRE(Segment::create(file, 20, &next).ok());
    CHECK(next->offset() != offset);
    next.reset();
    CHECK(neighbour.let_go() == 0);
    CHECK(kib() == before);
    REQUIRE(Segment::create(file, 20, &next).ok());
    REQUIRE(next->reserve_pipe(4, kReservedChunks) == 0);
    CHECK(next->pipe(4)->cells[0].sequence == 0);
    CHECK(next->pipe(4)->chunks[0][0] == std::byte(0));
    furthest = std::max(furthest, next->offset());
  }
  CHECK(furthest <= 2 * (std::uint64_t(20) * sizeof(Pipe) + (1 << 20)));  // the file does not grow
}

}  // namespace

// In place of the C library's, for the hooks above.
extern "C" int shm_open(const char* name, int flags, mode_t mode) {
  const int fd = ::open(path_of(name + 1).c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
  once(after_shm_open);
  return fd;
}
extern "C" ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  once(before_pread);
  return ::syscall(SYS_pread64, fd, data, bytes, offset);
}
