// The HTML report as text (tests/browser opens it as a page) and the trace, span by span.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "sim/engine/trace.hpp"
#include "sim/report/html.hpp"

using namespace gccl;
using namespace gccl::sim;
using nlohmann::json;

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find(to, begin + from.size());
  REQUIRE(end != std::string::npos);
  return text.substr(begin + from.size(), end - begin - from.size());
}

json data_of(const std::string& page) {
  return json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

json small_result(const std::string& name) {
  return {{"schema", "gccl/result/1"},
          {"ok", true},
          {"scenario", {{"name", name}, {"description", "two <b>runs</b> & more"}}},
          {"runs", json::array({{{"cluster", name}, {"algorithm", "ring"}, {"bytes", 8}, {"time_us", 1.5}}})}};
}

// Pairs of cards on nodes, no links: the trace asks for names and nodes only.
class Pairs : public Cluster {
 public:
  explicit Pairs(Card cards) : cards_(cards) {}
  std::string_view name() const override { return "pairs \"quoted\" \\ <x>"; }
  Card cards() const override { return cards_; }
  Rank nodes() const override { return (cards_ + 1) / 2; }
  Rank node_of(Card c) const override { return c / 2; }
  const Links& links() const override { return links_; }
  std::string link_name(LinkId) const override { return ""; }
  void route(Card, Card, std::vector<LinkId>& out) const override { out.clear(); }
  const CardCosts& costs(Card) const override { return costs_; }
  Count eager_bytes() const override { return 0; }
  Rank grid_columns() const override { return 0; }

 private:
  Card cards_;
  Links links_;
  CardCosts costs_;
};

struct Fixture {
  explicit Fixture(Rank ranks, std::size_t operations) : cluster(ranks) {
    workload.cluster = &cluster;
    for (Rank r = 0; r < ranks; ++r) workload.cards.push_back(ranks - 1 - r);  // a placement that is not the identity
    SimulatedOperation operation;
    operation.algorithm = find_algorithm(Collective::allreduce, "ring");
    operation.call.kind = Collective::allreduce;
    operation.layout = std::make_shared<Layout>(Layout::regular(ranks, 2));
    workload.operations.assign(operations, operation);
    workload.trace_ranks = ranks;
  }
  Pairs cluster;
  Workload workload;
  Outcome outcome;
};

// Whole nanoseconds from microseconds with three decimals, from the text itself: no rounding can hide.
Nanos nanos(const std::string& micros) {
  const std::size_t dot = micros.find('.');
  REQUIRE(dot != std::string::npos);
  REQUIRE(micros.size() == dot + 4);
  return std::stoll(micros.substr(0, dot)) * 1000 + std::stoll(micros.substr(dot + 1));
}

struct Event {
  std::uint64_t pid, tid;
  Nanos begin, end;
  std::string name;
  json args;
};

struct Trace {
  std::vector<Event> events;
  std::map<std::uint64_t, std::string> processes;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> threads;
  json about;
};

Trace read(const std::string& text) {
  Trace trace;
  for (const json& e : json::parse(text)) {
    const std::uint64_t pid = e.at("pid"), tid = e.at("tid");
    if (e.at("ph") == "M") {
      if (e.at("name") == "process_name") trace.processes[pid] = e.at("args").at("name");
      if (e.at("name") == "thread_name") trace.threads[{pid, tid}] = e.at("args").at("name");
      if (e.at("name") == "gccl_trace") trace.about = e.at("args");
      continue;
    }
    REQUIRE(e.at("ph") == "X");
    const auto ns = [](const json& us) { return Nanos(std::llround(us.get<double>() * 1000)); };
    trace.events.push_back({pid, tid, ns(e.at("ts")), ns(e.at("ts")) + ns(e.at("dur")), e.at("name"), e.at("args")});
  }
  return trace;
}

void check_rows(const Trace& trace) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Nanos> row_end;
  for (const Event& e : trace.events) {
    CHECK(e.pid >= 1);
    CHECK(e.tid >= 1);
    CHECK(trace.processes.count(e.pid) == 1);
    CHECK(trace.threads.count({e.pid, e.tid}) == 1);
    const auto [at, fresh] = row_end.try_emplace({e.pid, e.tid}, e.end);
    if (!fresh) CHECK(e.begin >= at->second);  // in order of time, and disjoint: nothing to nest
    at->second = e.end;
  }
}

}  // namespace

TEST_CASE("the page stands alone and carries the result unchanged") {
  const json result = small_result("first");
  const std::string page = html_report(result, {{"first", "<svg><text>a</text></svg>"}});
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("<title>first - GCCL report</title>") != std::string::npos);
  const json data = data_of(page);
  CHECK(data.at("result") == result);
  CHECK(data.at("topologies") == json{{{"cluster", "first"}, {"svg", "<svg><text>a</text></svg>"}}});
  CHECK(data.at("findings").at(0).at("headline") == "ring: 1.5 us.");
  CHECK(data.at("columns").at(0) == "index");
  CHECK(data.size() == 4);
  CHECK(page.find("https://") == std::string::npos);
  CHECK(occurrences(page, "http://") == occurrences(page, "\"http://www.w3.org/2000/svg\""));  // a name, never fetched
  for (const char* loads : {"<link", "@import", "url(", "<iframe", "src=\"", "fetch(", "XMLHttpRequest"}) {
    CHECK_MESSAGE(page.find(loads) == std::string::npos, loads);
  }
  for (const char* slot : {"@title@", "@style@", "@data@", "@script@"}) CHECK(page.find(slot) == std::string::npos);
}

TEST_CASE("no string of the result becomes markup") {
  for (const std::string name : {"</script><script>alert(1)", "<!--<script>", "</title><img src=x onerror=alert(1)>",
                                 "@script@ @data@", "\"'&<>\\", "\xe2\x80\xa8 line"}) {
    const json result = small_result(name);
    const std::string page = html_report(result, {{name, name}});
    CHECK(data_of(page).at("result") == result);
    CHECK(occurrences(page, "</script") == 2);
    CHECK(occurrences(page, "<script") == 2);
    CHECK(occurrences(page, "<!--") == 0);
    CHECK(occurrences(between(page, "<title>", "</title>"), "<") == 0);
    CHECK(occurrences(between(page, "id=\"data\">", "</script>"), "<") == 0);
  }
}

TEST_CASE("any document makes a page") {
  for (const json& result : {json(), json::object(), json::array(), json("text"), json{{"scenario", 3}},
                             json{{"scenario", {{"name", nullptr}}}}, json{{"runs", json::array()}}}) {
    const std::string page = html_report(result, {});
    CHECK(page.find("<title>GCCL report</title>") != std::string::npos);
    CHECK(data_of(page).at("result") == result);
  }
  // A label that turns the direction of text would turn the page's sentences.
  CHECK(data_of(html_report(small_result("l\u202el"), {})).at("result").at("scenario").at("name") == "l\ufffdl");
  CHECK(data_of(html_report(small_result("bad \xff byte"), {})).at("result").at("scenario").at("name") ==
        "bad \xef\xbf\xbd byte");
}

TEST_CASE("an outcome without spans is a valid trace that shows its operations") {
  Fixture f(4, 2);
  f.outcome.begin_ns = {0, 500};
  f.outcome.end_ns = {1001, 2000};
  f.outcome.spans_dropped = 77;
  const Trace trace = read(chrome_trace(f.workload, f.outcome));
  check_rows(trace);
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].tid != trace.events[1].tid);  // they overlap
  CHECK(trace.events[0].end == 1001);
  CHECK(trace.events[0].name == "allreduce ring #0");
  CHECK(trace.events[0].args.at("chunks") == 1);
  CHECK(trace.events[0].args.at("channels") == 1);
  CHECK(trace.about.at("spans") == 0);
  CHECK(trace.about.at("spans_dropped") == 77);
  CHECK(trace.processes.at(5).find(f.cluster.name()) != std::string::npos);
  CHECK(read(chrome_trace(Fixture(1, 0).workload, {})).events.empty());
}

TEST_CASE("every span is one event, exact to the nanosecond, and rows never overlap") {
  const std::uint64_t seed = 20240607;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Fixture f(5, 3);
  using Key = std::tuple<Rank, std::string, Rank, Count, Nanos, Nanos>;
  std::multiset<Key> expected;
  const char* names[] = {"send", "recv", "recv_reduce", "copy", "reduce"};
  for (int i = 0; i < 3000; ++i) {
    TraceSpan s{Rank(random() % 5),          std::uint32_t(random() % 3),
                std::uint32_t(random() % 2), Op(random() % 5),
                Rank(random() % 5),          random() % 5000,
                Nanos(random() % 100000),    0};
    if (random() % 50 == 0) s.begin += 3'600'000'000'000;  // an hour: exact in doubles all the same
    s.end = s.begin + Nanos(random() % 4 == 0 ? 0 : random() % 900);
    f.outcome.spans.push_back(s);
    const bool local = s.op == Op::copy || s.op == Op::reduce;
    expected.insert({s.rank, names[int(s.op)], local ? 99 : s.peer, s.bytes, s.begin, s.end});
  }
  const std::string text = chrome_trace(f.workload, f.outcome);
  const Trace trace = read(text);
  check_rows(trace);
  std::multiset<Key> found;
  for (const Event& e : trace.events) {
    const Rank peer = e.args.contains("peer") ? e.args.at("peer").get<Rank>() : 99;
    found.insert({Rank(e.pid - 1), e.args.at("op"), peer, e.args.at("bytes"), e.begin, e.end});
    CHECK(e.name.starts_with(e.args.at("op").get<std::string>()));
  }
  CHECK(found == expected);
  CHECK(trace.processes.at(4) == "rank 3 (node 0)");  // rank 3 sits on card 1
  CHECK(trace.about.at("spans") == 3000);
  std::set<std::string> channels;
  for (const auto& [at, thread] : trace.threads)
    if (const std::size_t word = thread.find(" channel "); word != thread.npos)
      channels.insert(thread.substr(word + 9, 1));
  CHECK(channels == std::set<std::string>{"0", "1"});

  // A lane takes as many threads as it has steps at once, no more.
  std::map<std::tuple<Rank, std::uint32_t, std::uint32_t>, std::vector<std::pair<Nanos, int>>> edges;
  for (const TraceSpan& s : f.outcome.spans) {
    if (s.begin == s.end) continue;
    auto& lane = edges[{s.rank, s.operation, s.lane}];
    lane.push_back({s.begin, +1});
    lane.push_back({s.end, -1});
  }
  std::size_t threads_max = 0;
  for (auto& [lane, list] : edges) {
    std::sort(list.begin(), list.end());  // an end sorts before a begin at the same time
    int now = 0, most = 0;
    for (const auto& edge : list) most = std::max(most, now += edge.second);
    threads_max += most + 1;  // one more for events of no length beside full rows
  }
  CHECK(trace.threads.size() <= threads_max + 1);

  std::shuffle(f.outcome.spans.begin(), f.outcome.spans.end(), random);
  CHECK(chrome_trace(f.workload, f.outcome).size() == text.size());
}

TEST_CASE("times are written with three decimals") {
  Fixture f(2, 1);
  f.outcome.spans = {{0, 0, 0, Op::send, 1, 8, 1'000'000'001, 1'000'000'008}, {1, 0, 0, Op::recv, 0, 8, 7, 1007}};
  const std::string text = chrome_trace(f.workload, f.outcome);
  std::vector<Nanos> found;
  for (std::size_t at = text.find("\"ts\":"); at != std::string::npos; at = text.find("\"ts\":", at + 1)) {
    found.push_back(nanos(text.substr(at + 5, text.find(',', at) - at - 5)));
    const std::size_t dur = text.find("\"dur\":", at);
    found.push_back(nanos(text.substr(dur + 6, text.find(',', dur) - dur - 6)));
  }
  CHECK(found == std::vector<Nanos>{1'000'000'001, 7, 7, 1000});
}
