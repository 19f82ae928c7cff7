// Processes that join a job and the member that admits them, below the communicator: who gets in, who learns why not,
// and what both do when the other goes away.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "libgccl/bootstrap/admission.hpp"
#include "libgccl/bootstrap/applicant.hpp"
#include "libgccl/net/socket.hpp"
#include "tests/bootstrap/stores.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

constexpr std::uint32_t kVersion = 702;
const Bytes kFits = Bytes(3000, std::byte(7));

JoinPlace place_of(const std::string& store, const std::string& secret = "s") {
  JoinPlace place;
  REQUIRE(JoinPlace::parse(store, secret, "127.0.0.1", &place).ok());
  return place;
}

Status fits(std::span<const std::byte> introduction) {
  return std::ranges::equal(introduction, kFits) ? Status() : Status::error("it differs", GCCL_ERR_INVALID_USAGE);
}
Status always() { return {}; }

std::vector<std::string> stores(const Folder& folder) {
  return {"file://" + (folder.path / "store").string(), "tcp://127.0.0.1:" + std::to_string(free_port())};
}

// A process that joins, in a thread.
class Asker {
 public:
  Asker(const std::string& store, std::function<Status(Applicant&, const Applicant::Admitted&)> then,
        std::uint32_t version = kVersion, Bytes introduction = kFits, const std::string& secret = "s",
        std::int64_t timeout_ms = 20000)
      : thread_([=, this] {
          Applicant a(place_of(store, secret), version, introduction, timeout_ms);
          Applicant::Admitted admitted;
          result_ = a.ask(&admitted);
          if (result_.ok()) result_ = then(a, admitted);
        }) {}
  ~Asker() {
    if (thread_.joinable()) thread_.join();
  }
  Status result() {
    thread_.join();
    return result_;
  }

 private:
  Status result_;
  std::thread thread_;
};

Status until_verdict(Applicant& a, Applicant::Verdict due) {
  Applicant::Verdict v = Applicant::Verdict::none;
  while ((v = a.verdict()) == Applicant::Verdict::none) pause_ms(1);
  return v == due ? Status() : Status::error("another verdict", GCCL_ERR_INTERNAL);
}

}  // namespace

TEST_CASE("two processes join a job of two, gather with it, and hear that all have done") {
  Folder folder;
  for (const std::string& store : stores(folder)) {
    const auto joins = [](Applicant& a, const Applicant::Admitted& as) {
      if (as.size != 4 || as.joined != std::vector<Rank>{1, 3}) return Status::error("other ranks", GCCL_ERR_INTERNAL);
      if (Status s = meet(a, as.rank, 4); !s.ok()) return s;
      return until_verdict(a, Applicant::Verdict::member);
    };
    Asker one(store, joins), two(store, joins);
    std::unique_ptr<Admission> gate;
    REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
    REQUIRE(gate->collect(2, 20000, fits, always).ok());
    REQUIRE(gate->count() == 2);
    const Rank ranks[] = {1, 3};
    REQUIRE(gate->admit(ranks, 4).ok());
    for (unsigned round = 0; round < 3; ++round) {  // as meet() does
      const std::size_t bytes = round == 1 ? 0 : 1 + 300 * round;
      Bytes theirs, all;
      REQUIRE(gate->gather(bytes, 20000, always, &theirs).ok());
      CHECK(std::ranges::equal(std::span(theirs).first(bytes), contribution(1, round, bytes)));
      CHECK(std::ranges::equal(std::span(theirs).subspan(bytes), contribution(3, round, bytes)));
      for (Rank r = 0; r < 4; ++r) {
        const Bytes one_of_all = contribution(r, round, bytes);
        all.insert(all.end(), one_of_all.begin(), one_of_all.end());
      }
      REQUIRE(gate->answer(all).ok());
    }
    CHECK(gate->all_there().ok());
    gate->confirm({});
    CHECK_MESSAGE(one.result().ok(), "one");
    CHECK_MESSAGE(two.result().ok(), "two");
    CHECK(!gate->lost());
    gate.reset();
    CHECK(folder.empty());
  }
}

TEST_CASE("a process of another version, secret or introduction learns so, and does not ask again") {
  Folder folder;
  const auto never = [](Applicant&, const Applicant::Admitted&) {
    return Status::error("admitted", GCCL_ERR_INTERNAL);
  };
  for (const std::string& store : stores(folder)) {
    Asker version(store, never, kVersion + 100), secret(store, never, kVersion, kFits, "another"),
        introduction(store, never, kVersion, Bytes(5));
    std::unique_ptr<Admission> gate;
    REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
    REQUIRE(gate->collect(1, 700, fits, always).ok());
    CHECK(gate->count() == 0);
    Status s = version.result();
    CHECK(s.code() == GCCL_ERR_INVALID_USAGE);
    CHECK_MESSAGE(has(s.text(), "this process runs GCCL 0.8.2, the members run 0.7.2: all need the same"), s.text());
    s = secret.result();
    CHECK(s.code() == GCCL_ERR_AUTHENTICATION);
    CHECK_MESSAGE(has(s.text(), "set the same GCCL_SECRET or GCCL_SECRET_FILE"), s.text());
    s = introduction.result();
    CHECK(s.code() == GCCL_ERR_INVALID_USAGE);
    CHECK_MESSAGE(has(s.text(), "it differs"), s.text());
  }
}

TEST_CASE("more processes than are wanted ask again, and get in the next time") {
  Folder folder;
  for (const std::string& store : stores(folder)) {
    const auto joins = [](Applicant& a, const Applicant::Admitted&) {
      return until_verdict(a, Applicant::Verdict::member);
    };
    Asker one(store, joins), two(store, joins), three(store, joins);
    for (Rank expected : {2, 1}) {
      std::unique_ptr<Admission> gate;
      REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
      REQUIRE(gate->collect(2, expected == 1 ? 1000 : 20000, fits, always).ok());
      CHECK(gate->count() == expected);
      const Rank ranks[] = {4, 5};
      REQUIRE(gate->admit(std::span(ranks).first(expected), 6).ok());
      gate->confirm({});
    }
    CHECK(one.result().ok());
    CHECK(two.result().ok());
    CHECK(three.result().ok());
  }
}

TEST_CASE("a process that goes away, or says nothing, is lost, and the others hear that they ask again") {
  Folder folder;
  const std::string store = stores(folder)[0];
  for (const bool silent : {false, true}) {
    std::atomic<bool> over{false};
    Asker stays(store, [](Applicant& a, const Applicant::Admitted& as) {
      Bytes all;
      const Status s = a.all_gather(contribution(as.rank, 0, 8), &all, 20000);
      return s.code() == GCCL_ERR_PEER_LOST ? Status() : Status::error("gathered", GCCL_ERR_INTERNAL);
    });
    Asker goes(store, [&](Applicant&, const Applicant::Admitted&) {
      while (silent && !over) pause_ms(1);
      return Status();
    });
    std::unique_ptr<Admission> gate;
    REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
    REQUIRE(gate->collect(2, 20000, fits, always).ok());
    const Rank ranks[] = {1, 2};
    REQUIRE(gate->admit(ranks, 3).ok());
    Bytes theirs;
    CHECK(gate->gather(8, silent ? 300 : 20000, always, &theirs).code() == GCCL_ERR_PEER_LOST);
    CHECK(gate->lost());
    gate->dismiss();
    over = true;
    CHECK(stays.result().ok());
  }
}

TEST_CASE("a member that goes on waiting for processes stops when it has to") {
  Folder folder;
  for (const std::string& store : stores(folder)) {
    std::unique_ptr<Admission> gate;
    REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
    int asked = 0;
    const auto began = Clock::now();
    const Status s = gate->collect(1, 20000, fits,
                                   [&] { return ++asked < 5 ? Status() : Status::error("enough", GCCL_ERR_ABORTED); });
    CHECK(s.text() == "enough");
    CHECK(seconds_since(began) < 5);
  }
}

TEST_CASE("what a killed member left behind at a file store keeps nobody from joining") {
  Folder folder;
  const std::string store = "file://" + (folder.path / "store").string();
  {
    Child killed([&] {
      std::unique_ptr<Admission> gate;
      if (!Admission::open(place_of(store), kVersion, &gate).ok()) return 1;
      pause_ms(20000);
      return 0;
    });
    while (!folder.files().contains("store.join")) pause_ms(1);  // it is written under another name, and renamed
  }
  CHECK(folder.files() == std::set<std::string>{"store.join"});
  Asker late(store,
             [](Applicant& a, const Applicant::Admitted&) { return until_verdict(a, Applicant::Verdict::member); });
  pause_ms(150);
  {
    std::unique_ptr<Admission> gate;
    REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
    REQUIRE(gate->collect(1, 20000, fits, always).ok());
    const Rank ranks[] = {1};
    REQUIRE(gate->admit(ranks, 2).ok());
    gate->confirm({});
  }
  CHECK(late.result().ok());
  CHECK(folder.empty());
}

// One that is stopped answers nothing, and listens on.
TEST_CASE("processes that wait at a member which is stopped go to the next one, whose place stays when that goes on") {
  Folder folder;
  const std::string store = "file://" + (folder.path / "store").string();
  std::atomic<bool> stopped{false}, goes_on{false};
  std::thread first([&] {
    std::unique_ptr<Admission> gate;
    if (!Admission::open(place_of(store), kVersion, &gate).ok()) return;
    (void)gate->collect(2, 20000, fits, [&] {
      if (gate->count() == 0) return Status();
      stopped = true;
      while (!goes_on) pause_ms(1);
      return Status::error("the others have gone on", GCCL_ERR_PEER_LOST);
    });
  });
  Asker asks(store,
             [](Applicant& a, const Applicant::Admitted&) { return until_verdict(a, Applicant::Verdict::member); });
  while (!stopped) pause_ms(1);
  const Rank ranks[] = {1};
  std::unique_ptr<Admission> second, third;
  REQUIRE(Admission::open(place_of(store), kVersion, &second).ok());
  REQUIRE(second->collect(1, 10000, fits, always).ok());
  CHECK(second->count() == 1);
  if (second->count() == 1 && second->admit(ranks, 2).ok()) second->confirm({});
  REQUIRE(Admission::open(place_of(store), kVersion, &third).ok());
  goes_on = true;
  first.join();
  CHECK(asks.result().ok());
  CHECK(folder.files() == std::set<std::string>{"store.join"});
  third.reset();
  CHECK(folder.empty());
}

TEST_CASE("addresses of the member that lead nowhere keep nobody from joining while it listens for short") {
  // A process that dials this one gets no answer: the queue is full.
  Fd full;
  REQUIRE(listen_on(SocketAddress::loopback(0), &full).ok());
  REQUIRE(::listen(full.get(), 0) == 0);
  const SocketAddress nowhere = SocketAddress::local_end(full.get());
  std::vector<Fd> queue(4);
  for (Fd& fd : queue) REQUIRE(dial(nowhere, &fd).ok());

  Folder folder;
  const std::string store = "file://" + (folder.path / "store").string(), file = (folder.path / "store.join").string();
  std::unique_ptr<Admission> gate;
  REQUIRE(Admission::open(place_of(store), kVersion, &gate).ok());
  std::ifstream in(file);
  std::string place{std::istreambuf_iterator<char>(in), {}};
  const auto wire = nowhere.wire();
  const std::string silent(reinterpret_cast<const char*>(wire.data()), wire.size());
  place.insert(place.size() - wire.size(), silent + silent + silent);
  std::ofstream(file) << place;

  Asker one(store,
            [](Applicant& a, const Applicant::Admitted&) { return until_verdict(a, Applicant::Verdict::member); });
  REQUIRE(gate->collect(1, Admission::kHearMs, fits, always).ok());
  REQUIRE(gate->count() == 1);
  const Rank ranks[] = {1};
  REQUIRE(gate->admit(ranks, 2).ok());
  gate->confirm({});
  CHECK(one.result().ok());
}

TEST_CASE("processes that ask while a job starts at a TCP store do not disturb it") {
  const std::uint16_t port = free_port();
  const std::string store = "tcp://127.0.0.1:" + std::to_string(port);
  Asker early(
      store, [](Applicant&, const Applicant::Admitted&) { return Status(); }, kVersion, kFits, "s", 1200);
  pause_ms(150);
  std::thread first([&] { CHECK(open_and_meet(tcp(port, 3), 0, 3).ok()); });
  pause_ms(400);  // it asks meanwhile
  std::thread second([&] { CHECK(open_and_meet(tcp(port, 3), 1, 3).ok()); });
  CHECK(open_and_meet(tcp(port, 3), 2, 3).ok());
  first.join();
  second.join();
  const Status s = early.result();
  CHECK(s.code() == GCCL_ERR_TIMEOUT);
  CHECK_MESSAGE(has(s.text(), "no member admitted this process within 1.2 s"), s.text());
}
