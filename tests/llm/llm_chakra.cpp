// Chakra traces as steps: what is recorded is played, and what is not known is said.
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "libgccl/base/splitmix.hpp"
#include "sim/llm/chakra.hpp"
#include "tests/llm/llm_support.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using doctest::Approx;
using Json = nlohmann::json;

namespace {

// The wire format, from its specification: a field's number and kind, then its value.
std::string varint(std::uint64_t n) {
  std::string out;
  for (; n > 0x7f; n >>= 7) out += char((n & 0x7f) | 0x80);
  return out + char(n);
}
std::string number(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string message(unsigned field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string attribute(const char* name, unsigned field, std::uint64_t value) {
  return message(10, message(1, name) + number(field, value));
}
std::string attribute(const char* name, const char* value) {
  return message(10, message(1, name) + message(29, value));
}
std::string real_attribute(const char* name, double value) {
  std::string fixed;
  for (int shift = 0; shift < 64; shift += 8) fixed += char(std::bit_cast<std::uint64_t>(value) >> shift);
  return message(10, message(1, name) + varint(3 << 3 | 1) + fixed);
}

enum { kLoad = 2, kComp = 4, kSend = 5, kReceive = 6, kCollective = 7 };
std::string traced(unsigned id, unsigned type, const std::vector<unsigned>& after, const std::string& more = {}) {
  std::string m = number(1, id) + message(2, "n" + std::to_string(id)) + number(3, type);
  for (const unsigned a : after) m += number(4, a);  // one by one; the shipped example packs them
  return m + more;
}
std::string trace_of(const std::vector<std::string>& nodes) {
  std::string all = varint(7) + message(1, "0.0.4");
  for (const std::string& n : nodes) all += varint(n.size()) + n;
  return all;
}
std::string all_reduce(std::uint64_t bytes) { return attribute("comm_type", 9, 0) + attribute("comm_size", 9, bytes); }

// A folder with two ranks' traces and the workload that names them.
struct TwoRanks {
  Folder folder;
  std::string file;
  TwoRanks(const std::string& first, const std::string& second, const char* patch = "{}") {
    folder.write("t.0.et", first);
    folder.write("t.1.et", second);
    Json w = Json::parse(
        R"({"schema": "gccl/workload/1", "name": "two", "cluster": "ethernet-cpu", "chakra": {"prefix": "t"}})");
    w.merge_patch(Json::parse(patch));
    file = folder.write("w.json", w.dump()).string();
  }
  Json result() const {
    const Ended e = run_gccl({"run", file, "--quiet", "--json", "-"});
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    return Json::parse(e.out);
  }
};

}  // namespace

TEST_CASE("the shipped traces take their compute, their tensor groups' calls, and the last gradients'") {
  const Ended e = run_gccl({"run", "chakra-step", "--json", "-"});
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json r = Json::parse(e.out);
  REQUIRE(r["traffic"].size() == 2);
  const double activations = r["traffic"][0]["time_us"], gradients = r["traffic"][1]["time_us"];
  CHECK(r["traffic"][0]["calls"][0]["bytes"] == 4 << 20);
  CHECK(r["traffic"][0]["calls"][0]["groups_played"] == 2);
  CHECK(r["traffic"][1]["calls"][0]["groups_played"] == 4);
  REQUIRE(gradients < 400);  // hidden behind the next layer
  CHECK(r["step_us"].get<double>() == Approx(4 * (200 + activations) + 4 * (400 + activations) + gradients + 150));
  CHECK(r["compute_us"].get<double>() == Approx(4 * 200 + 4 * 400 + 150));
}

TEST_CASE(
    "sends wait for their receives, the host runs concurrently with the card, and operations without a time are "
    "computed") {
  const std::string sized = attribute("comm_size", 9, 1 << 20), to_second = attribute("comm_dst", 11, 1),
                    from_first = attribute("comm_src", 11, 0);
  const std::string host = attribute("is_cpu_op", 27, 1) + number(7, 5000);
  const std::string work = attribute("num_ops", 13, 2'000'000'000) + attribute("tensor_size", 13, 8'000'000);
  const TwoRanks t(
      trace_of(
          {traced(1, kComp, {}, number(7, 300)), traced(2, kSend, {1}, sized + to_second), traced(9, kComp, {}, host)}),
      trace_of({traced(5, kReceive, {}, sized + from_first), traced(6, kComp, {5}, work), traced(7, kComp, {6}, work)}),
      R"({"compute": {"card_TFLOPS": 10, "efficiency": 0.5, "memory_GBps": 10}})");
  const Json r = t.result();
  REQUIRE(r["traffic"].size() == 1);
  const double send = r["traffic"][0]["time_us"];
  // 2e9 operations at 5 TFLOP/s take 400 us, 8 MB at 10 GB/s 800 us.
  CHECK(r["stages"][1]["compute_us"].get<double>() == Approx(2 * 800));
  CHECK(r["stages"][1]["exposed_us"]["pipeline"].get<double>() == Approx(send));
  CHECK(r["stages"][1]["bubble_us"].get<double>() ==
        Approx(5000 - 1600 - send));  // 300 at the beginning, the rest at the end
  CHECK(r["step_us"].get<double>() == Approx(5000));
}

TEST_CASE("what a trace has that is not known, or ranks that differ, is said with file and node") {
  const auto refused = [](const std::string& first, const std::string& second, const char* expected,
                          const char* patch = "{}") {
    const TwoRanks t(first, second, patch);
    check_refused({"run", t.file}, expected);
  };
  const std::string good = trace_of({traced(1, kCollective, {}, all_reduce(4096))});
  refused(good, trace_of({traced(1, kLoad, {})}), "t.1.et: node 1 \"n1\": type MEM_LOAD_NODE, expected COMP_NODE");
  refused(good, trace_of({traced(1, 99, {})}), "type 99, expected");
  refused(good, trace_of({traced(1, kCollective, {}, attribute("comm_type", 9, 3) + attribute("comm_size", 9, 8))}),
          "comm_type GATHER, expected ALL_REDUCE");
  refused(good, trace_of({traced(1, kCollective, {}, attribute("comm_size", 9, 8))}), "comm_type is missing");
  refused(good, trace_of({traced(1, kCollective, {}, attribute("comm_type", 9, 0))}), "attribute comm_size is missing");
  refused(good, trace_of({traced(1, kComp, {7})}), "depends on node 7, which is not there");
  refused(good, trace_of({traced(1, kComp, {2}), traced(2, kComp, {1})}), "waits for itself");
  // Only 4 and 5 are in a circle: 1 waits for it, and 3 for nothing.
  refused(good,
          trace_of({traced(1, kComp, {3, 5}), traced(3, kComp, {}), traced(4, kComp, {3, 5}), traced(5, kComp, {4})}),
          "node 5 \"n5\": waits for itself");
  refused(good, trace_of({traced(1, kComp, {}), traced(1, kComp, {})}), "the id appears twice");
  refused(good, trace_of({traced(1, kCollective, {}, all_reduce(8192))}),
          "allreduce of 8192 bytes, but rank 0, node 1 has allreduce of 4096 there");
  refused(good, trace_of({traced(1, kComp, {})}), "of rank 0, node 1 is carried out by 1 of 2 ranks, not by rank 1");
  refused(good, trace_of({traced(1, kCollective, {}, all_reduce(4096) + attribute("pg_name", "3"))}),
          "pg_name \"3\" is no communicator");
  const auto of_dimensions = [](const std::string& bools) {
    return trace_of(
        {traced(1, kCollective, {}, all_reduce(4096) + message(10, message(1, "involved_dim") + message(28, bools)))});
  };
  for (const std::string& some : {message(1, std::string("\1\0", 2)), number(1, 1) + number(1, 0)})
    refused(of_dimensions(some), good, "t.0.et: node 1 \"n1\": involved_dim leaves out a dimension");
  CHECK(TwoRanks(of_dimensions(message(1, "\1\1")), good).result()["traffic"] ==
        TwoRanks(good, good).result()["traffic"]);
  refused(good, trace_of({traced(1, kComp, {}, attribute("num_ops", 13, 5))}), "expected \"card_TFLOPS\"");
  refused(good, trace_of({traced(1, kComp, {}, attribute("tensor_size", 13, 5))}), "expected \"memory_GBps\"");
  refused(good, trace_of({traced(1, kSend, {}, attribute("comm_size", 9, 8) + attribute("comm_dst", 11, 7))}),
          "from rank 1 to rank 7, expected two of 2 ranks");
  const std::string sized = attribute("comm_size", 9, 8), to_first = sized + attribute("comm_dst", 11, 0);
  refused(good, trace_of({traced(1, kSend, {}, to_first + attribute("comm_src", 11, 0))}),
          "t.1.et: node 1 \"n1\": comm_src 0 in the trace of rank 1");
  refused(good, trace_of({traced(1, kReceive, {}, to_first + attribute("comm_src", 11, 0))}),
          "t.1.et: node 1 \"n1\": comm_dst 0 in the trace of rank 1");
  refused(good, trace_of({traced(1, kSend, {}, attribute("comm_size", 9, 8) + attribute("comm_dst", 9, 1ull << 32))}),
          "t.1.et: node 1 \"n1\": comm_dst 4294967296 is no rank");
  refused(good, trace_of({traced(1, kComp, {}, number(7, 1ull << 60))}),
          "duration_micros 1152921504606846976, expected");
  refused(good, trace_of({traced(1, kComp, {}, attribute("num_ops", 9, std::uint64_t(-5)))}), "num_ops -5, expected");
  refused(good, trace_of({traced(1, kComp, {}, real_attribute("num_ops", NAN))}), "num_ops nan, expected a number");
  refused(good, trace_of({traced(1, kComp, {}, real_attribute("tensor_size", INFINITY))}), "tensor_size inf, expected");
  refused(good, trace_of({traced(1, kComp, {}, real_attribute("num_ops", 1e23))}), "us with the workload's \"compute\"",
          R"({"compute": {"card_TFLOPS": 10}})");
  refused(good, trace_of({traced(1, kCollective, {}, attribute("comm_type", 9, 0) + real_attribute("comm_size", 2.5))}),
          "comm_size 2.5, expected an integer");
  const std::string long_gather =
      trace_of({traced(1, kCollective, {}, attribute("comm_type", 9, 2) + attribute("comm_size", 9, 1ull << 50))});
  refused(long_gather, long_gather, "t.0.et: node 1 \"n1\": comm_size 1125899906842624 of each of 2 ranks, expected");
  refused(good, good.substr(0, good.size() - 3), "bytes, but only");
  refused(good, "\x1f\x8b\x08" + good, "is compressed by gzip");
  refused(good, trace_of({traced(1, kReceive, {}, attribute("comm_size", 9, 8))}), "attribute comm_src is missing");
  const std::string other = all_reduce(4096) + attribute("pg_name", "b");
  const TwoRanks apart(trace_of({traced(1, kCollective, {}, all_reduce(4096)), traced(2, kCollective, {}, other)}),
                       trace_of({traced(1, kCollective, {2}, all_reduce(4096)), traced(2, kCollective, {}, other)}),
                       R"({"chakra": {"prefix": "t", "communicators": "g.json"}})");
  apart.folder.write("g.json", R"({"b": [0, 1]})");
  check_refused({"run", apart.file}, "in different orders: \"n1\" of rank");
  apart.folder.write("g.json", R"({"b": [0, 1], "": [1]})");
  check_refused({"run", apart.file}, "g.json: /: a communicator without a name");
  refused(good, "", "is empty, expected a Chakra trace");
  refused(good, good, "/chakra/prefix: there is no", R"({"chakra": {"prefix": "other"}})");
  refused(good, good, "/chakra/communicators: there is no file",
          R"({"chakra": {"prefix": "t", "communicators": "other.json"}})");
  refused(good, good, "\"sequence\"", R"({"sequence": 5})");
  const TwoRanks many(good, good, R"({"cluster": "pcie-box"})");
  for (int rank = 2; rank < 9; ++rank) many.folder.write(fmt::format("t.{}.et", rank), good);
  check_refused({"run", many.file}, "/chakra/prefix: has traces of 9 ranks, but pcie-box has only 8 cards");
}

TEST_CASE("receives that wait for nothing are there at once, whatever their ids") {
  const auto receive = [](unsigned id, unsigned tag) {
    return traced(id, kReceive, {},
                  attribute("comm_size", 9, 8) + attribute("comm_src", 9, 0) + attribute("comm_tag", 9, tag));
  };
  const auto send = [](unsigned id, std::vector<unsigned> after, unsigned tag) {
    return traced(id, kSend, after,
                  attribute("comm_size", 9, 8) + attribute("comm_dst", 9, 1) + attribute("comm_tag", 9, tag));
  };
  const std::string first = trace_of({send(1, {}, 1), send(2, {1}, 2)});
  const double in_turn = TwoRanks(first, trace_of({receive(1, 1), receive(2, 2)})).result()["step_us"];
  CHECK(TwoRanks(first, trace_of({receive(2, 1), receive(1, 2)})).result()["step_us"] == in_turn);
}

TEST_CASE("a comm_tag is any integer, and nothing else") {
  const auto one = [](std::uint64_t type, const std::string& tag) {
    const char* const peer = type == kSend ? "comm_dst" : "comm_src";
    return trace_of({traced(1, type, {}, attribute("comm_size", 9, 8) + attribute(peer, 9, type == kSend) + tag)});
  };
  for (const std::string& tag : {attribute("comm_tag", 9, std::uint64_t(-3)), real_attribute("comm_tag", -3)})
    CHECK(TwoRanks(one(kSend, tag), one(kReceive, attribute("comm_tag", 9, std::uint64_t(-3)))).result()["step_us"] >
          0);
  const auto refused = [&](const std::string& tag, const char* expected) {
    const TwoRanks t(one(kSend, tag), one(kReceive, ""));
    check_refused({"run", t.file}, expected);
  };
  refused(attribute("comm_tag", "7"), "comm_tag \"7\", expected an integer");
  refused(real_attribute("comm_tag", 1.5), "comm_tag 1.5, expected an integer");
  refused(message(10, message(1, "comm_tag")), "comm_tag without a value, expected an integer");
  // Of what has no use for one it is not looked at.
  const std::string tagged = trace_of({traced(1, kCollective, {}, all_reduce(64) + attribute("comm_tag", "x"))});
  CHECK(TwoRanks(tagged, tagged).result()["step_us"] > 0);
}

TEST_CASE("calls without the name of a group are of all ranks, and a barrier has no bytes") {
  const std::string barrier = attribute("comm_type", 9, 9);
  const Json r = TwoRanks(trace_of({traced(1, kCollective, {}, barrier + attribute("comm_size", 9, 4)),
                                    traced(2, kCollective, {1}, all_reduce(64) + attribute("pg_name", ""))}),
                          trace_of({traced(1, kCollective, {}, barrier), traced(2, kCollective, {1}, all_reduce(64))}))
                     .result();
  REQUIRE(r["traffic"].size() == 2);
  for (const Json& t : r["traffic"])
    if (t["what"] == "barrier") CHECK(t["sent_bytes"] == 0);
}

TEST_CASE("messages that differ in their ranks alone are one row of the table, and of the page's") {
  const auto exchange = [](unsigned other) {
    const std::string sized = attribute("comm_size", 9, 1 << 20);
    return trace_of({traced(1, kSend, {}, sized + attribute("comm_dst", 9, other)),
                     traced(2, kReceive, {}, sized + attribute("comm_src", 9, other))});
  };
  const TwoRanks t(exchange(1), exchange(0));
  const std::string page = (t.folder.path / "page.html").string();
  const Ended e = run_gccl({"run", t.file, "--html", page});
  REQUIRE(e.code == 0);
  CHECK(t.result()["traffic"].size() == 2);
  for (const std::string& text : {e.out, read_text(page)}) {
    CHECK(text.find("1, each of 2") != std::string::npos);
    const auto row = text.find("sendrecv 1 MiB on 2");
    CHECK(row != std::string::npos);
    CHECK(text.find("sendrecv 1 MiB on 2", row + 1) == std::string::npos);
  }
}

TEST_CASE("what ranks carry out together is in the trace of each of them, and no two events of a thread overlap") {
  const std::string sized = attribute("comm_size", 9, 1 << 20);
  const auto send = [&](unsigned id, unsigned tag) {
    return traced(id, kSend, {}, sized + attribute("comm_dst", 9, 1) + attribute("comm_tag", 9, tag));
  };
  const auto receive = [&](unsigned id, unsigned tag) {
    return traced(id, kReceive, {}, sized + attribute("comm_src", 9, 0) + attribute("comm_tag", 9, tag));
  };
  // The second rank sends while it receives.
  const std::string first = trace_of({send(1, 1), send(2, 2), traced(3, kCollective, {}, all_reduce(1 << 22)),
                                      traced(4, kReceive, {}, sized + attribute("comm_src", 9, 1))});
  const std::string second = trace_of({receive(1, 1), receive(2, 2), traced(3, kCollective, {}, all_reduce(1 << 22)),
                                       traced(4, kSend, {}, sized + attribute("comm_dst", 9, 0))});
  const TwoRanks t(first, second);
  const std::string file = (t.folder.path / "trace.json").string();
  REQUIRE(run_gccl({"run", t.file, "--quiet", "--trace", file}).code == 0);
  std::map<int, std::multiset<std::pair<double, double>>> of_rank;
  std::map<std::pair<int, int>, double> last;
  for (const Json& e : Json::parse(read_text(file))) {
    if (e["ph"] != "X") continue;
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    of_rank[e["pid"]].emplace(begin, end);
    double& before = last[{e["pid"], e["tid"]}];
    CHECK(begin >= before - 0.0015);
    before = end;
  }
  REQUIRE(of_rank.size() == 2);
  CHECK(of_rank.begin()->second.size() == 4);
  CHECK(of_rank.begin()->second == of_rank.rbegin()->second);
}

TEST_CASE("what a rank sends is its own: other ranks' calls are not added to it") {
  const std::string sized = attribute("comm_size", 9, 8);
  const std::string to_other[] = {attribute("comm_dst", 9, 1), attribute("comm_dst", 9, 0)},
                    from_other[] = {attribute("comm_src", 9, 1), attribute("comm_src", 9, 0)};
  std::string both[2];
  for (int r = 0; r < 2; ++r)
    both[r] = trace_of({traced(1, kSend, {}, sized + to_other[r]), traced(2, kReceive, {}, sized + from_other[r])});
  CHECK(TwoRanks(both[0], both[1]).result()["kinds"]["pipeline"]["sent_bytes_max"] == 8);

  // Each pair makes one all-reduce of 1 MiB, in which each of two sends 2 (n-1)/n of it, as the first or the second
  // call.
  const auto in = [](const char* group, std::uint64_t bytes) {
    return all_reduce(bytes) + attribute("pg_name", group);
  };
  const TwoRanks t(trace_of({traced(1, kCollective, {}, in("a", 1 << 20))}),
                   trace_of({traced(1, kCollective, {}, in("a", 1 << 20))}),
                   R"({"chakra": {"communicators": "c.json"}})");
  t.folder.write("c.json", R"({"a": [0, 1], "b": [2, 3]})");
  for (const char* file : {"t.2.et", "t.3.et"})
    t.folder.write(file,
                   trace_of({traced(1, kCollective, {}, in("b", 4)), traced(2, kCollective, {}, in("b", 1 << 20))}));
  const Json r = t.result();
  CHECK(r["kinds"]["data"]["sent_bytes_max"] == (1 << 20) + 4);
  CHECK(r["stages"][0]["sent_bytes"]["data"] == 1 << 20);
}

TEST_CASE("traces and communicators are no outputs, and what is no regular file is not waited for") {
  const std::string good = trace_of({traced(1, kCollective, {}, all_reduce(4096) + attribute("pg_name", "a"))});
  const TwoRanks t(good, good, R"({"chakra": {"communicators": "c.json"}})");
  t.folder.write("c.json", R"({"a": [0, 1]})");
  for (const char* file : {"t.1.et", "c.json"}) {
    const std::string path = (t.folder.path / file).string(), before = read_text(path);
    check_refused({"run", t.file, "--json", path}, "is read, and cannot be an output too");
    CHECK(read_text(path) == before);
  }
  check_refused({"plan-parallel", t.file}, "/chakra: traces hold for the one way in which they were recorded");
  const fs::path third = t.folder.path / "t.2.et";
  REQUIRE(mkfifo(third.c_str(), 0600) == 0);
  check_refused({"run", t.file}, "t.2.et: is a pipe, expected a file");
  fs::remove(third);
  fs::create_directory(third);
  check_refused({"run", t.file}, "t.2.et: is a folder, expected a file");
}

TEST_CASE("a rank whose trace is missing is no end of the ranks") {
  const std::string good = trace_of({traced(1, kCollective, {}, all_reduce(4096))});
  const TwoRanks t(good, good);
  for (const char* other : {"t.x.et", "t.3.et.old", "t2.3.et", "t..et", "t.3", "t.-3.et"}) t.folder.write(other, good);
  CHECK(t.result()["ranks"] == 2);
  t.folder.write("t.12.et", good);
  t.folder.write("t.3.et", good);
  const Ended e = check_refused({"run", t.file}, "/chakra/prefix: there is no ");
  CHECK(e.err.find("t.2.et, but a ") != std::string::npos);
  CHECK(e.err.ends_with("t.3.et\n"));
  t.folder.write("t.2.et", good);
  fs::remove(t.folder.path / "t.12.et");
  CHECK(t.result()["ranks"] == 4);
  // A link to nothing is a rank whose trace cannot be read.
  fs::remove(t.folder.path / "t.3.et");
  fs::create_symlink("nothing", t.folder.path / "t.3.et");
  check_refused({"run", t.file}, "t.3.et: ");
}

TEST_CASE("damaged traces are refused or played, and never break the program") {
  std::string bytes = read_text(kRoot / "workloads/chakra/step.0.et");
  const Folder folder;
  splitmix::Generator random(12345);
  std::size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) {
      const std::size_t at = random.below(damaged.size());
      damaged[at] = char(random.next());
    }
    const auto file = folder.write("d.0.et", damaged);
    try {
      sim::llm::read_chakra(file);
    } catch (const json::InputError&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("a card that waits for its host has a bubble, and the last call is exposed on all that take part") {
  const std::string host = attribute("is_cpu_op", 27, 1) + number(7, 5000), call = all_reduce(1 << 20);
  const TwoRanks t(
      trace_of({traced(1, kComp, {}, host), traced(2, kComp, {1}, number(7, 100)), traced(3, kCollective, {2}, call)}),
      trace_of({traced(1, kComp, {}, number(7, 5100)), traced(2, kCollective, {1}, call)}));
  const Json r = t.result();
  const double us = r["traffic"][0]["time_us"];
  CHECK(r["step_us"].get<double>() == Approx(5100 + us));
  CHECK(r["stages"][0]["bubble_us"].get<double>() == Approx(5000));
  CHECK(r["stages"][1]["bubble_us"].get<double>() == Approx(0));
  for (const Json& stage : r["stages"]) CHECK(stage["exposed_us"]["data"].get<double>() == Approx(us));
}

TEST_CASE("a call that waits behind another one of its rank leaves that exposed, on all that take part") {
  const std::string ahead = attribute("comm_type", 9, 7) + attribute("comm_size", 9, 1 << 24);
  const std::string alike =
      trace_of({traced(0, kComp, {}, number(7, 100)), traced(1, kCollective, {0}, ahead),
                traced(2, kCollective, {0}, all_reduce(1 << 20)), traced(3, kComp, {2}, number(7, 100))});
  const Json r = TwoRanks(alike, alike).result();
  for (const Json& stage : r["stages"]) {
    CHECK(stage["exposed_us"]["data"].get<double>() == Approx(r["step_us"].get<double>() - 200));
    CHECK(stage["bubble_us"].get<double>() == Approx(0));
  }
}

TEST_CASE("a rank may wait behind many calls at once for another's compute") {
  std::vector<std::string> first, second{traced(1000, kComp, {}, number(7, 300))};
  for (unsigned i = 1; i <= 64; ++i) {
    const std::vector<unsigned> after = i > 1 ? std::vector{i - 1} : std::vector<unsigned>{};
    first.push_back(traced(i, kCollective, after, all_reduce(4096)));
    second.push_back(traced(i, kCollective, i > 1 ? after : std::vector{1000u}, all_reduce(4096)));
  }
  first.push_back(traced(65, kComp, {64}, number(7, 50)));
  const Json r = TwoRanks(trace_of(first), trace_of(second)).result();
  const double us = r["traffic"][0]["time_us"];
  CHECK(r["step_us"].get<double>() == Approx(300 + 64 * us + 50));
  CHECK(r["stages"][0]["bubble_us"].get<double>() == Approx(300));
  CHECK(r["stages"][0]["exposed_us"]["data"].get<double>() == Approx(64 * us));
}
