// Random programs of calls: every rank derives the same sequence of operations from a seed, mixes blocking and
// non-blocking forms, waits in an order of its own, and checks every buffer in the end.
//
// GCCL_RANDOM_SEQUENCES sets how many (all jobs together), GCCL_RANDOM_SEED where they begin; both are printed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "tests/support/from_environment.hpp"
#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// A message between two ranks of a communicator, its contents derived from its number.
struct Message {
  std::vector<std::uint8_t> bytes;
  std::uint64_t number;
  bool arrives;
  Message(std::uint64_t n, std::size_t length, bool receiving)
      : bytes(length + 1, 0xc3), number(n), arrives(receiving) {
    if (!receiving) write();
  }
  std::uint8_t at(std::size_t i) const { return std::uint8_t(number * 41 + i * 7 + i / 256); }
  void write() {
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i) bytes[i] = at(i);
  }
  bool right() const {
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i)
      if (bytes[i] != at(i)) return false;
    return bytes.back() == 0xc3;
  }
};

// This thread is in GCCL_On_complete. The progress thread may run the callback before that has returned.
thread_local bool inside = false;
struct Completion {
  int times = 0;
  GCCL_Result result = GCCL_SUCCESS;
  bool early = false;  // from inside
};
void complete(GCCL_Result result, void* context) {
  auto& t = *static_cast<Completion*>(context);
  ++t.times;
  t.result = result;
  t.early |= inside;
}

// One sequence: some operations on some communicators, all complete in the end.
class Sequence {
 public:
  Sequence(std::uint64_t seed, GCCL_Comm world, int rank, int size)
      : shared_(seed), mine_(seed * 1000003 + std::uint64_t(rank)), rank_(rank), size_(size) {
    comms_.push_back({world, rank, size});
  }

  void run() {
    const std::uint64_t operations = 1 + shared_.below(8);
    if (shared_.below(8) == 0) split();
    for (std::uint64_t i = 0; i < operations && !any_reported(); ++i) {
      switch (shared_.below(8)) {
        case 0: exchange(); break;
        case 1: group(); break;
        default: collective(); break;
      }
      if (mine_.below(3) == 0) RANK_SUCCESS(GCCL_Progress());
      if (mine_.below(4) == 0) finish_some();
    }
    finish_all();
    for (; comms_.size() > 1; comms_.pop_back())
      if (comms_.back().comm) RANK_SUCCESS(GCCL_Comm_free(&comms_.back().comm));
  }

 private:
  struct Member {
    GCCL_Comm comm;
    int rank, size;
  };

  void split() {
    const int colors = 1 + int(shared_.below(2)), turn = shared_.below(2) ? -1 : 1;
    Member m{};
    RANK_SUCCESS(GCCL_Comm_split(comms_[0].comm, rank_ % colors, turn * rank_, &m.comm));
    if (!m.comm) return;
    RANK_SUCCESS(GCCL_Comm_rank(m.comm, &m.rank));
    RANK_SUCCESS(GCCL_Comm_size(m.comm, &m.size));
    comms_.push_back(m);
  }

  Member& any() { return comms_[shared_.below(comms_.size())]; }

  void collective() {
    Member& m = any();
    CallCase c = random_case(shared_, size_, 1 << 17);
    c.root %= m.size;
    const bool blocking = shared_.below(2) == 0, notified = mine_.below(4) == 0;
    calls_.push_back(std::make_unique<RankCall>(c, m.rank, m.size));
    if (blocking) {
      RANK_SUCCESS(calls_.back()->run(m.comm));
      return;
    }
    GCCL_Request request = GCCL_REQUEST_NULL;
    RANK_SUCCESS(calls_.back()->start(m.comm, &request));
    if (notified && request) {
      completions_.emplace_back();
      inside = true;
      RANK_SUCCESS(GCCL_On_complete(request, complete, &completions_.back()));
      inside = false;
    }
    requests_.push_back(request);
  }

  // Every rank to every rank of a communicator, itself too: several messages, started in an order of each rank's own.
  void exchange() {
    Member& m = any();
    struct Due {
      bool sends;
      int peer;
      std::uint64_t number;
      std::size_t length;
    };
    std::vector<std::deque<Due>> lines;  // of one peer and direction: these must be started in order
    const std::uint64_t base = shared_.next() >> 8;
    const std::uint64_t rounds = 1 + shared_.below(3);
    std::vector<std::size_t> lengths;
    for (std::uint64_t i = 0; i < rounds; ++i) lengths.push_back(shared_.below(40000) >> shared_.below(16));
    const auto pairs = std::uint64_t(m.size) * std::uint64_t(m.size);
    const auto length_of = [&](std::uint64_t round, std::uint64_t pair) { return lengths[round] + pair % 3; };
    for (int peer = 0; peer < m.size; ++peer)
      for (const bool sends : {true, false}) {
        lines.emplace_back();
        for (std::uint64_t i = 0; i < rounds; ++i) {
          const auto pair = std::uint64_t(sends ? m.rank * m.size + peer : peer * m.size + m.rank);
          lines.back().push_back({sends, peer, base + i * pairs + pair, length_of(i, pair)});
        }
      }
    for (std::size_t left = lines.size() * rounds; left > 0;) {
      std::deque<Due>& line = lines[mine_.below(lines.size())];
      if (line.empty()) continue;
      const Due due = line.front();
      line.pop_front();
      --left;
      messages_.emplace_back(due.number, due.length, !due.sends);
      std::vector<std::uint8_t>& bytes = messages_.back().bytes;
      GCCL_Request request = GCCL_REQUEST_NULL;
      if (due.sends) {
        RANK_SUCCESS(GCCL_Isend(bytes.data(), due.length, GCCL_UINT8, due.peer, m.comm, &request));
      } else {
        RANK_SUCCESS(GCCL_Irecv(bytes.data(), due.length, GCCL_UINT8, due.peer, m.comm, &request));
      }
      requests_.push_back(request);
    }
  }

  // A ring of blocking sends before receives, which only a group can carry out, and a collective with it.
  void group() {
    Member& m = any();
    const std::uint64_t base = shared_.next() >> 8;
    const std::size_t length = shared_.below(70000) >> shared_.below(16);
    const CallCase c = [&] {
      CallCase x = random_case(shared_, size_, 4096);
      x.root %= m.size;
      return x;
    }();
    const int next = (m.rank + 1) % m.size, before = (m.rank + m.size - 1) % m.size;
    messages_.emplace_back(base + std::uint64_t(m.rank), length, false);
    Message& out = messages_.back();
    messages_.emplace_back(base + std::uint64_t(before), length, true);
    Message& in = messages_.back();
    calls_.push_back(std::make_unique<RankCall>(c, m.rank, m.size));
    RANK_SUCCESS(GCCL_Group_start());
    RANK_SUCCESS(GCCL_Send(out.bytes.data(), length, GCCL_UINT8, next, m.comm));
    RANK_SUCCESS(GCCL_Group_start());
    RANK_SUCCESS(calls_.back()->run(m.comm));
    RANK_SUCCESS(GCCL_Group_end());
    RANK_SUCCESS(GCCL_Recv(in.bytes.data(), length, GCCL_UINT8, before, m.comm));
    RANK_SUCCESS(GCCL_Group_end());
  }

  // One look at a request of this rank's choice: no rank may wait for one in the middle of a sequence, as what it waits
  // for may need a later start elsewhere.
  void finish_some() {
    if (requests_.empty()) return;
    int done = 0;
    GCCL_Request& request = requests_[mine_.below(requests_.size())];
    if (mine_.below(4) == 0) {
      const GCCL_Result result = GCCL_Wait_for(&request, 0);
      RANK_CHECK(result == GCCL_SUCCESS || result == GCCL_IN_PROGRESS);
    } else {
      RANK_SUCCESS(GCCL_Test(&request, &done));
      RANK_CHECK(done == (request == GCCL_REQUEST_NULL));
    }
  }

  void finish_all() {
    if (mine_.below(2)) {
      RANK_SUCCESS(GCCL_Waitall(int(requests_.size()), requests_.data()));
    } else {
      while (!requests_.empty()) {
        const std::size_t i = mine_.below(requests_.size());
        std::swap(requests_[i], requests_.back());
        RANK_SUCCESS(GCCL_Wait(&requests_.back()));
        RANK_CHECK(requests_.back() == GCCL_REQUEST_NULL);
        requests_.pop_back();
      }
    }
    RANK_SUCCESS(GCCL_Progress());
    for (const auto& call : calls_)
      if (const std::string wrong = call->verify(); !wrong.empty()) report(wrong);
    for (const Message& m : messages_) RANK_CHECK(m.right());
    for (const Completion& t : completions_) {
      RANK_CHECK(t.times == 1);
      RANK_CHECK(t.result == GCCL_SUCCESS);
      RANK_CHECK(!t.early);
    }
  }

  Random shared_, mine_;
  int rank_, size_;
  std::vector<Member> comms_;
  std::vector<std::unique_ptr<RankCall>> calls_;
  std::vector<GCCL_Request> requests_;
  std::deque<Message> messages_;
  std::deque<Completion> completions_;
};

TEST_CASE("random sequences of operations do what the specification says") {
  const std::uint64_t total = gccl::test::from_environment("GCCL_RANDOM_SEQUENCES", 1500),
                      first = gccl::test::from_environment("GCCL_RANDOM_SEED", 1);
  MESSAGE("GCCL_RANDOM_SEQUENCES=" << total << " GCCL_RANDOM_SEED=" << first);
  const std::vector<Job> jobs = {
      {.size = 1, .backends = "shm"},
      {.size = 2, .backends = "shm"},
      {.size = 3, .backends = "shm", .environment = {{"GCCL_CHECK", "1"}}},
      {.size = 4, .backends = "shm"},
      {.size = 2, .backends = "tcp"},
      {.size = 5, .backends = "shm,tcp", .nodes = {0, 1, 0, 0, 1}},
      {.size = 3, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", "1"}}},
      {.size = 3, .backends = "shm", .environment = {{"GCCL_SHM_ZERO_COPY", "0"}}},
  };
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    Job job = jobs[j];
    job.limit_s = 240 + int(total / 20);
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      if (!world) return;
      for (std::uint64_t i = j; i < total && !any_reported(); i += jobs.size()) {
        Sequence(first + i, world, rank, job.size).run();
        if (any_reported()) report("in the sequence of seed " + std::to_string(first + i));
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
  }
}

}  // namespace
