// Who am I, what is set, and how ranks meet: tables of environments first, then real ranks, and real nuisances.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/file_store.hpp"
#include "libgccl/bootstrap/host.hpp"
#include "libgccl/bootstrap/identity.hpp"
#include "libgccl/bootstrap/job_place.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/bootstrap/settings.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/net/handshake.hpp"
#include "libgccl/net/socket.hpp"
#include "tests/support/fork.hpp"

using namespace gccl;
namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;
using Variables = std::map<std::string, std::string>;
using Clock = std::chrono::steady_clock;

namespace {

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "gccl-bootstrap-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  bool empty() const { return fs::is_empty(path); }
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::uint16_t free_port() {
  Fd fd;
  REQUIRE(listen_on(SocketAddress::loopback(0), &fd).ok());
  return SocketAddress::local_end(fd.get()).port();
}

std::size_t open_descriptors() {
  const fs::directory_iterator all("/proc/self/fd");
  return std::size_t(std::distance(begin(all), end(all)));
}

// What rank r contributes to a round.
Bytes contribution(Rank r, unsigned round, std::size_t bytes) {
  Bytes b(bytes);
  for (std::size_t i = 0; i < bytes; ++i) b[i] = std::byte((r * 131 + round * 17 + i * 7) & 255);
  return b;
}

// Several rounds of one rank; the first thing that goes wrong.
Status meet(Exchange& exchange, Rank rank, Rank size, unsigned rounds = 3, std::int64_t timeout_ms = 20000) {
  for (unsigned round = 0; round < rounds; ++round) {
    const std::size_t bytes = round == 1 ? 0 : 1 + 300 * round;
    Bytes all, expected;
    if (Status s = exchange.all_gather(contribution(rank, round, bytes), &all, timeout_ms); !s.ok()) return s;
    for (Rank r = 0; r < size; ++r) {
      const Bytes theirs = contribution(r, round, bytes);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    if (all != expected) return Status::error("round " + std::to_string(round) + ": wrong bytes");
  }
  return {};
}

// Each rank in a thread of its own: what became of it.
template <class Open>
std::vector<Status> in_threads(Rank size, Open open, unsigned rounds = 3, std::int64_t timeout_ms = 20000) {
  std::vector<Status> results(size);
  std::vector<std::thread> threads;
  for (Rank r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      std::unique_ptr<Exchange> exchange;
      results[r] = open(r, &exchange);
      if (results[r].ok() && exchange) results[r] = meet(*exchange, r, size, rounds, timeout_ms);
    });
  for (std::thread& t : threads) t.join();
  return results;
}

auto tcp(std::uint16_t port, Rank size, std::string secret = "s") {
  return [=](Rank r, std::unique_ptr<Exchange>* out) {
    return open_tcp_store({{"127.0.0.1", port}, r, size, secret, 20000}, out);
  };
}
auto files(std::string prefix, Rank size) {
  return [=](Rank r, std::unique_ptr<Exchange>* out) { return open_file_store({prefix, r, size}, out); };
}

void check_all_ok(const std::vector<Status>& results) {
  for (std::size_t r = 0; r < results.size(); ++r) CHECK_MESSAGE(results[r].ok(), r << ": " << results[r].text());
}

// Collects what this process writes to standard error while it lives.
class CapturedErrors {
 public:
  CapturedErrors() : old_(dup(2)) {
    std::fflush(stderr);
    const Fd file(open((folder_.path / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    dup2(file.get(), 2);
  }
  ~CapturedErrors() { restore(); }
  std::string text() {
    restore();
    std::ifstream in(folder_.path / "err");
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  void restore() {
    std::fflush(stderr);
    if (old_) dup2(old_.get(), 2);
    old_.reset();
  }
  Folder folder_;
  Fd old_;
};

Fd connected_to(std::uint16_t port) {
  const auto at = SocketAddress::loopback(port);
  for (int i = 0; i < 400; ++i) {
    Fd fd;
    pollfd p{-1, POLLOUT, 0};
    if (dial(at, &fd).ok() && (p.fd = fd.get(), poll(&p, 1, 1000) == 1) && dialled(fd.get(), at).ok()) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the sentence about missing ranks") {
  CHECK(missing_text({3}, 8, 60000) == "rank 3 of 8 did not come within 60 s");
  CHECK(missing_text({3, 5, 6, 7}, 8, 1500) == "ranks 3, 5-7 of 8 did not come within 1.5 s");
  CHECK(ranks_text({1, 2}, 3) == "ranks 1, 2 of 3");
  CHECK(duration_text(200) == "200 ms");
  std::vector<Rank> odd;
  for (Rank r = 1; r < 200; r += 2) odd.push_back(r);
  CHECK(ranks_text(odd, 200) == "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 88 more of 200");
}

TEST_CASE("launchers are asked in order, and none of them makes a job of one") {
  const Variables gccl{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}}, torchrun{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}},
      openmpi{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "5"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
      pmix{{"PMIX_RANK", "4"}}, slurm{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "7"}, {"SLURM_LOCALID", "1"}, {"SLURM_NNODES", "2"}},
      pmi{{"PMI_RANK", "6"}, {"PMI_SIZE", "9"}};
  const auto identity = [](Variables v, int rank = -1, int size = -1) {
    Identity i;
    const Status s = identify(environment_of(v), rank, size, &i);
    CHECK_MESSAGE(s.ok(), s.text());
    return i;
  };
  const auto both = [](Variables a, const Variables& b) {
    a.insert(b.begin(), b.end());
    return a;
  };
  using Kind = Launcher::Kind;
  const auto none = identity({});
  CHECK(none.rank == 0);
  CHECK(none.size == 1);
  CHECK(!none.launcher);
  const auto is = [](const Identity& i, Rank rank, Rank size, Kind kind) {
    CHECK(i.rank == rank);
    CHECK(i.size == size);
    REQUIRE(i.launcher);
    CHECK(int(i.launcher->kind) == int(kind));
  };
  is(identity(gccl), 1, 3, Kind::gccl);
  is(identity(torchrun), 2, 4, Kind::torchrun);
  is(identity(openmpi), 3, 5, Kind::openmpi);
  is(identity(slurm), 5, 7, Kind::slurm);
  is(identity(pmi), 6, 9, Kind::pmi);
  is(identity(both(pmix, {{"SLURM_NTASKS", "6"}})), 4, 6, Kind::pmix);
  is(identity(both(both(both(gccl, torchrun), openmpi), both(slurm, pmi))), 1, 3, Kind::gccl);
  is(identity(both(both(torchrun, openmpi), slurm)), 2, 4, Kind::torchrun);
  is(identity(both(openmpi, both(slurm, pmi))), 3, 5, Kind::openmpi);
  is(identity(both(slurm, {{"SLURM_STEP_NUM_TASKS", "6"}})), 5, 6, Kind::slurm);
  CHECK(identity(torchrun).machines == Identity::Machines::one);
  CHECK(identity(openmpi).machines == Identity::Machines::several);
  CHECK(identity(slurm).machines == Identity::Machines::several);
  CHECK(identity(pmi).machines == Identity::Machines::unknown);

  // In a shell of an allocation that srun did not start: nobody was launched.
  CHECK(!identity({{"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}}).launcher);

  // The caller's word counts, and the environment gives the other half.
  CHECK(identity({}, 2, 5).rank == 2);
  CHECK(identity({}, 2, 5).size == 5);
  CHECK(identity(gccl, 2, 8).size == 8);
  CHECK(identity(gccl, 0).rank == 0);
  CHECK(identity(gccl, 0).size == 3);
  CHECK(identity({{"GCCL_SIZE", "4"}}, 3).size == 4);
  CHECK(identity({{"GCCL_RANK", "3"}}, -1, 4).rank == 3);
  CHECK(identity({}, -1, 1).size == 1);
  CHECK(identity({}, 0, 1).size == 1);
}

TEST_CASE("half a pair and contradictions name the variable, what was found and what was expected") {
  struct Case {
    Variables variables;
    std::string text;  // all of the parts between '*'
    int rank = -1, size = -1;
  };
  const Case cases[] = {
      {{{"GCCL_RANK", "1"}}, "GCCL_RANK is set and GCCL_SIZE is not"},
      {{{"GCCL_SIZE", "1"}}, "GCCL_SIZE is set and GCCL_RANK is not"},
      {{{"RANK", "1"}}, "RANK is set and WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set and RANK is not"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, "OMPI_COMM_WORLD_SIZE is not"},
      {{{"PMIX_RANK", "1"}}, "PMIX_RANK is set*GCCL_RANK and GCCL_SIZE"},
      {{{"SLURM_PROCID", "1"}}, "SLURM_PROCID is set"},
      {{{"PMI_SIZE", "2"}}, "PMI_SIZE is set and PMI_RANK is not"},
      {{{"GCCL_RANK", "3"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is 3, expected less than GCCL_SIZE, which is 3"},
      {{{"GCCL_RANK", "x"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is \"x\", expected a whole number"},
      {{{"GCCL_RANK", ""}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is \"\", expected"},
      {{{"GCCL_RANK", "-1"}, {"GCCL_SIZE", "3"}}, "GCCL_RANK is \"-1\""},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "0"}}, "GCCL_SIZE is \"0\", expected a whole number from 1"},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "99999999999999999999"}}, "GCCL_SIZE is"},
      {{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "3 "}}, "GCCL_SIZE is \"3 \""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, "LOCAL_RANK is 2*LOCAL_WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}}, "LOCAL_WORLD_SIZE is 4*WORLD_SIZE"},
      {{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}}, "the size is given as 4*GCCL_SIZE is 3", -1, 4},
      {{{"GCCL_RANK", "1"}, {"GCCL_SIZE", "3"}}, "the rank is given as 3*GCCL_SIZE", 3},
      {{}, "the size is given as 4*GCCL_RANK", -1, 4},
      {{}, "the rank is given as 0*GCCL_SIZE", 0},
      {{}, "the rank is 4, expected 0 to 3", 4, 4},
      {{}, "the rank is -2", -2, 4},
      {{}, "the size is 0", 0, 0},
      {{}, "the size is -3", 0, -3},
      {{}, "the size is 2000000", 0, 2000000},
  };
  for (const Case& c : cases) {
    Identity i;
    const Status s = identify(environment_of(c.variables), c.rank, c.size, &i);
    CHECK_MESSAGE(s.code() == GCCL_ERR_INVALID_ARGUMENT, c.text);
    for (std::size_t at = 0; at <= c.text.size();) {
      const std::size_t end = std::min(c.text.find('*', at), c.text.size());
      CHECK_MESSAGE(has(s.text(), c.text.substr(at, end - at)), s.text());
      at = end + 1;
    }
  }
}

TEST_CASE("settings come from the configuration, then from variables, and bad ones name themselves") {
  const auto read = [](Variables v, Settings* out, auto change) {
    GCCL_Config c = GCCL_CONFIG_INIT;
    change(c);
    return read_settings(c, environment_of(v), out);
  };
  const auto nothing = [](GCCL_Config&) {};
  Settings s;
  REQUIRE(read({}, &s, nothing).ok());
  CHECK(s.backends == "shm,tcp");
  CHECK(s.timeout_ms == GCCL_TIMEOUT_NONE);
  CHECK(s.start_timeout_ms == 60000);
  CHECK(!s.progress_thread);
  CHECK((s.secret + s.store + s.host + s.address).empty());

  const Variables all{{"GCCL_STORE", "tcp://h:1"}, {"GCCL_SECRET", "k"}, {"GCCL_HOST", "h"}, {"GCCL_ADDRESS", "127.0.0.1"},
                      {"GCCL_BACKENDS", "tcp"}, {"GCCL_TIMEOUT_MS", "70"}, {"GCCL_START_TIMEOUT_MS", "80"}, {"GCCL_PROGRESS_THREAD", "1"}};
  REQUIRE(read(all, &s, nothing).ok());
  CHECK(s.store == "tcp://h:1");
  CHECK(s.secret == "k");
  CHECK(s.host == "h");
  CHECK(s.address == "127.0.0.1");
  CHECK(s.backends == "tcp");
  CHECK(s.timeout_ms == 70);
  CHECK(s.start_timeout_ms == 80);
  CHECK(s.progress_thread);
  REQUIRE(read(all, &s, [](GCCL_Config& c) {
            c.store = "file:///x", c.secret = "", c.host = "other", c.address = "::1", c.backends = "shm,my_own-1";
            c.timeout_ms = GCCL_TIMEOUT_NONE, c.progress_thread = 0;
          }).ok());
  CHECK(s.store == "file:///x");
  CHECK(s.secret.empty());
  CHECK(s.host == "other");
  CHECK(s.address == "::1");
  CHECK(s.backends == "shm,my_own-1");
  CHECK(s.timeout_ms == GCCL_TIMEOUT_NONE);
  CHECK(!s.progress_thread);

  for (auto [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"GCCL_STORE", ""}, {"GCCL_SECRET", ""}, {"GCCL_SECRET_FILE", "/no/such"}, {"GCCL_BACKENDS", ""},
           {"GCCL_BACKENDS", "shm,"}, {"GCCL_BACKENDS", ",shm"}, {"GCCL_BACKENDS", "shm tcp"}, {"GCCL_BACKENDS", "tcp,tcp"},
           {"GCCL_BACKENDS", "../x"}, {"GCCL_TIMEOUT_MS", "0"}, {"GCCL_TIMEOUT_MS", "-2"}, {"GCCL_TIMEOUT_MS", "5s"},
           {"GCCL_START_TIMEOUT_MS", "0"}, {"GCCL_START_TIMEOUT_MS", "-1"}, {"GCCL_PROGRESS_THREAD", "yes"},
           {"GCCL_PROGRESS_THREAD", "2"}, {"GCCL_ADDRESS", "no-such"}, {"GCCL_ADDRESS", "0.0.0.0"},
           {"GCCL_HOST", std::string(1000, 'h')}}) {
    const Status bad = read({{name, value}}, &s, nothing);
    CHECK_MESSAGE(bad.code() == GCCL_ERR_INVALID_ARGUMENT, name << "=" << value);
    CHECK_MESSAGE(has(bad.text(), name), bad.text());
  }
  CHECK(has(read({}, &s, [](GCCL_Config& c) { c.timeout_ms = 0; }).text(), "GCCL_Config.timeout_ms is \"0\""));
  CHECK(has(read({}, &s, [](GCCL_Config& c) { c.progress_thread = 7; }).text(), "GCCL_Config.progress_thread is 7"));
}

TEST_CASE("a secret file must be its owner's alone") {
  Folder folder;
  const std::string path = folder.path / "secret";
  const auto write = [&](const std::string& text, mode_t mode) {
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
  };
  std::string secret;
  write("open sesame\n", 0600);
  REQUIRE(read_secret_file(path, &secret).ok());
  CHECK(secret == "open sesame");
  write("x", 0400);
  CHECK(read_secret_file(path, &secret).ok());
  for (const mode_t mode : {0640, 0604, 0644, 0660}) {
    write("x", mode);
    const Status s = read_secret_file(path, &secret);
    CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
    CHECK(has(s.text(), "chmod 600 " + path));
  }
  write("\n", 0600);
  CHECK(has(read_secret_file(path, &secret).text(), "is empty"));
  write(std::string(4097, 'x'), 0600);
  CHECK(has(read_secret_file(path, &secret).text(), "at most 4096"));
  CHECK(has(read_secret_file(folder.path, &secret).text(), "regular file"));
  CHECK(has(read_secret_file(path + "?", &secret).text(), "No such file"));
  const std::string a = random_secret(), b = random_secret();
  CHECK(a.size() == 64);
  CHECK(a != b);
}

TEST_CASE("frames are understood, and others are not") {
  const auto head = Contribution{60000, 59000, 7}.head();
  CHECK(head.size() == Contribution::kHeadBytes);
  Contribution c;
  REQUIRE(Contribution::parse(head, &c));
  CHECK(c.limit_ms == 60000);
  CHECK(c.remaining_ms == 59000);
  CHECK(c.bytes == 7);
  CHECK(!Contribution::parse(std::span(head).first(head.size() - 1), &c));
  CHECK(!Contribution::parse(Bytes(Contribution::kHeadBytes), &c));
  CHECK(!Contribution::parse(Contribution{-1, 0, 0}.head(), &c));
  Answer a;
  CHECK(Answer::parse(Answer{0, 40}.head(), 40, &a));
  CHECK(!Answer::parse(Answer{0, 41}.head(), 40, &a));
  CHECK(Answer::parse(Answer{101, 4096}.head(), 40, &a));
  CHECK(!Answer::parse(Answer{101, 4097}.head(), 40, &a));
  CHECK(error_answer(Status::error(std::string(10000, 'x'))).size() == Answer::kHeadBytes + Answer::kTextBytesMax);
}

TEST_CASE("TCP store: ranks of every number meet") {
  for (Rank size : {1, 2, 3, 4, 5, 8, 13, 64}) check_all_ok(in_threads(size, tcp(free_port(), size)));
  check_all_ok(in_threads(3, tcp(free_port(), 3, "")));
}

TEST_CASE("TCP store: large contributions do not get stuck in buffers") {
  const std::uint16_t port = free_port();
  constexpr Rank size = 5;
  constexpr std::size_t bytes = 3 << 20;
  std::atomic<int> right = 0;
  check_all_ok(in_threads(size, [&](Rank r, std::unique_ptr<Exchange>*) {
    std::unique_ptr<Exchange> e;
    if (Status s = tcp(port, size)(r, &e); !s.ok()) return s;
    Bytes all;
    const Status s = e->all_gather(contribution(r, 0, bytes), &all, 20000);
    bool same = all.size() == bytes * size;
    for (Rank q = 0; same && q < size; ++q) {
      const Bytes theirs = contribution(q, 0, bytes);
      same = std::equal(theirs.begin(), theirs.end(), all.begin() + std::ptrdiff_t(q * bytes));
    }
    right += same;
    return s;
  }));
  CHECK(right == size);
}

TEST_CASE("TCP store: a thousand rounds at one address leave no descriptor open") {
  const std::uint16_t port = free_port();
  check_all_ok(in_threads(3, tcp(port, 3)));
  const std::size_t before = open_descriptors();
  // Ranks do not wait for each other between rounds: the fast call while the slow still end the round before.
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    for (int i = 0; i < 1000; ++i) {
      std::unique_ptr<Exchange> e;
      if (Status s = tcp(port, 3)(r, &e); !s.ok()) return s;
      if (Status s = meet(*e, r, 3, 1); !s.ok()) return s;
    }
    return Status();
  }));
  CHECK(open_descriptors() == before);
}

TEST_CASE("TCP store: rank 0 may come last") {
  const std::uint16_t port = free_port();
  check_all_ok(in_threads(4, [&](Rank r, std::unique_ptr<Exchange>* e) {
    if (r == 0) pause_ms(300);
    return tcp(port, 4)(r, e);
  }));
}

TEST_CASE("TCP store: who is missing is named on every rank, in the time of the least patient") {
  const std::uint16_t port = free_port();
  const auto begin = Clock::now();
  std::vector<Status> results(8);
  std::vector<std::thread> threads;
  for (Rank r : {0, 1, 2, 4})
    threads.emplace_back([&, r] {
      std::unique_ptr<Exchange> e;
      results[r] = tcp(port, 8)(r, &e);
      if (results[r].ok()) results[r] = meet(*e, r, 8, 1, r == 2 ? 600 : 20000);
    });
  for (std::thread& t : threads) t.join();
  for (Rank r : {0, 1, 2, 4}) {
    CHECK(results[r].code() == GCCL_ERR_TIMEOUT);
    CHECK_MESSAGE(has(results[r].text(), "ranks 3, 5-7 of 8 did not come within 600 ms"), results[r].text());
  }
  CHECK(seconds_since(begin) < 1.6);
}

TEST_CASE("TCP store: a rank that rank 0 never answers says so") {
  const std::uint16_t port = free_port();
  std::unique_ptr<Exchange> e;
  REQUIRE(tcp(port, 3)(2, &e).ok());
  const Status s = meet(*e, 2, 3, 1, 200);
  CHECK(s.code() == GCCL_ERR_TIMEOUT);
  CHECK(has(s.text(), "rank 2: rank 0 of 3 did not answer at tcp://127.0.0.1:" + std::to_string(port) + " within 200 ms"));
  CHECK(has(s.text(), "Connection refused"));
  Fd silent;  // takes the call and says nothing
  REQUIRE(listen_on(SocketAddress::loopback(port), &silent).ok());
  REQUIRE(tcp(port, 3)(2, &e).ok());
  CHECK(has(meet(*e, 2, 3, 1, 200).text(), "connected, but it does not answer"));
}

TEST_CASE("TCP store: a wrong secret is refused and logged, and the others are told who is missing") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  std::vector<Status> results(3);
  std::vector<std::thread> threads;
  for (Rank r : {0, 1, 2})
    threads.emplace_back([&, r] {
      std::unique_ptr<Exchange> e;
      results[r] = tcp(port, 3, r == 1 ? "wrong" : "right")(r, &e);
      if (results[r].ok()) results[r] = meet(*e, r, 3, 1, 600);
    });
  for (std::thread& t : threads) t.join();
  const std::string log = errors.text();
  CHECK(results[1].code() == GCCL_ERR_AUTHENTICATION);
  CHECK(has(results[1].text(), "GCCL_SECRET"));
  CHECK(results[0].code() == GCCL_ERR_TIMEOUT);
  CHECK(has(results[2].text(), "rank 1 of 3 did not come"));
  CHECK_MESSAGE(has(log, "gccl: rank 0, store tcp://127.0.0.1:" + std::to_string(port) + ": refused 127.0.0.1:"), log);
  CHECK(has(log, "the peer does not know the secret"));
}

TEST_CASE("TCP store: two processes with one rank, and ranks of another job, are told so") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  const auto rank = [&](Rank r, Rank size, std::int64_t timeout_ms) {
    std::unique_ptr<Exchange> e;
    Status s = tcp(port, size)(r, &e);
    return s.ok() ? meet(*e, r, size, 1, timeout_ms) : s;
  };
  Status zero;
  std::thread server([&] { zero = rank(0, 3, 20000); });
  std::thread first([&] { CHECK(rank(1, 3, 20000).ok()); });
  pause_ms(300);
  const Status twin = rank(1, 3, 5000), stranger = rank(1, 4, 5000);
  CHECK(has(twin.text(), "rank 1 is here already, from 127.0.0.1:"));
  CHECK(has(stranger.text(), "rank 1 of a job of 4 ranks called the store of a job of 3"));
  CHECK(rank(2, 3, 20000).ok());
  server.join();
  first.join();
  CHECK(zero.ok());
  CHECK(has(errors.text(), "refused"));
}

TEST_CASE("TCP store: a rank that dies before the others have come may come again") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  Status results[3];
  const auto rank = [&](Rank r, std::int64_t timeout_ms) {
    std::unique_ptr<Exchange> e;
    Status s = tcp(port, 3)(r, &e);
    return s.ok() ? meet(*e, r, 3, 2, timeout_ms) : s;
  };
  std::thread server([&] { results[0] = rank(0, 20000); });
  const pid_t child = fork();
  if (child == 0) {
    (void)rank(1, 20000);
    _exit(0);
  }
  pause_ms(200);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::thread one([&] { results[1] = rank(1, 20000); });
  std::thread two([&] { results[2] = rank(2, 20000); });
  server.join();
  one.join();
  two.join();
  for (const Status& s : results) CHECK_MESSAGE(s.ok(), s.text());
}

TEST_CASE("TCP store: a rank that is killed between rounds is named at once") {
  const std::uint16_t port = free_port();
  Status results[3];
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Exchange> e;
    if (tcp(port, 3)(2, &e).ok() && meet(*e, 2, 3, 1).ok()) kill(getpid(), SIGKILL);
    _exit(1);
  }
  std::vector<std::thread> threads;
  for (Rank r : {0, 1})
    threads.emplace_back([&, r] {
      std::unique_ptr<Exchange> e;
      results[r] = tcp(port, 3)(r, &e);
      if (results[r].ok()) results[r] = meet(*e, r, 3, 2);
    });
  for (std::thread& t : threads) t.join();
  waitpid(child, nullptr, 0);
  for (Rank r : {0, 1}) {
    CHECK(results[r].code() == GCCL_ERR_PEER_LOST);
    CHECK_MESSAGE(has(results[r].text(), "rank 2 of 3 was lost"), results[r].text());
  }
  CHECK(seconds_since(begin) < 5);
}

TEST_CASE("TCP store: unlike lengths are a mismatch on every rank") {
  const std::uint16_t port = free_port();
  const auto results = in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    std::unique_ptr<Exchange> e;
    if (Status s = tcp(port, 3)(r, &e); !s.ok()) return s;
    Bytes all;
    return e->all_gather(Bytes(r == 2 ? 9 : 8), &all, 20000);
  });
  for (const Status& s : results) {
    CHECK(s.code() == GCCL_ERR_MISMATCH);
    CHECK(has(s.text(), "rank 2 contributed 9 bytes while rank 0 contributes 8"));
  }
}

TEST_CASE("TCP store: strangers who are silent, slow, rude or repeat others do not keep honest ranks apart") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  // What rank 1 of an earlier job said to its rank 0, recorded by one who sat in between.
  Bytes recorded;
  {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    const Fd a(ends[0]), b(ends[1]);
    Handshake dialling = Handshake::dial("s", tcp_store_hello(1, 6)), accepting = Handshake::accept("s");
    for (int i = 0; i < 6; ++i) {
      dialling.advance(a.get());
      std::byte buffer[1024];
      const ssize_t n = recv(b.get(), buffer, sizeof buffer, MSG_PEEK);
      if (n > 0) recorded.insert(recorded.end(), buffer, buffer + n);
      accepting.advance(b.get());
    }
    REQUIRE(accepting.advance(b.get()) == Handshake::State::done);
  }
  Status zero;
  std::atomic<bool> over = false;
  std::thread server([&] {
    std::unique_ptr<Exchange> e;
    zero = tcp(port, 6)(0, &e);
    if (zero.ok()) zero = meet(*e, 0, 6);
  });
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connected_to(port));  // more than rank 0 keeps
  const Fd rude = connected_to(port), replay = connected_to(port), slow = connected_to(port);
  const std::string garbage(100000, 'x');
  (void)!send(rude.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)!send(replay.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL);
  std::thread loris([&] {
    for (std::size_t i = 0; i < 40 && !over; ++i, pause_ms(20)) (void)!send(slow.get(), &recorded[i], 1, MSG_NOSIGNAL);
  });
  pause_ms(100);
  const auto begin = Clock::now();
  check_all_ok(in_threads(6, [&](Rank r, std::unique_ptr<Exchange>* e) { return r == 0 ? Status() : tcp(port, 6)(r, e); }));
  CHECK(seconds_since(begin) < 2);
  over = true;
  server.join();
  loris.join();
  CHECK_MESSAGE(zero.ok(), zero.text());
  const std::string log = errors.text();
  CHECK_MESSAGE(has(log, "too many connections"), log);
}

TEST_CASE("TCP store: garbage and replays are refused with a reason, silence with its deadline") {
  CapturedErrors errors;
  const std::uint16_t port = free_port();
  Status zero;
  std::thread server([&] {
    std::unique_ptr<Exchange> e;
    zero = tcp(port, 2)(0, &e);
    if (zero.ok()) zero = meet(*e, 0, 2, 1, 6500);
  });
  const Fd silent = connected_to(port), rude = connected_to(port), gone = connected_to(port);
  (void)!send(rude.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
  shutdown(gone.get(), SHUT_RDWR);
  server.join();
  CHECK(has(zero.text(), "rank 1 of 2 did not come"));
  const std::string log = errors.text();
  CHECK_MESSAGE(has(log, "not a GCCL handshake"), log);
  CHECK_MESSAGE(has(log, "did not introduce itself within 5 s"), log);
  CHECK_MESSAGE(has(log, "closed the connection"), log);
}

TEST_CASE("TCP store: without a secret only loopback will do") {
  for (const char* host : {"10.1.2.3", "0.0.0.0"})
    for (Rank r : {0, 1}) {
      std::unique_ptr<Exchange> e;
      Status s = open_tcp_store({{host, 29555}, r, 2, "", 1000}, &e);
      if (r == 1) s = meet(*e, 1, 2, 1, 300);
      CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
      CHECK_MESSAGE(has(s.text(), "set GCCL_SECRET"), s.text());
    }
}

TEST_CASE("TCP store: a port that is in use is waited for, and then told") {
  Fd other;
  REQUIRE(listen_on(SocketAddress::loopback(0), &other).ok());
  const std::uint16_t port = SocketAddress::local_end(other.get()).port();
  std::unique_ptr<Exchange> e;
  const Status s = open_tcp_store({{"127.0.0.1", port}, 0, 2, "", 100}, &e);
  CHECK(s.code() == GCCL_ERR_SYSTEM);
  CHECK_MESSAGE(has(s.text(), "Address already in use"), s.text());
  std::thread leaves([&] {
    pause_ms(150);
    other.reset();
  });
  CHECK(open_tcp_store({{"127.0.0.1", port}, 0, 2, "", 5000}, &e).ok());
  leaves.join();
}

TEST_CASE("file store: ranks of every number meet, and leave nothing behind") {
  Folder folder;
  for (Rank size : {1, 2, 3, 7, 32}) {
    check_all_ok(in_threads(size, files(folder.path / "store", size)));
    CHECK(folder.empty());
  }
  for (int i = 0; i < 50; ++i) {
    check_all_ok(in_threads(3, files(folder.path / "again", 3), 2));
    REQUIRE(folder.empty());
  }
}

TEST_CASE("file store: rounds at one path that overlap, and no descriptor stays open") {
  Folder folder;
  const std::size_t before = open_descriptors();
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    for (int i = 0; i < 100; ++i) {
      std::unique_ptr<Exchange> e;
      if (Status s = files(folder.path / "store", 3)(r, &e); !s.ok()) return s;
      if (Status s = meet(*e, r, 3, 1); !s.ok()) return s;
    }
    return Status();
  }));
  CHECK(open_descriptors() == before);
  CHECK(folder.empty());
}

TEST_CASE("file store: what killed jobs left behind confuses nobody") {
  Folder folder;
  const std::string prefix = folder.path / "store";
  for (int round = 0; round < 4; ++round) {
    // Four ranks of which some die before they meet, while they do, or afterwards.
    std::vector<pid_t> children;
    for (Rank r = 0; r < 4; ++r) {
      const pid_t child = fork();
      if (child == 0) {
        std::unique_ptr<Exchange> e;
        if (files(prefix, 4)(r, &e).ok() && !(round == 0 && r == 3)) (void)meet(*e, r, 4, 100000);
        pause_ms(10000);
        _exit(0);
      }
      children.push_back(child);
    }
    pause_ms(round == 0 ? 200 : 20 * round);
    for (const pid_t c : children) kill(c, SIGKILL), waitpid(c, nullptr, 0);
    CHECK(!folder.empty());
    if (round == 3) break;
    check_all_ok(in_threads(4, files(prefix, 4)));
  }
  check_all_ok(in_threads(3, files(prefix, 3)));  // and a job of another size
}

TEST_CASE("file store: who is missing is named") {
  Folder folder;
  std::vector<Status> results(8);
  std::vector<std::thread> threads;
  for (Rank r : {0, 1, 2, 4})
    threads.emplace_back([&, r] {
      std::unique_ptr<Exchange> e;
      results[r] = files(folder.path / "store", 8)(r, &e);
      if (results[r].ok()) results[r] = meet(*e, r, 8, 1, r == 2 ? 600 : 20000);
    });
  for (std::thread& t : threads) t.join();
  for (Rank r : {0, 1, 2, 4}) {
    CHECK(results[r].code() == GCCL_ERR_TIMEOUT);
    CHECK_MESSAGE(has(results[r].text(), "ranks 3, 5-7 of 8 did not come within 600 ms"), results[r].text());
  }
  CHECK(folder.empty());
  std::unique_ptr<Exchange> e;
  REQUIRE(files(folder.path / "store", 4)(2, &e).ok());
  CHECK(has(meet(*e, 2, 4, 1, 200).text(), "rank 2: ranks 0, 1, 3 of 4 did not come within 200 ms"));
}

TEST_CASE("file store: no folder, no rights, foreign things in the way") {
  Folder folder;
  std::unique_ptr<Exchange> e;
  const Status s = open_file_store({folder.path / "none" / "store", 0, 2}, &e);
  CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(has(s.text(), "No such file or directory"));
  CHECK(file_store_prefix(folder.path) == (folder.path / "gccl").string());
  CHECK(file_store_prefix(folder.path / "x") == (folder.path / "x").string());
  fs::create_directory(folder.path / "gccl.job");
  REQUIRE(open_file_store({folder.path / "gccl", 1, 2}, &e).ok());
  CHECK(has(meet(*e, 1, 2, 1, 300).text(), "expected a regular file"));
}

TEST_CASE("processes that share memory have one host, and it does not change") {
  CHECK(host_identity() == host_identity());
  CHECK(host_identity().size() > 36);
  const auto child = in_child([] {
    const std::string h = host_identity();
    return std::vector<char>(h.begin(), h.end());
  });
  CHECK(std::string(child.begin(), child.end()) == host_identity());
}

TEST_CASE("a job's place is private, and its own") {
  Folder folder;
  Identity i;
  Variables v{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"XDG_RUNTIME_DIR", folder.path.string()},
              {"OMPI_MCA_ess_base_jobid", "77"}, {"OMPI_MCA_orte_hnp_uri", "77.0;tcp://x"}};
  REQUIRE(identify(environment_of(v), -1, -1, &i).ok());
  std::string a, b;
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &a).ok());
  v["OMPI_COMM_WORLD_RANK"] = "1";
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &b).ok());
  CHECK(a == b);
  v["OMPI_MCA_ess_base_jobid"] = "78";
  REQUIRE(job_prefix(environment_of(v), *i.launcher, &b).ok());
  CHECK(a != b);
  const fs::path place = fs::path(a).parent_path();
  CHECK(place == folder.path / ("gccl-" + std::to_string(geteuid())));
  CHECK(fs::status(place).permissions() == fs::perms::owner_all);
  chmod(place.c_str(), 0755);
  CHECK(has(job_prefix(environment_of(v), *i.launcher, &a).text(), "chmod 700"));
  fs::remove(place);
  fs::create_symlink("/tmp", place);
  CHECK(!job_prefix(environment_of(v), *i.launcher, &a).ok());
}

namespace {

// begin() and a few rounds, in a process with these variables; what went wrong, or "".
std::string begin_with(const Variables& variables, GCCL_Config config = GCCL_CONFIG_INIT, int rank = -1) {
  const auto text = in_child([&] {
    clearenv();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    Start start;
    Status s = begin(&config, rank, &start);
    if (s.ok()) s = meet(*start.exchange, start.rank, start.size, 2, start.start_timeout_ms);
    const std::string t = s.ok() ? "" : std::to_string(s.code()) + " " + s.text();
    return std::vector<char>(t.begin(), t.end());
  });
  return {text.begin(), text.end()};
}

// The same for each rank of a job; `variables_of` gives them theirs.
template <class F>
std::vector<std::string> begin_all(Rank size, F variables_of) {
  std::vector<std::string> texts(size);
  std::vector<std::thread> threads;
  for (Rank r = 0; r < size; ++r) threads.emplace_back([&, r] { texts[r] = begin_with(variables_of(r)); });
  for (std::thread& t : threads) t.join();
  return texts;
}

}  // namespace

TEST_CASE("begin: every way to start a job, in real processes") {
  const auto n = [](auto x) { return std::to_string(x); };
  const std::vector<std::string> good(3);
  const std::uint16_t port = free_port();
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"GCCL_RANK", n(r)}, {"GCCL_SIZE", "3"}, {"GCCL_STORE", "tcp://localhost:" + n(port)}};
        }) == good);
  Folder folder;
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"GCCL_RANK", n(r)}, {"GCCL_SIZE", "3"}, {"GCCL_STORE", "file://" + folder.path.string()}, {"GCCL_SECRET", "s"}};
        }) == good);
  CHECK(folder.empty());
  CHECK(begin_all(3, [&](Rank r) {  // torchrun on one machine, known by a name that may mean anything
          return Variables{{"RANK", n(r)}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", n(r)}, {"LOCAL_WORLD_SIZE", "3"},
                           {"MASTER_ADDR", "no-such-host.invalid"}, {"MASTER_PORT", n(port)}};
        }) == good);
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"OMPI_COMM_WORLD_RANK", n(r)}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "12.1"}, {"XDG_RUNTIME_DIR", folder.path.string()}};
        }) == good);
  CHECK(begin_all(3, [&](Rank r) {
          return Variables{{"SLURM_PROCID", n(r)}, {"SLURM_NTASKS", "3"}, {"SLURM_LOCALID", n(r)}, {"SLURM_JOB_ID", "9"},
                           {"SLURM_STEP_ID", "0"}, {"SLURM_NNODES", "1"}, {"XDG_RUNTIME_DIR", folder.path.string()}};
        }) == good);
  CHECK(fs::is_empty(folder.path / ("gccl-" + n(geteuid()))));
  CHECK(begin_with({}) == "");
}

TEST_CASE("begin: what is missing or wrong is named") {
  const Variables pair{{"GCCL_RANK", "0"}, {"GCCL_SIZE", "2"}};
  const auto with = [&](const char* name, std::string value) {
    Variables v = pair;
    v[name] = std::move(value);
    return begin_with(v);
  };
  CHECK(has(begin_with(pair), "4 the job has 2 ranks and no place to meet: set GCCL_STORE"));
  for (const char* bad : {"localhost:1", "http://x:1", "tcp://", "tcp://host", "tcp://host:0", "tcp://:1", "file://x", "file:///", "file:/x"})
    CHECK_MESSAGE(has(with("GCCL_STORE", bad), "expected \"tcp://HOST:PORT\" or \"file:///PATH\""), bad);
  CHECK(has(with("GCCL_STORE", "tcp://10.1.2.3:4"), "set GCCL_SECRET"));
  CHECK(has(begin_with({{"GCCL_STORE", "tcp://localhost:1"}}), "set GCCL_RANK and GCCL_SIZE"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "MASTER_ADDR is not set"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}), "MASTER_PORT is not set"));
  CHECK(has(begin_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "65535"}}), "MASTER_PORT is \"65535\""));
  CHECK(has(begin_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}}), "several machines, started by SLURM: set GCCL_STORE"));
  CHECK(has(begin_with({{"GCCL_SECRET_FILE", "/no/such"}}), "GCCL_SECRET_FILE: secret file /no/such: No such file"));
}

TEST_CASE("begin: a configuration stands for itself, and the caller's all-gather for a store") {
  GCCL_Config c = GCCL_CONFIG_INIT;
  c.rank = 0, c.size = 2;
  static const auto copy_twice = [](const void* mine, void* all, size_t bytes, void* context) {
    for (size_t i = 0; i < 2; ++i) std::memcpy(static_cast<char*>(all) + i * bytes, mine, bytes);
    return *static_cast<int*>(context);
  };
  int result = 0;
  c.allgather = copy_twice, c.allgather_context = &result;
  Start start;
  REQUIRE(begin(&c, -1, &start).ok());
  Bytes all;
  CHECK(start.exchange->all_gather(Bytes(3, std::byte(7)), &all, 1000).ok());
  CHECK(all == Bytes(6, std::byte(7)));
  result = 5;
  CHECK(has(start.exchange->all_gather(Bytes(3), &all, 1000).text(), "returned 5, expected 0"));

  const std::uint16_t port = free_port();
  const std::string store = "tcp://127.0.0.1:" + std::to_string(port);
  check_all_ok(in_threads(4, [&](Rank r, std::unique_ptr<Exchange>* e) {  // ranks of one process
    GCCL_Config mine = GCCL_CONFIG_INIT;
    mine.size = 4, mine.store = store.c_str(), mine.secret = "k", mine.host = "one", mine.timeout_ms = 17;
    Start s;
    const Status status = begin(&mine, int(r), &s);
    if (status.ok() && (s.rank != r || s.size != 4 || s.secret != "k" || s.host != "one" || s.timeout_ms != 17))
      return Status::error("wrong start");
    *e = std::move(s.exchange);
    return status;
  }));
}
