// `gccl doctor` on dumps of GCCL's own form, with what they say beside PyTorch's: whether a thread waits, messages'
// numbers, why a communicator failed, and when the dump was written.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/measured/doctor/doctor.hpp"
#include "tests/support/folder.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;

namespace {

constexpr std::int64_t kMs = 1'000'000, kStartNs = 1'700'000'000'000 * kMs;

// Times are in milliseconds from then on.
Json call(int number, const char* state, std::int64_t began_ms, bool waits = true) {
  Json c = {{"sequence", number},
            {"call", "allreduce"},
            {"text", "allreduce #" + std::to_string(number) + " of 4 x f32, sum"},
            {"state", state},
            {"count", 4},
            {"dtype", "f32"},
            {"op", "sum"},
            {"root", 0},
            {"began_ns", kStartNs + began_ms * kMs}};
  if (state != std::string("completed")) c["waits"] = waits;
  return c;
}

Json waiting_for(int rank, Json c) {
  c["waits_for"] = {{"rank", rank}, {"world_rank", rank}, {"what", "its message"}};
  return c;
}

Json message(const char* kind, int peer, int number, int count, bool waits = true, const char* type = "f32") {
  return {{"call", kind},  {"peer", peer},   {"number", number},   {"count", count},
          {"dtype", type}, {"waits", waits}, {"state", "started"}, {"text", ""}};
}

Json dump(int rank, Json calls, std::int64_t written_ms = 0, int ranks = 3) {
  Json all = Json::array();
  for (int r = 0; r < ranks; ++r) all.push_back(r);
  const Json communicator = {{"id", "aa"},
                             {"world", true},
                             {"rank", rank},
                             {"ranks", all},
                             {"messages", Json::array()},
                             {"calls", std::move(calls)},
                             {"transfers", Json::array()}};
  return {{"schema", "gccl/dump/1"},
          {"world", "aa"},
          {"rank", rank},
          {"size", ranks},
          {"reason", "why"},
          {"written_ns", kStartNs + written_ms * kMs},
          {"communicators", Json::array({communicator})}};
}

// Messages that were begun with a peer, and those of them that are in flight.
void add_messages(Json* dump, int peer, int sent, int received, const Json& in_flight) {
  Json& c = (*dump)["communicators"][0];
  c["messages"].push_back({{"peer", peer}, {"sent", sent}, {"received", received}});
  for (const Json& m : in_flight) c["transfers"].push_back(m);
}

Json examined(const std::vector<Json>& dumps) {
  const Folder folder;
  std::vector<sim::DumpOfRank> all;
  for (const Json& d : dumps)
    all.push_back(sim::read_dump(folder.write("fr_" + std::to_string(d["rank"].get<int>()) + ".json", d.dump())));
  return sim::examined(all);
}

// "kind: ranks", in order.
std::string found(const std::vector<Json>& dumps) {
  std::string all;
  const Json document = examined(dumps);
  for (const Json& f : document["findings"])
    all += (all.empty() ? "" : "; ") + f["kind"].get<std::string>() + " " + f["ranks"].dump();
  return all;
}

std::string text(const std::vector<Json>& dumps) { return sim::doctor_text(examined(dumps)); }

}  // namespace

TEST_CASE("a rank that came late is named where that is half of the time, or where nobody says for whom it waits") {
  const auto dumps = [](std::int64_t late_ms, std::int64_t written_ms, bool chains) {
    std::vector<Json> all;
    for (int r = 0; r < 3; ++r) {
      const Json c = call(1, "started", r == 2 ? late_ms : 0);
      all.push_back(dump(r, Json::array({chains && r != 1 ? waiting_for(1, c) : c}), written_ms));
    }
    return all;
  };
  CHECK(found(dumps(80, 1500, true)) == "waits [1]");
  CHECK(text(dumps(80, 1500, true)).find("; rank 2 came 80 ms after all others") != std::string::npos);
  CHECK(found(dumps(80, 1500, false)) == "late [2]");
  CHECK(found(dumps(900, 1500, true)) == "late [2]");
  CHECK(found(dumps(40, 60, false)) == "waits [0,1,2]");
}

TEST_CASE("for whom a rank waits that had not polled for long when it failed is no reason, whatever its clock") {
  std::vector<Json> dumps;
  for (int r = 0; r < 3; ++r) {
    dumps.push_back(dump(r, Json::array({waiting_for(r == 1 ? 0 : 1, call(1, "started", 0))}), r == 2 ? 2500 : 1500));
    Json& c = dumps.back()["communicators"][0];
    c["failure"] = "why", c["failure_code"] = 101, c["failure_rank"] = 1;
    c["failure_unpolled_ns"] = (r == 1 ? 2500 : 3) * kMs;
  }
  CHECK(found(dumps) == "waits [1]");
  dumps[1]["communicators"][0]["failure_unpolled_ns"] = 3 * kMs;
  CHECK(found(dumps) == "waits [0,1,2]");
}

TEST_CASE("what is merely in flight makes no rank one that waits for others") {
  // Rank 2 computes, with a receive posted for later; the others wait for it.
  Json busy = dump(2, Json::array());
  add_messages(&busy, 1, 0, 1, Json::array({message("recv", 1, 1, 5, false)}));
  const Json waits0 = dump(0, Json::array({waiting_for(2, call(1, "started", 0))}));
  const Json waits1 = dump(1, Json::array({waiting_for(2, call(1, "started", 0))}));
  CHECK(found({waits0, waits1, busy}) == "missing [2]; missing [1]");
  CHECK(text({waits0, waits1, busy}).find("it has made 0 calls, and is in no call") != std::string::npos);
  // With a thread that waits for it, it is a circle; and dumps that do not say are taken so.
  for (const bool said : {true, false}) {
    Json& m = busy["communicators"][0]["transfers"][0];
    m["waits"] = true;
    if (!said) m.erase("waits");
    CHECK(found({waits0, waits1, busy}) == "waits [1,2]; missing [2]; missing [1]");
  }
  // Collectives that all have in flight, and that nobody waits for, need not hang.
  std::vector<Json> all;
  for (int r = 0; r < 3; ++r)
    all.push_back(dump(r, Json::array({waiting_for((r + 1) % 3, call(1, "started", 0, false))})));
  CHECK(found(all).empty());
  all[0]["communicators"][0]["calls"][0]["waits"] = true;
  CHECK(found(all) == "waits [1]");
  CHECK(text(all).find("rank 0 for rank 1") != std::string::npos);
  all[1] = dump(1, Json::array());
  CHECK(found(all) == "missing [1]");
  CHECK(
      text(all).find("rank 0 waits in call #1 (allreduce of 4 x f32, sum), which rank 2 has in flight; rank 1 has not "
                     "entered it") != std::string::npos);
}

TEST_CASE("a dump from before calls that needed its rank says nothing of where that is") {
  const Json waits = Json::array({call(7, "completed", 100), call(8, "started", 110)});
  Json earlier = dump(1, Json::array({call(3, "completed", 10)}), 50);
  Json split = earlier["communicators"][0];
  split["id"] = "bb", split["world"] = false, split["ranks"] = {0, 1};
  split["calls"] = Json::array({waiting_for(0, call(1, "started", 20))});
  earlier["communicators"].insert(earlier["communicators"].begin(), split);
  const std::vector<Json> dumps = {dump(0, waits, 1000), earlier, dump(2, waits, 1000)};
  CHECK(found(dumps) == "no_dump [1]");
  CHECK(text(dumps).find("rank 1 has made calls since its dump was written, which is of an earlier moment") !=
        std::string::npos);
  // A broadcast ends on some ranks before others have entered it, and so does what moves nothing.
  for (const char* key : {"call", "count"}) {
    std::vector<Json> one_way = dumps;
    for (const int r : {0, 2}) {
      Json& c = one_way[std::size_t(r)]["communicators"][0]["calls"][0];
      key == std::string("call") ? c["call"] = "broadcast" : c["count"] = 0;
    }
    CHECK(found(one_way) == "waits [0]; missing [1]");
  }
}

TEST_CASE("a rank whose dump may lack calls that are in flight is not known to have ended them") {
  const Json front = dump(0, Json::array({call(4, "started", 0)}), 900);
  Json many = dump(1, Json::array({call(14, "scheduled", 0), call(15, "scheduled", 0)}), 900), none = many;
  none["rank"] = 2, none["communicators"][0]["rank"] = 2;
  // As dumps say that they have what is oldest in flight, these two have ended it.
  CHECK(found({front, many, none}) == "waits [0]");
  for (Json* d : {&many, &none}) d->erase("written_ns");
  CHECK(text({front, many, none}).find("what ranks 1, 2 have done in this group is not in their dumps") !=
        std::string::npos);
  none["skipped"] = nullptr;
  CHECK(text({front, many, none}).find(", as another thread was busy with some") != std::string::npos);
}

TEST_CASE("a message is compared with the one of its number on the other side") {
  // Of two messages the short one was taken before its receiver saw it.
  Json sender = dump(0, Json::array(), 0, 2), receiver = dump(1, Json::array(), 0, 2);
  add_messages(&sender, 1, 2, 0, Json::array({message("send", 1, 2, 1000, false)}));
  add_messages(&receiver, 0, 0, 2, Json::array({message("recv", 0, 1, 10, false), message("recv", 0, 2, 1000, false)}));
  CHECK(found({sender, receiver}).empty());
  Json& received = receiver["communicators"][0]["transfers"];
  received[1]["waits"] = true;
  CHECK(found({sender, receiver}) == "waits [1]");
  CHECK(text({sender, receiver}).find("to receive 10 x f32 from rank 0, which has sent it") != std::string::npos);
  received.erase(0);
  CHECK(found({sender, receiver}) == "waits [0,1]");
  CHECK(text({sender, receiver}).find("which has begun to send it") != std::string::npos);
  received[0]["dtype"] = "i32";
  CHECK(found({sender, receiver}) == "differs [0,1]");
  // The third is still to be sent.
  received[0] = message("recv", 0, 3, 1000);
  receiver["communicators"][0]["messages"][0]["received"] = 3;
  CHECK(found({sender, receiver}) == "missing [0]");
}

TEST_CASE("what a communicator failed with comes first where that explains it") {
  const auto failed = [](int rank, int by, int code, const char* why) {
    Json d = dump(rank, Json::array({call(1, "started", 0)}));
    Json& c = d["communicators"][0];
    c["failure"] = why, c["failure_code"] = code, c["failure_rank"] = by;
    d["reason"] = why;
    return d;
  };
  const char* const other = "rank 1 has another result";
  CHECK(text({failed(0, 1, 100, other), failed(1, 1, 100, other), failed(2, 1, 100, other)}) ==
        "culprit: rank 1\nrank 1 has another result.\n(group aa (all ranks); 3 dumps)\n");
  // One that each has found by itself.
  CHECK(found({failed(0, 0, 2, "memory"), failed(1, 0, 6, "rank 0 failed"), failed(2, 2, 2, "own")}) == "failed [0]");
  CHECK(text({failed(0, 2, 102, "lost rank 2"), failed(1, 2, 102, "lost rank 2")}) ==
        "culprit: rank 2\nlost rank 2.\n(group aa (all ranks); 2 dumps; rank 2 left none)\n");
  // A circle: who has found it knows who is in it.
  Json finder = failed(1, 1, 100, "they wait for each other");
  finder["communicators"][0]["failure_ranks"] = {1, 2};
  CHECK(found({failed(0, 1, 100, "shortened"), finder, failed(2, 1, 100, "shortened")}) == "failed [1,2]");
  CHECK(text({failed(0, 1, 100, "shortened"), finder, failed(2, 1, 100, "shortened")}).find("they wait for") !=
        std::string::npos);
  // What made a rank end that has left a dump stands there; limits and aborts only end what hangs.
  CHECK(found({failed(0, 2, 102, "lost rank 2"), failed(1, 2, 102, "lost rank 2"), dump(2, Json::array())}) ==
        "missing [2]");
  for (const int code : {101, 103, 106})
    CHECK(found({failed(0, 1, code, "x"), failed(1, 1, code, "x"), dump(2, Json::array())}) == "missing [2]");
  // It was handled, and something else hangs.
  std::vector<Json> later = {failed(0, 1, 100, other), failed(1, 1, 100, other), failed(2, 1, 100, other)};
  for (Json& d : later) {
    d["reason"] = "GCCL_Dump";
    Json next = d["communicators"][0];
    for (const char* key : {"failure", "failure_code", "failure_rank"}) next.erase(key);
    next["id"] = "bb";
    if (d["rank"] == 0) next["calls"].clear();
    d["communicators"].push_back(next);
  }
  CHECK(found(later).find("missing [0]; ") == 0);
  CHECK(found(later).find("failed [1]") != std::string::npos);
}

TEST_CASE("where a call ended on one rank before it began on another, clocks differ, and nobody is late or slow") {
  const auto dumps = [](std::int64_t ahead_ms, std::int64_t took_ms) {
    std::vector<Json> all;
    for (int r = 0; r < 2; ++r) {
      Json calls = Json::array();
      for (int n = 1; n <= 20; ++n) {
        const std::int64_t began_ms = 100 * n + (r ? ahead_ms : 0);
        calls.push_back(call(n, n < 20 ? "completed" : "started", began_ms));
        if (n < 20) calls.back()["ended_ns"] = kStartNs + (began_ms + took_ms) * kMs;
      }
      all.push_back(dump(r, calls, 2100, 2));
    }
    return all;
  };
  CHECK(found(dumps(60, 1)) == "waits [0,1]");
  CHECK(found(dumps(60, 61)) == "late [1]; slow [1]");
}

TEST_CASE("the order of the files decides nothing, where two groups are held up alike") {
  std::vector<Json> dumps;
  for (int rank = 0; rank < 4; ++rank) {
    const int peer = rank ^ 1;
    dumps.push_back(
        dump(rank, rank % 2 ? Json::array() : Json::array({waiting_for(peer, call(1, "started", 0))}), 0, 4));
    dumps.back()["communicators"][0].update({{"id", rank < 2 ? "bb" : "cc"}, {"world", false}, {"rank", rank % 2}});
    dumps.back()["communicators"][0]["ranks"] = {rank & 2, (rank & 2) + 1};
  }
  const std::string by_rank = found(dumps);
  CHECK(by_rank == "missing [1]; missing [3]");
  std::vector<Json> others(dumps.rbegin(), dumps.rend());
  CHECK(found(others) == by_rank);
  std::swap(others[0], others[2]);
  CHECK(found(others) == by_rank);
}
