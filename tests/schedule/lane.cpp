// Lane: when each step starts and combines, on a backend that completes what the test names.
#include "libgccl/schedule/lane.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace gccl;

namespace {

Region out(Count offset, Count count) { return {Buffer::output, offset, count}; }

// Takes its steps by value: the initializer_list would be gone when the schedule runs.
Schedule steps(std::vector<Step> list) {
  for (const Step& s : list) co_yield s;
}

// Writes down what it is asked: "s" a send, "r" a recv, "R" a recv_reduce, "c" a copy, "d" a reduce, then the peer or
// for local steps the offset written; "+" and the peer for a combine.
struct Script {
  std::string log;
  std::vector<Token> tokens;  // in the order of starts
  bool immediate_start = false;
  bool immediate_combine = false;
  bool sets_messages_aside = true;

  bool start(Lane<Script>&, Token t, const Step& s) {
    log += "srRcd"[std::size_t(s.op)] + std::to_string(s.local() ? s.to.offset() : s.peer) + " ";
    tokens.push_back(t);
    return immediate_start && s.op != Op::recv_reduce;
  }
  bool combine(Lane<Script>&, Token, const Step& s) {
    log += "+" + std::to_string(s.peer) + " ";
    return immediate_combine;
  }
  bool sets_aside(const Step&) const { return sets_messages_aside; }
  std::string taken() { return std::exchange(log, {}); }
};

static_assert(Backend<Script>);

}  // namespace

TEST_CASE("independent steps start in program order up to the window") {
  Script b;
  Lane<Script> lane(b, 7, steps({send(1, out(0, 4)), recv(2, out(4, 4)), send(3, out(8, 4)), send(4, out(0, 4))}), 2);
  CHECK(lane.id() == 7);
  lane.pump();
  CHECK(b.taken() == "s1 r2 ");
  REQUIRE(lane.blocked());
  CHECK(lane.blocked()->peer == 3);
  CHECK(std::popcount(lane.busy()) == 2);
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "s3 ");
  lane.complete(b.tokens[2]);
  CHECK(b.taken() == "s4 ");
  CHECK_FALSE(lane.done());
  lane.complete(b.tokens[0]);
  lane.complete(b.tokens[3]);
  CHECK(lane.done());
  CHECK(lane.busy() == 0);
  CHECK(b.taken().empty());
}

TEST_CASE("a window of one makes a lane sequential, one of 32 holds 32") {
  Script b;
  Lane<Script> one(b, 0, steps({send(1, out(0, 1)), send(2, out(1, 1))}), 1);
  one.pump();
  CHECK(b.taken() == "s1 ");
  one.complete(b.tokens[0]);
  CHECK(b.taken() == "s2 ");

  Script wide;
  Lane<Script> all(wide, 0, steps(std::vector<Step>(40, send(1, out(0, 1)))), kWindowMax);
  all.pump();
  CHECK(wide.tokens.size() == 32);
  CHECK(all.busy() == ~0u);
  for (std::size_t i = 0; i < 40; ++i) all.complete(wide.tokens[i]);
  CHECK(wide.tokens.size() == 40);
  CHECK(all.done());
}

TEST_CASE("steps that complete at once need no window and no callback") {
  Script b;
  b.immediate_start = true;
  Lane<Script> lane(b, 0, steps({send(1, out(0, 4)), copy(out(0, 4), out(4, 4)), recv(2, out(0, 4))}), 1);
  lane.pump();
  CHECK(b.taken() == "s1 c4 r2 ");
  CHECK(lane.done());
}

TEST_CASE("a step waits for an earlier one that writes what it reads") {
  Script b;
  Lane<Script> lane(b, 0, steps({recv(1, out(0, 4)), send(2, out(3, 2)), send(3, out(8, 1))}), 8);
  lane.pump();
  CHECK(b.taken() == "r1 ");  // and the third does not overtake the second
  lane.complete(b.tokens[0]);
  CHECK(b.taken() == "s2 s3 ");
}

TEST_CASE("a step waits for an earlier one that reads or writes what it writes") {
  for (const Step& earlier : {send(1, out(0, 4)), recv(1, out(0, 4)), copy(out(0, 4), out(20, 4)),
                              copy(out(20, 4), out(0, 4)), reduce(out(20, 4), out(0, 4))}) {
    for (const Step& later : {recv(2, out(3, 2)), copy(out(40, 2), out(2, 2)), reduce(out(40, 2), out(3, 2))}) {
      Script b;
      Lane<Script> lane(b, 0, steps({earlier, later}), 8);
      lane.pump();
      CHECK(b.tokens.size() == 1);
      lane.complete(b.tokens[0]);
      CHECK(b.tokens.size() == 2);
    }
  }
}

TEST_CASE("readers of one region run concurrently, and so do neighbours and other buffers") {
  Script b;
  Lane<Script> lane(b, 0,
                    steps({send(1, out(0, 4)), send(2, out(0, 4)), recv(3, out(4, 4)), recv(4, {Buffer::scratch, 0, 4}),
                           copy({Buffer::input, 0, 4}, out(8, 4))}),
                    8);
  lane.pump();
  CHECK(b.taken() == "s1 s2 r3 r4 c8 ");
}

TEST_CASE("a recv_reduce meets its message early and combines only when its regions are free") {
  Script b;
  Lane<Script> lane(b, 0, steps({send(1, out(0, 4)), recv_reduce(2, out(0, 4)), send(3, out(0, 4))}), 8);
  lane.pump();
  REQUIRE(b.taken() == "s1 R2 ");
  SUBCASE("message first") {
    lane.landed(b.tokens[1]);
    CHECK(b.taken().empty());
    lane.complete(b.tokens[0]);
    CHECK(b.taken() == "+2 ");
  }
  SUBCASE("send first") {
    lane.complete(b.tokens[0]);
    CHECK(b.taken().empty());
    lane.landed(b.tokens[1]);
    CHECK(b.taken() == "+2 ");
  }
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "s3 ");
  lane.complete(b.tokens[2]);
  CHECK(lane.done());
}

TEST_CASE("where nothing is set aside a recv_reduce waits for receives, but not for a send that reads its region") {
  Script b;
  b.sets_messages_aside = false;
  Lane<Script> lane(
      b, 0, steps({recv_reduce(1, out(0, 4)), send(2, out(8, 4)), recv_reduce(3, out(0, 4)), send(4, out(12, 4))}), 8);
  lane.pump();
  CHECK(b.taken() == "R1 s2 ");
  lane.complete(b.tokens[1]);
  CHECK(b.taken().empty());
  lane.complete(b.tokens[0]);
  CHECK(b.taken() == "R3 s4 ");

  // Recursive doubling: each of two ranks sends what it then adds to.
  Script exchange;
  exchange.sets_messages_aside = false;
  Lane<Script> both(exchange, 0, steps({send(1, out(0, 4)), recv_reduce(1, out(0, 4))}), 8);
  both.pump();
  CHECK(exchange.taken() == "s1 R1 ");
}

TEST_CASE("a chain of landed recv_reduces combines in program order, at once where the backend can") {
  for (const bool at_once : {false, true}) {
    Script b;
    b.immediate_combine = at_once;
    Lane<Script> lane(
        b, 0,
        steps({recv_reduce(1, out(0, 4)), recv_reduce(2, out(0, 4)), recv_reduce(3, out(2, 4)), send(4, out(2, 1))}),
        4);
    lane.pump();
    CHECK(b.taken() == "R1 R2 R3 ");
    lane.landed(b.tokens[2]);
    lane.landed(b.tokens[1]);
    CHECK(b.taken().empty());
    lane.landed(b.tokens[0]);
    if (!at_once) {
      CHECK(b.taken() == "+1 ");
      lane.complete(b.tokens[0]);
      CHECK(b.taken() == "+2 ");
      lane.complete(b.tokens[1]);
      CHECK(b.taken() == "+3 ");
      lane.complete(b.tokens[2]);
      CHECK(b.taken() == "s4 ");
    } else {
      CHECK(b.taken() == "+1 +2 +3 s4 ");
    }
    lane.complete(b.tokens[3]);
    CHECK(lane.done());
  }
}

TEST_CASE("a recv_reduce between two regions waits for readers of the target and writers of the source") {
  Script b;
  Lane<Script> lane(b, 0, steps({send(1, out(4, 4)), recv(2, out(0, 4)), recv_reduce(3, out(0, 4), out(4, 4))}), 8);
  lane.pump();
  CHECK(b.taken() == "s1 r2 R3 ");
  lane.landed(b.tokens[2]);
  lane.complete(b.tokens[0]);
  CHECK(b.taken().empty());
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "+3 ");
}

TEST_CASE("steps without any element are dropped, signals travel") {
  Script b;
  Lane<Script> lane(
      b, 0,
      steps({send(1, out(3, 0)), recv(2, out(0, 0)), recv_reduce(3, out(0, 0)), copy(out(0, 0), out(9, 0)),
             reduce(out(0, 0), out(9, 0)), copy(out(5, 2), out(5, 2)), signal(4), await(5)}),
      8);
  lane.pump();
  CHECK(b.taken() == "s4 r5 ");
  lane.complete(b.tokens[0]);
  CHECK_FALSE(lane.done());
  lane.complete(b.tokens[1]);
  CHECK(lane.done());
}

TEST_CASE("a signal waits for earlier awaits, an await for nothing") {
  Script b;
  Lane<Script> lane(b, 0, steps({signal(1), await(2), await(3), signal(4), await(5)}), 8);
  lane.pump();
  CHECK(b.taken() == "s1 r2 r3 ");
  lane.complete(b.tokens[2]);
  CHECK(b.taken().empty());
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "s4 r5 ");
}

TEST_CASE("an empty schedule is done at once, a default one too") {
  Script b;
  Lane<Script> a(b, 0, steps({}), 1), c(b, 0, Schedule{}, 1);
  CHECK_FALSE(a.done());
  a.pump();
  c.pump();
  CHECK(a.done());
  CHECK(c.done());
  CHECK(a.blocked() == nullptr);
}

namespace {

// What a step does to memory. The k-th step of the program receives the message k+1.
void apply(std::vector<std::uint64_t>& memory, const Step& s, std::uint64_t message) {
  for (Count i = 0; i < s.to.count; ++i) {
    std::uint64_t& to = memory[s.to.offset() + i];
    const std::uint64_t from = memory[s.from.offset() + i];
    switch (s.op) {
      case Op::recv: to = message; break;
      case Op::recv_reduce: to = from * 31 + message; break;  // unlike a sum, this shows the order
      case Op::copy: to = from; break;
      case Op::reduce: to = to * 31 + from; break;
      case Op::send:
      case Op::send_all:
      case Op::recv_reduce_all: break;
    }
  }
}

// Completes steps in random order and touches memory as late as it may.
struct Shuffled {
  std::mt19937 random;
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(64);
  std::uint32_t working = 0, receiving = 0;  // places whose regions are in use; recv_reduces without their message
  std::uint64_t started = 0, index[kWindowMax] = {};
  std::vector<Step> order{};

  bool begin(Lane<Shuffled>& lane, Token t, const Step& s) {
    for (std::uint32_t rest = working; rest; rest &= rest - 1)
      REQUIRE_FALSE(conflicts(s, lane.step(Token(std::countr_zero(rest)))));
    if (random() % 3 == 0) {
      apply(memory, s, index[t]);
      return true;
    }
    working |= 1u << t;
    return false;
  }
  bool start(Lane<Shuffled>& lane, Token t, const Step& s) {
    order.push_back(s);
    index[t] = ++started;
    if (s.op != Op::recv_reduce) return begin(lane, t, s);
    receiving |= 1u << t;
    return false;
  }
  bool combine(Lane<Shuffled>& lane, Token t, const Step& s) { return begin(lane, t, s); }
  void advance(Lane<Shuffled>& lane) {
    const std::uint32_t ready = working | receiving;
    REQUIRE(ready);
    Token t = random() % kWindowMax;
    while (!(ready >> t & 1)) t = (t + 1) % kWindowMax;
    if (receiving >> t & 1) {
      receiving &= ~(1u << t);
      lane.landed(t);
      return;
    }
    working &= ~(1u << t);
    apply(memory, lane.step(t), index[t]);
    lane.complete(t);
  }
};

}  // namespace

TEST_CASE("random schedules leave what program order leaves, whatever completes first") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<Step> list(60);
    for (Step& s : list) {
      const Region a = out(random() % 12, 1 + random() % 4), b = out(20 + random() % 12, a.count);
      switch (random() % 6) {
        case 0: s = send(1, a); break;
        case 1: s = recv(1, a); break;
        case 2: s = recv_reduce(1, a); break;
        case 3: s = recv_reduce(1, b, a); break;
        case 4: s = copy(a, b); break;
        default: s = reduce(b, a); break;
      }
    }
    Shuffled backend{random};
    const unsigned window = 1 + seed % kWindowMax, places = seed % 2 ? window : 1 + unsigned(random()) % window;
    Lane<Shuffled> lane(backend, 0, steps(list), window, places);
    lane.pump();
    while (!lane.done()) backend.advance(lane);

    std::vector<std::uint64_t> expected(64);
    for (std::size_t i = 0; i < list.size(); ++i) {
      REQUIRE(backend.order[i].op == list[i].op);
      REQUIRE(backend.order[i].to == list[i].to);
      apply(expected, list[i], i + 1);
    }
    CHECK(backend.memory == expected);
  }
}

TEST_CASE("a lane with memory for fewer steps than its window gets more as they start, and keeps those in flight") {
  for (const unsigned window : {1u, 3u, 8u, 31u, kWindowMax})
    for (unsigned places = 1; places <= window; ++places) {
      Script b;
      std::vector<Step> list;
      for (Rank r = 0; r < 40; ++r) list.push_back(send(r, out(4 * r, 4)));
      Lane<Script> lane(b, 0, steps(list), window, places);
      lane.pump();
      REQUIRE(b.tokens.size() == window);
      CHECK(unsigned(std::popcount(lane.busy())) == window);
      REQUIRE(lane.blocked());
      CHECK(lane.blocked()->peer == window);
      for (Rank r = 0; r < window; ++r) {
        CHECK(b.tokens[r] == r);
        CHECK(lane.step(r).peer == r);
        CHECK(lane.step(r).from == out(4 * r, 4));
      }
    }
}

TEST_CASE("a lane says which step's end lets the next one start") {
  Script b;
  Lane<Script> lane(b, 0,
                    steps({send(1, out(0, 4)), recv_reduce(2, out(4, 4)), send(3, out(4, 4)), recv(4, out(8, 4))}), 8);
  lane.pump();
  CHECK(b.taken() == "s1 R2 ");
  CHECK_FALSE(lane.moves_on(b.tokens[0]));
  CHECK(lane.moves_on(b.tokens[1]));
  lane.complete(b.tokens[0]);
  CHECK(b.taken() == "");
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "s3 r4 ");
  Lane<Script> early(b, 0, steps({send(1, out(0, 4)), recv_reduce(2, out(0, 4)), recv_reduce(3, out(0, 4))}), 2);
  early.pump();  // full: a recv_reduce needs a place alone
  CHECK(early.moves_on(b.tokens[4]));
  CHECK(early.moves_on(b.tokens[5]));
}

TEST_CASE("what waits for an earlier step still does when its lane has got more memory") {
  Script b;
  Lane<Script> lane(
      b, 0, steps({send(1, out(0, 4)), recv_reduce(2, out(0, 4)), recv(3, out(8, 4)), send(4, out(0, 4))}), 8, 2);
  lane.pump();
  CHECK(b.taken() == "s1 R2 r3 ");
  lane.landed(b.tokens[1]);
  CHECK(b.taken() == "");
  lane.complete(b.tokens[0]);
  CHECK(b.taken() == "+2 ");
  lane.complete(b.tokens[1]);
  CHECK(b.taken() == "s4 ");
}

TEST_CASE("an exception of the schedule comes out of pump") {
  const auto bad = []() -> Schedule {
    co_yield send(1, out(0, 1));
    throw std::runtime_error("bad table");
  };
  Script b;
  Lane<Script> lane(b, 0, bad(), 4);
  CHECK_THROWS_WITH_AS(lane.pump(), "bad table", std::runtime_error);
}
