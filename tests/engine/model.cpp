// The model engine against times worked out by hand.
#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <random>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/fabrics/star.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/engine/workload.hpp"
#include "sim/model/calendar.hpp"
#include "sim/model/network.hpp"

namespace model {

using namespace gccl;
using namespace gccl::sim;

// Rank 0 sends `count` elements to every other rank, in rank order.
Schedule fan_out(Call c, View v, Share s) {
  if (v.all.rank == 0)
    for (Rank r = 1; r < v.all.size; ++r) co_yield send(r, slice({Buffer::input, 0, c.count}, s));
  else
    co_yield recv(0, slice({Buffer::output, 0, c.count}, s));
}
// Every other rank sends to rank 0, which takes them in rank order.
Schedule fan_in(Call c, View v, Share) {
  if (v.all.rank != 0)
    co_yield send(0, {Buffer::input, 0, c.count});
  else
    for (Rank r = 1; r < v.all.size; ++r)
      co_yield recv(r, Region{Buffer::output, 0, c.count * v.all.size}.part(r, v.all.size));
}
Schedule reduce_to_zero(Call c, View v, Share) {
  const Region in{Buffer::input, 0, c.count}, out{Buffer::output, 0, c.count};
  if (v.all.rank != 0)
    co_yield send(0, in);
  else
    for (Rank r = 1; r < v.all.size; ++r) co_yield recv_reduce(r, r == 1 ? in : out, out);
}
Schedule local_copy(Call c, View, Share) { co_yield copy({Buffer::input, 0, c.count}, {Buffer::output, 0, c.count}); }
Schedule head_to_head(Call c, View v, Share) {
  co_yield recv(1 - v.all.rank, {Buffer::output, 0, c.count});
  co_yield send(1 - v.all.rank, {Buffer::output, 0, c.count});
}

const Algorithm kFanOut{.name = "fan_out", .kind = Collective::broadcast, .make = fan_out};
const Algorithm kFanIn{.name = "fan_in", .kind = Collective::gather, .make = fan_in};
const Algorithm kReduce{.name = "reduce_to_zero", .kind = Collective::reduce, .make = reduce_to_zero};
const Algorithm kCopy{.name = "local_copy", .kind = Collective::allreduce, .make = local_copy};
const Algorithm kStuck{.name = "head_to_head", .kind = Collective::allreduce, .make = head_to_head};

struct Play {
  Workload w;
  Play(const Cluster& cluster, const Algorithm& a, Rank ranks, Count count) {
    w.cluster = &cluster;
    w.cards.resize(cluster.cards());
    std::iota(w.cards.begin(), w.cards.end(), 0);
    add(a, ranks, count);
    w.streams = {{{0}}};
  }
  SimulatedOperation& add(const Algorithm& a, Rank ranks, Count count) {
    SimulatedOperation o;
    o.algorithm = &a;
    o.call = {.kind = a.kind, .count = count};
    o.layout = std::make_shared<Layout>(Layout::flat(ranks));
    if (ranks < w.cards.size())
      for (Rank r = 0; r < ranks; ++r) o.members.push_back(r);
    o.element_bytes = 1;
    w.operations.push_back(o);
    return w.operations.back();
  }
  Outcome run() { return run_model(w); }
};

TEST_CASE("a lone message takes overhead, latencies and bytes over bandwidth") {
  const Star star(2, 10, 500, {.overhead_ns = 200});
  const Outcome out = Play(star, kFanOut, 2, 1000).run();
  CHECK(out.time_ns == 200 + 2 * 500 + 100);
  CHECK(out.messages == 1);
  CHECK(out.bytes == 1000);
  CHECK(out.link_bytes == std::vector<std::uint64_t>{1000, 0, 0, 1000});
}

TEST_CASE("messages leave a port one after the other") {
  const Star star(5, 10, 500, {.overhead_ns = 200});
  CHECK(Play(star, kFanOut, 5, 10000).run().time_ns == 200 + 1000 + 4 * 1000);  // bandwidth-bound
  CHECK(Play(star, kFanOut, 5, 100).run().time_ns == 4 * 200 + 1000 + 10);      // overhead-bound
}

TEST_CASE("messages into one port queue there") {
  const Star star(5, 10, 500, {.overhead_ns = 200});
  CHECK(Play(star, kFanIn, 5, 10000).run().time_ns == 200 + 1000 + 4 * 1000);
}

TEST_CASE("arrived messages keep the receiving card busy, one after the other") {
  const Star star(5, 10, 500, {.overhead_ns = 200, .receive_overhead_ns = 300});
  CHECK(Play(star, kFanOut, 2, 100).run().time_ns == 200 + 1000 + 10 + 300);
  CHECK(Play(star, kFanIn, 5, 100).run().time_ns == 200 + 1000 + 10 + 4 * 300);
  CHECK(Play(star, kFanIn, 5, 10000).run().time_ns == 200 + 1000 + 4 * 1000 + 300);
}

TEST_CASE("a short message passes a long one, and long ones take turns") {
  const Star star(2, 10, 500);
  const auto concurrent = [&](Count first, Count second) {
    Play p(star, kFanOut, 2, first);
    p.add(kFanOut, 2, second);
    p.w.streams = {{{0}}, {{1}}};
    return p.run().end_ns;
  };
  const auto bulk = concurrent(10'000'000, 8);  // 1 ms
  CHECK(bulk[1] <= 1000 + 10);
  CHECK(bulk[0] >= 1'001'000);
  CHECK(bulk[0] <= 1'001'010);
  const auto equal = concurrent(10'000'000, 10'000'000);
  for (const Nanos end : equal) CHECK(end >= 1'800'000);
  CHECK(std::max(equal[0], equal[1]) == doctest::Approx(2'001'000).epsilon(0.001));
  const auto different = concurrent(100'000'000, 1'000'000);  // 10 ms, 0.1 ms
  CHECK(different[1] <= 260'000);
  CHECK(different[0] == doctest::Approx(10'101'000).epsilon(0.001));
}

TEST_CASE(
    "a message beyond 8 GiB takes turns in 2048 pieces, whatever has passed concurrently; a shorter one in 4 MiB") {
  const Star star(2, 1, 0);  // a byte takes 1 ns
  const auto ends = [&](Count bytes, Count third) {
    Play p(star, kFanOut, 2, bytes);
    p.add(kFanOut, 2, bytes);
    p.w.streams = {{{0}}, {{1}}};
    if (third > 0) p.add(kFanOut, 2, third), p.w.streams.push_back({{2}});
    return p.run().end_ns;
  };
  // Two of one length end a piece after each other, less the 128 KiB that the first keeps when the second comes.
  constexpr Count kGiB = Count(1) << 30, kPieceMin = Count(128) << 10, kPieceMax = Count(4) << 20;
  for (const Count bytes : {kGiB, 8 * kGiB}) {
    const auto both = ends(bytes, 0);
    CHECK(std::max(both[0], both[1]) == Nanos(2 * bytes));
    CHECK(std::min(both[0], both[1]) == Nanos(2 * bytes - kPieceMax + kPieceMin));
  }
  for (const Count bytes : {64 * kGiB, 8192 * kGiB}) {
    const auto both = ends(bytes, 0);
    CHECK(std::max(both[0], both[1]) == Nanos(2 * bytes));
    CHECK(std::min(both[0], both[1]) == Nanos(2 * bytes - bytes / 2048 + kPieceMin));
    const auto all = ends(bytes, 200'000);
    CHECK(std::max(all[0], all[1]) == Nanos(2 * bytes + 200'000));
    CHECK(all[2] < Nanos(bytes / 256));
  }
}

// By hand, for rank 0 that sends 1000 bytes to each other rank over ports of 10 GB/s: overhead 200, two links of 500.
TEST_CASE("a protocol adds a launch and latencies, makes messages longer and bounds what a channel sends") {
  const Star star(3, 10, 500, {.overhead_ns = 200});
  const auto took = [&](const Protocol& p, Count count, Count lanes) {
    Play play(star, kFanOut, 3, count);
    play.w.operations[0].protocol = &p;
    play.w.operations[0].shares = play.w.operations[0].lanes = lanes;
    return play.run();
  };
  const Nanos plain = 200 + 2 * 500 + 2 * 100;  // the second message behind the first one's overhead and bytes
  CHECK(took({.name = "none"}, 1000, 1).time_ns == plain + 100);
  CHECK(took({.operation_ns = 5000}, 1000, 1).time_ns == 5000 + plain + 100);
  CHECK(took({.inside = {.latency_ns = 700}, .network = {.latency_ns = 9999}}, 1000, 1).time_ns == plain + 100 + 700);
  const Outcome half = took({.inside = {.efficiency = 0.5}}, 1000, 1);
  CHECK(half.time_ns == 200 + 2 * 500 + 2 * 200);
  CHECK(half.bytes == 2000);
  CHECK(half.link_bytes[0] == 4000);
  // 2 GB/s: 500 ns each, one after the other in one channel. In two, the second one begins behind three overheads.
  CHECK(took({.channel_GBps = 2}, 1000, 1).time_ns == 200 + 2 * 500 + 2 * 500);
  CHECK(took({.channel_GBps = 2}, 2000, 2).time_ns == 3 * 200 + 500 + 2 * 500 + 500);
  // Long messages pass a port in turns: 1 MiB at 2 GB/s.
  CHECK(took({.channel_GBps = 2}, 1 << 20, 1).time_ns == 200 + 2 * 500 + 2 * (1 << 19));
}

// By hand, for 1000 bytes that rank 1 sends to rank 0, which adds them: overhead 200, two links of 500, 100 of bytes.
TEST_CASE("a protocol bounds what a rank reduces, a straggler's in proportion, and the closed form knows it") {
  const auto took = [&](double card_GBps, double protocol_GBps, double slowdown = 1) {
    const Star star(2, 10, 500, {.overhead_ns = 200, .combine_GBps = card_GBps});
    const Protocol p{.name = "p", .combine_GBps = protocol_GBps};
    Play play(star, kReduce, 2, 1000);
    play.w.operations[0].protocol = &p;
    if (slowdown > 1) play.w.stragglers.push_back({.rank = 0, .slowdown = slowdown});
    const Nanos time = play.run().time_ns;
    const CostModel model = cost_model(star, {0, 1}, 1, p);
    if (slowdown == 1) CHECK(model.combine(1000) == doctest::Approx(double(time - 1300)));
    return time;
  };
  CHECK(took(0, 0) == 1300);  // free
  CHECK(took(4, 0) == 1300 + 250);
  CHECK(took(4, 2) == 1300 + 500);
  CHECK(took(2, 4) == 1300 + 500);
  CHECK(took(0, 2) == 1300 + 500);
  CHECK(took(4, 2, 3) == 1300 + 3 * 500);
}

TEST_CASE("a protocol distinguishes messages inside a node from those between nodes, and every operation is launched") {
  const auto nodes = parse_cluster(
      R"({"schema": "gccl/cluster/1", "name": "n", "parameters": {"card": {"overhead_ns": 10, "combine_GBps": 0,
      "copy_GBps": 0}, "eager_bytes": "1GiB", "links": {"l": {"bandwidth_GBps": 1, "latency_ns": 100}},
      "protocols": {"slow": {"operation_ns": "4us", "inside": {"latency_ns": 7}, "network": {"latency_ns": "50us",
      "efficiency": 0.25}}}},
      "nodes": [{"count": 2, "cards": 2, "inside": {"kind": "switch", "link": "l"}, "nics": {"count": 2, "bus": "l", "port": "l"}}],
      "fabric": {"kind": "switch"}})",
      "n");
  Play play(*nodes, kFanOut, 4, 40);
  play.w.cards = {0, 2};  // on two nodes
  play.w.operations[0].layout = std::make_shared<Layout>(Layout::flat(2));
  play.w.operations[0].members.clear();
  play.w.operations[0].protocol = &nodes->protocols()[0];
  CHECK(nodes->protocols()[0].name == "slow");
  CHECK(play.run().time_ns == 4000 + 10 + 50000 + 4 * 100 + 160);
  play.w.cards = {0, 1};
  CHECK(play.run().time_ns == 4000 + 10 + 7 + 2 * 100 + 40);
  // The second operation is launched where the first one ends for a rank; the sender is through when it has arrived.
  play.w.operations.push_back(play.w.operations[0]);
  play.w.streams = {{{0}, {1}}};
  const Outcome both = play.run();
  CHECK(both.time_ns == 2 * (4000 + 10 + 7 + 2 * 100 + 40));
  CHECK(both.begin_ns[1] == both.end_ns[0]);
}

TEST_CASE("time that does not fit is an error") {
  const Star slow(2, 1e-6, 500);
  Play p(slow, kFanOut, 2, Count(1) << 50);  // 1 PiB over 1 KB/s
  CHECK_THROWS_AS(p.run(), TimeOverflow);
}

TEST_CASE("cards whose messages start after the end of time are an error") {
  // Each start is apart from the one before by 2^59 ns; a sum of the window's would leave 64 bits.
  const Star lazy(40, 10, 500, {.overhead_ns = Nanos(1) << 59});
  Play p(lazy, kFanOut, 40, 1 << 20);
  CHECK_THROWS_AS(p.run(), TimeOverflow);
}

TEST_CASE("bytes that do not fit are an error") {
  const Star fast(17000, 1e6, 500);
  Play p(fast, *find_algorithm(Collective::broadcast, "binomial"), 17000, Count(1) << 50);  // 1 PiB each
  CHECK_THROWS_AS(p.run(), BytesOverflow);
}

TEST_CASE("combining and copying keep the card's unit busy") {
  const Star star(3, 10, 500, {.combine_GBps = 5, .copy_GBps = 20});
  // Both messages share the way in; the first is combined while the second arrives.
  CHECK(Play(star, kReduce, 3, 1000).run().time_ns == 1000 + 100 + 200 + 200);
  CHECK(Play(star, kCopy, 1, 1000).run().time_ns == 50);
}

TEST_CASE("a message above eager_bytes waits for its receive") {
  const Star eager(2, 10, 500), strict(2, 10, 500, {}, 100);
  for (const auto& [cluster, expected] : {std::pair(&eager, 5000), std::pair(&strict, 5000 + 1000 + 100)}) {
    Play p(*cluster, kFanOut, 2, 1000);
    p.w.stragglers = {{.rank = 1, .start_ns = 5000}};
    CHECK(p.run().time_ns == expected);
  }
}

TEST_CASE("a straggler's overhead and combining are slowed") {
  const Star star(2, 10, 500, {.overhead_ns = 200, .combine_GBps = 5});
  Play p(star, kReduce, 2, 1000);
  p.w.stragglers = {{.rank = 0, .slowdown = 3}};
  CHECK(p.run().time_ns == 200 + 1000 + 100 + 3 * 200);
  p.w.stragglers = {{.rank = 1, .slowdown = 3}};
  CHECK(p.run().time_ns == 3 * 200 + 1000 + 100 + 200);
}

TEST_CASE("lanes of a rank share its ports, and shares cut the message") {
  const Star star(2, 10, 500, {.overhead_ns = 200});
  Play p(star, kFanOut, 2, 10000);
  p.w.operations[0].shares = 4;
  p.w.operations[0].lanes = 2;
  const Outcome out = p.run();
  CHECK(out.messages == 4);
  CHECK(out.time_ns == 200 + 1000 + 4 * 250);  // the port is the limit: starts every 200 ns keep it busy
}

TEST_CASE("a rank goes on to its next operation when its own part is done") {
  const Star star(3, 10, 500);
  Play p(star, kFanOut, 3, 1000);
  p.add(kFanOut, 2, 1000);
  p.w.streams = {{{0}, {1}}};
  const Outcome out = p.run();
  // Rank 0's sends end at 1100 and 1200, then it sends again; rank 1 was through at 1100.
  CHECK(out.end_ns == std::vector<Nanos>{1200, 2300});
  CHECK(out.begin_ns == std::vector<Nanos>{0, 1100});
}

TEST_CASE("streams run concurrently and share ports") {
  const Star star(2, 10, 500);
  Play p(star, kFanOut, 2, 1000);
  p.add(kFanOut, 2, 1000);
  p.w.streams = {{{0}}, {{1}}};
  CHECK(p.run().end_ns == std::vector<Nanos>{1100, 1200});
}

TEST_CASE("a schedule that cannot go on is an error that names rank and step") {
  const Star star(2, 10, 500);
  Play p(star, kStuck, 2, 8);
  CHECK_THROWS_WITH_AS(
      p.run(), "allreduce head_to_head cannot go on: rank 0, channel 0 waits in recv from rank 1 (8 elements) at 0 ns",
      std::runtime_error);
}

TEST_CASE("long messages with a window of 1 are refused where each waits for the other's receive") {
  const Star star(2, 10, 500, {}, 100);
  const Algorithm& ring = *find_algorithm(Collective::allreduce, "ring");
  Play p(star, ring, 2, 400);  // parts of 200 bytes
  p.w.operations[0].window = 1;
  CHECK_THROWS_WITH_AS(p.run(),
                       "allreduce ring cannot go on: rank 0, channel 0 waits in send to rank 1 (200 elements) at 0 ns; "
                       "messages above the cluster's eager_bytes, 100, wait for their receive, and with a window of 1 "
                       "that comes after the send: take a window of 2 or more",
                       WorkloadError);
  p.w.operations[0].window = 2;
  CHECK(p.run().messages == 4);
  Play eager(star, ring, 2, 200);
  eager.w.operations[0].window = 1;
  CHECK(eager.run().messages == 4);
}

TEST_CASE("payload is carried, checked and found wrong where it is wrong") {
  const Star star(7, 10, 500, {.overhead_ns = 20, .combine_GBps = 30});
  Play p(star, *find_algorithm(Collective::allreduce, "ring"), 7, 23);
  p.w.payload = true;
  p.w.operations[0].shares = 3;
  p.w.operations[0].lanes = 2;
  CHECK(p.run().wrong == 0);
  Play planted(star, kCopy, 7, 23);  // an all-reduce that only copies
  planted.w.payload = true;
  const Outcome out = planted.run();
  CHECK(out.wrong == 7 * 23);
  CHECK(out.first_wrong.starts_with("operation 0 (allreduce local_copy), rank 0, element 0: found"));
}

TEST_CASE("the order in which ranks are started does not change a nanosecond") {
  const Star star(12, 10, 500, {.overhead_ns = 20, .combine_GBps = 30});
  for (const char* name : {"ring"}) {
    Play p(star, *find_algorithm(Collective::allreduce, name), 12, 1000);
    p.w.operations[0].shares = 5;
    p.w.operations[0].lanes = 3;
    const Nanos first = p.run().time_ns;
    for (p.w.seed = 2; p.w.seed < 12; ++p.w.seed) CHECK(p.run().time_ns == first);
  }
}

TEST_CASE("spans are recorded for the traced ranks and dropped beyond the bound") {
  const Star star(4, 10, 500);
  Play p(star, kFanOut, 4, 1000);
  p.w.trace_ranks = 2;
  Outcome out = p.run();
  REQUIRE(out.spans.size() == 4);  // three sends of rank 0, one receive of rank 1
  for (const TraceSpan& s : out.spans) {
    CHECK(s.rank < 2);
    CHECK(s.begin == 0);
    CHECK(s.end >= 1100);
    CHECK(s.bytes == 1000);
  }
  p.w.trace_spans_max = 1;
  out = p.run();
  CHECK(out.spans.size() == 1);
  CHECK(out.spans_dropped == 3);
}

// Each link carries 10 bytes a nanosecond, so those into one card need a tenth of their bytes, and their two latencies.
TEST_CASE(
    "a link carries no more than it can where short messages pass long ones, and the next long one pays for none") {
  const Star star(5, 10, 1000);
  constexpr Count kShort = 128 << 10, kLong = 256 << 10;
  // When the messages that `more` and these send have arrived, by id.
  const auto arrivals = [&](const std::vector<Message>& first, const std::map<EventId, Message>& more) {
    ModelNetwork network(star);
    for (const Message& m : first) network.send(m);
    for (const auto& [id, m] : more) network.wake(id, m.at);
    std::map<EventId, Nanos> at;
    std::vector<EventId> due;
    while (network.next(due)) {
      for (const EventId id : due) {
        at[id] = network.now();
        if (const auto m = more.find(id); m != more.end()) network.send(m->second);
      }
      due.clear();
    }
    return at;
  };
  const auto message = [](EventId id, Card from, Count bytes, Nanos at) {
    return Message{
        .id = id, .from = from, .to = 4, .lane = from, .bytes = bytes, .at = at, .receive_ns = 0, .least_ns = 0};
  };
  // One that is booked for later, before the long one comes.
  auto at = arrivals({message(1, 1, kShort, 20000), message(2, 0, kLong, 0)}, {});
  CHECK(std::max(at[1], at[2]) >= Nanos(kShort / 10 + kLong / 10 + 2000));
  // One that passes two that take turns; and one that comes when all is over.
  at = arrivals({message(1, 0, kLong, 0), message(2, 1, kLong, 0)},
                {{10, message(3, 2, kShort, 30000)}, {11, message(4, 3, kLong, 1000000)}});
  CHECK(std::max({at[1], at[2], at[3]}) >= Nanos(kShort / 10 + 2 * (kLong / 10) + 2000));
  CHECK(at[4] == 1000000 + Nanos(kLong / 10) + 2000);
}

TEST_CASE("messages of one instant are booked in the order of their sends, however many there are") {
  constexpr Card kCards = 50;
  const Star star(kCards + 1, 10, 500);  // 100 bytes take 10 ns
  std::mt19937 random(3);
  for (const Card many : {1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, kCards}) {
    CAPTURE(many);
    ModelNetwork network(star);
    Nanos free = 500, sent = 0;  // when the last card's port can take the next message
    for (int round = 0; round < 3; ++round) {
      std::vector<Card> order(many);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::pair<Nanos, EventId>> expected;
      free = std::max(free, sent + 500);
      for (const Card from : order) {
        const Count bytes = 100 * (1 + random() % 5);
        network.send({.id = from,
                      .from = from,
                      .to = kCards,
                      .lane = from,
                      .bytes = bytes,
                      .at = sent,
                      .receive_ns = 0,
                      .least_ns = 0});
        // Its head is at that port 500 ns after its start, and its end leaves its own port bytes / 10 later.
        expected.emplace_back((free += Nanos(bytes / 10)) + 500, from);
      }
      std::vector<EventId> due;
      for (const auto& [at, id] : expected) {
        due.clear();
        REQUIRE(network.next(due));
        CHECK(network.now() == at);
        CHECK(due == std::vector<EventId>{id});
      }
      sent = network.now();
    }
    std::vector<EventId> due;
    CHECK_FALSE(network.next(due));
  }
}

TEST_CASE("the calendar yields every event once, by time and then by order of arrival") {
  std::mt19937_64 random(7);
  Calendar calendar;
  std::vector<std::pair<Nanos, EventId>> pushed;
  EventId id = 0;
  std::vector<EventId> due, own;
  std::size_t popped = 0;
  std::vector<Nanos> time_of;
  for (int round = 0; round < 5000; ++round) {
    for (int k = int(random() % 4); k > 0 || id == 0; --k) {
      const Nanos at = calendar.now() + Nanos(random() % (random() % 3 ? 50 : 1000000000));
      calendar.push(at, id++);
      time_of.push_back(at);
    }
    due.clear();
    const Nanos before = calendar.now();
    if (!calendar.pop(due, own)) continue;
    CHECK(calendar.now() >= before);
    CHECK(std::is_sorted(due.begin(), due.end()));
    for (EventId e : due) CHECK(time_of[e] == calendar.now());
    popped += due.size();
  }
  while (due.clear(), calendar.pop(due, own)) popped += due.size();
  CHECK(popped == id);
}

TEST_CASE("thousands of events of an instant come in the order of their pushing, the network's own apart") {
  std::mt19937_64 random(11);
  Calendar calendar;
  std::map<Nanos, std::pair<std::vector<EventId>, std::vector<EventId>>> expected;
  std::vector<EventId> due, own;
  EventId id = 0;
  for (int round = 0; round < 300; ++round) {
    const Nanos far = Nanos(1) << random() % 30;
    for (std::uint64_t k = random() % 3 ? 0 : random() % 4000; k > 0; --k) {
      const Nanos at = calendar.now() + Nanos(random() % 3) * far;
      const bool its_own = random() % 4 == 0;
      (its_own ? expected[at].second : expected[at].first).push_back(id);
      calendar.push(at, id++, its_own);
    }
    due.clear();
    own.clear();
    REQUIRE(calendar.pop(due, own) == !expected.empty());
    if (expected.empty()) continue;
    REQUIRE(calendar.now() == expected.begin()->first);
    CHECK(due == expected.begin()->second.first);
    CHECK(own == expected.begin()->second.second);
    expected.erase(expected.begin());
  }
  CHECK(id > 100000);
}

}  // namespace model
