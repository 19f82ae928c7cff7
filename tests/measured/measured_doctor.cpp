// `gccl doctor`: who held up the others, from dumps of each kind that a job leaves behind.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libgccl/json/reader.hpp"
#include "sim/measured/doctor/doctor.hpp"
#include "tests/measured/pickled.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;

namespace {

sim::DumpedCall made(std::uint64_t n, const std::string& what, bool completed, std::int64_t began_ms = 0) {
  sim::DumpedCall c;
  c.sequence = n;
  c.what = what;
  c.completed = completed;
  c.began_ns = began_ms * 1000000;
  return c;
}

// Ranks of a job of so many, with one group of all.
sim::DumpOfRank dump(std::uint32_t rank, std::uint32_t ranks, std::vector<sim::DumpedCall> calls) {
  sim::DumpOfRank d;
  d.rank = rank;
  d.file = "fr_" + std::to_string(rank);
  d.groups.push_back({.name = "world", .ranks = {}, .calls = std::move(calls), .messages = {}});
  for (std::uint32_t r = 0; r < ranks; ++r) d.groups[0].ranks.push_back(r);
  return d;
}

// "kind: ranks", in order.
std::string found(const std::vector<sim::DumpOfRank>& dumps) {
  std::string all;
  const Json document = sim::examined(dumps);
  for (const Json& f : document["findings"])
    all += (all.empty() ? "" : "; ") + f["kind"].get<std::string>() + " " + f["ranks"].dump();
  return all;
}

Json document_of_rank(int rank) {
  Json entry = {{"process_group", {"0", "default_pg"}},
                {"collective_seq_id", 3},
                {"profiling_name", rank == 1 ? "nccl:broadcast" : "nccl:all_reduce"},
                {"input_sizes", {{4}}},
                {"input_dtypes", {"Float"}},
                {"state", "started"},
                {"time_created_ns", 5},
                {"is_p2p", false}};
  return {{"version", "2.10"},
          {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0, 1, 2]"}}}}},
          {"entries", Json::array({entry})}};
}

}  // namespace

TEST_CASE("a rank that calls something else, has not entered, left no dump, came late or is slow is named") {
  const auto same = [](std::uint64_t n, bool completed, std::int64_t at = 0) {
    return made(n, "allreduce of 4 x f32", completed, at);
  };
  CHECK(found({dump(0, 2, {same(1, true)}), dump(1, 2, {same(1, true)})}).empty());
  CHECK(found({dump(0, 3, {same(1, true), same(2, false)}), dump(1, 3, {same(1, true), made(2, "broadcast", false)}),
               dump(2, 3, {same(1, true), same(2, false)})}) == "differs [1]");
  CHECK(found({dump(0, 3, {same(1, true), same(2, false)}), dump(1, 3, {same(1, true), same(2, false)}),
               dump(2, 3, {same(1, true)})}) == "missing [2]");
  CHECK(found({dump(0, 3, {same(1, false)}), dump(2, 3, {same(1, false)})}) == "no_dump [1]");
  const std::vector<sim::DumpOfRank> one_late = {dump(0, 3, {same(1, false, 10)}), dump(1, 3, {same(1, false, 2011)}),
                                                 dump(2, 3, {same(1, false, 11)})};
  CHECK(found(one_late) == "late [1]");
  CHECK(sim::doctor_text(sim::examined(one_late)).find("rank 1 came 2000 ms after") != std::string::npos);
  // 0 waits for 1, 1 for 2, who waits for nobody.
  sim::DumpedCall to1 = same(1, false), to2 = same(1, false);
  to1.waits_for = 1;
  to2.waits_for = 2;
  CHECK(found({dump(0, 3, {to1}), dump(1, 3, {to2}), dump(2, 3, {same(1, false)})}) == "waits [2]");
  to2.waits_for = 0;
  CHECK(found({dump(0, 2, {to1}), dump(1, 2, {to2})}) == "waits [0,1]");
  std::vector<sim::DumpedCall> early, late;
  for (std::uint64_t n = 1; n <= 10; ++n) {
    early.push_back(same(n, true, std::int64_t(100 * n)));
    late.push_back(same(n, true, std::int64_t(100 * n + 5)));
  }
  CHECK(found({dump(0, 3, early), dump(1, 3, late), dump(2, 3, early)}) == "slow [1]");
  CHECK_THROWS(sim::examined({dump(0, 2, {}), dump(0, 2, {})}));
  CHECK_THROWS(sim::examined({dump(0, 2, {}), dump(1, 3, {})}));
}

// Real ranks that were made to hang in each way.
TEST_CASE("in PyTorch's own dumps who holds up the others is named") {
  const Json all = Json::parse(read_text(kRoot / "tests/measured/torch_dumps.json"));
  struct Case {
    const char *name, *due, *words;
  };
  for (const Case& c : {
           Case{"well", "", "4 dumps: no rank holds up the others.\n"},
           Case{"missing", "missing [2]", "it has made 3 calls, and is in no call"},
           Case{"mismatch", "differs [1]", "rank 1 calls all_gather; ranks 0, 2, 3 call all_reduce"},
           Case{"size", "differs [3]", "rank 3 calls all_reduce of [[4096]]"},
           Case{"group", "missing [3]", "(group 2; 4 dumps)"},
           Case{"slow", "slow [1]", "rank 1 comes last to 12 of 15 calls"},
           Case{"recv", "missing [0]",
                R"(rank 1 waits to receive [[1024]] ["Float"] from rank 0, which has not sent it)"},
           Case{"send", "missing [3]", "to rank 3, which has not received it, and is in no call"},
           Case{"batch", "missing [3]", "rank 0 waits to receive"},
           // 0 waits for 1 and 1 for 2, 3 for 2: of them only 1 waits for nobody.
           Case{"pipe", "missing [1]; missing [1]; missing [2]", "rank 0 waits to send"},
           // 0 has entered a collective, 1 waits for a message of 0's, 2 and 3 are in no call.
           Case{"recv2", "missing [2]; missing [3]; missing [1]; missing [0]",
                "which has not sent it, and is in call #4"},
           Case{"not_connected", "", "3 dumps: no rank holds up the others; rank 0 left none.\n"},
       }) {
    CAPTURE(c.name);
    const Folder folder;
    std::vector<sim::DumpOfRank> dumps, older;
    for (std::size_t r = 0; r < 4; ++r) {
      Json dump = all.at(c.name)[r];
      if (dump.is_null()) continue;
      const std::string name = "nccl_trace_rank_" + std::to_string(r);
      dumps.push_back(sim::read_dump(folder.write(name, dump.dump())));
      for (Json& e : dump["entries"]) e.erase("is_p2p");
      older.push_back(sim::read_dump(folder.write(name, dump.dump())));
    }
    CHECK(found(dumps) == c.due);
    CHECK(found(older) == c.due);
    CHECK(sim::doctor_text(sim::examined(dumps)).find(c.words) != std::string::npos);
  }
}

TEST_CASE("of two messages that meet, lengths are compared, and ranks that wait for each other are named together") {
  const auto message = [](bool sends, std::uint32_t peer, std::uint64_t bytes, bool completed = false) {
    return sim::DumpedMessage{
        .sends = sends, .peer = peer, .what = "some bytes", .bytes = bytes, .completed = completed};
  };
  const auto with = [](std::uint32_t rank, std::vector<sim::DumpedMessage> messages, bool all = false) {
    sim::DumpOfRank d = dump(rank, 3, {});
    d.groups[0].messages = std::move(messages);
    d.groups[0].all_messages = all;
    return d;
  };
  CHECK(found({with(0, {message(false, 1, 4)}), with(1, {message(true, 0, 5)}), with(2, {})}) == "differs [0,1]");
  CHECK(found({with(0, {message(false, 1, 4)}), with(1, {message(true, 0, 0)}), with(2, {})}) == "waits [0,1]");
  CHECK(found({with(0, {message(false, 1, 4)}), with(1, {message(true, 0, 4)}), with(2, {})}) == "waits [0,1]");
  CHECK(found({with(0, {message(false, 1, 4)}), with(2, {})}) == "no_dump [1]");
  // The second receive meets the second send only, where all messages are known.
  const std::vector<sim::DumpedMessage> two = {message(false, 1, 4, true), message(false, 1, 5)};
  CHECK(found({with(0, two, true), with(1, {message(true, 0, 4, true)}, true), with(2, {}, true)}) == "missing [1]");
  CHECK(found({with(0, two, true), with(1, {message(true, 0, 4, true), message(true, 0, 6)}, true), with(2, {})}) ==
        "differs [0,1]");
  // It was sent, and has not come.
  CHECK(found({with(0, two, true), with(1, {message(true, 0, 4, true), message(true, 0, 5, true)}, true),
               with(2, {})}) == "waits [0]");
  // Circles, of two and of three; and a chain that ends at a rank without a dump.
  CHECK(found({with(0, {message(false, 1, 4)}), with(1, {message(false, 0, 4)}), with(2, {})}) ==
        "waits [0,1]; missing [1]; missing [0]");
  CHECK(found({with(0, {message(true, 1, 4)}), with(1, {message(true, 2, 4)}), with(2, {message(true, 0, 4)})}) ==
        "waits [0,1,2]; missing [1]; missing [2]; missing [0]");
  CHECK(found({with(0, {message(true, 1, 4)}), with(1, {message(true, 2, 4)})}) == "no_dump [2]; missing [1]");
  CHECK(found({with(0, {message(false, 0, 4)}), with(1, {message(false, 0, 4)}), with(2, {})}) ==
        "waits [0]; missing [0]");
  sim::DumpOfRank other = with(1, {});
  other.groups.clear();
  CHECK(found({with(0, {message(true, 1, 4)}), other, with(2, {})}) == "waits [0]");
}

TEST_CASE("PyTorch's messages are of ranks in the group, and end with the batch that they are part of") {
  const auto record = [](int id, const char* name, const char* state, int batch, int call = 0) {
    const bool message = std::string(name).find("coalesced") == std::string::npos && call == 0;
    return Json{{"record_id", id},
                {"process_group", {"7", "pipeline"}},
                {"collective_seq_id", call},
                {"p2p_seq_id", batch},
                {"profiling_name", std::string("nccl:") + name},
                {"input_sizes", {{2, 3}}},
                {"input_dtypes", {"BFloat16"}},
                {"state", state},
                {"is_p2p", message}};
  };
  const auto read = [](const Json& entries, const char* library = "2.28.9") {
    const Folder folder;
    const Json config = {{"7", {{"name", "7"}, {"desc", "pipeline"}, {"ranks", "[4, 6, 9]"}}}};
    return sim::read_dump(folder.write(
        "fr_6",
        Json{{"version", "2.10"}, {"comm_lib_version", library}, {"pg_config", config}, {"entries", entries}}.dump()));
  };
  // Between two batches a message by itself, which nobody knows the start of: timing is off.
  const Json entries = {record(0, "send 1->2", "scheduled", 1), record(1, "recv 1<-0", "scheduled", 1),
                        record(2, "coalesced", "completed", 1), record(3, "send 1->0", "scheduled", 2),
                        record(4, "send 1->2", "scheduled", 3), record(5, "coalesced", "completed", 3)};
  const sim::DumpOfRank d = read(entries);
  REQUIRE(d.groups.size() == 1);
  const sim::DumpedGroup& g = d.groups[0];
  CHECK(g.calls.empty());
  CHECK(g.all_messages);
  REQUIRE(g.messages.size() == 4);
  CHECK(g.messages[0].peer == 9);
  CHECK(g.messages[0].sends);
  CHECK(g.messages[1].peer == 4);
  CHECK(!g.messages[1].sends);
  CHECK(g.messages[1].bytes == 12);
  std::vector<bool> completed;
  for (const sim::DumpedMessage& m : g.messages) completed.push_back(m.completed);
  CHECK(completed == std::vector<bool>{true, true, false, true});
  // Without is_p2p names tell, and a name that begins like a message's is a call's.
  Json named = Json::array({record(0, "send 1->2", "scheduled", 1), record(1, "recv_object", "scheduled", 0, 1)});
  for (Json& e : named) e.erase("is_p2p");
  CHECK(read(named).groups[0].messages.size() == 1);
  REQUIRE(read(named).groups[0].calls.size() == 1);
  CHECK(read(named).groups[0].calls[0].what == "recv_object");
  // Its parts were forgotten: it is no call, though it has the number of one.
  Json cut = Json::array({entries[2], entries[3]});
  CHECK(read(cut).groups[0].calls.empty());
  CHECK(!read(cut).groups[0].all_messages);
  cut.insert(cut.begin(), record(1, "all_reduce", "completed", 0, 5));
  cut[1]["collective_seq_id"] = 5;
  REQUIRE(read(cut).groups[0].calls.size() == 1);
  CHECK(read(cut).groups[0].calls[0].completed);
  // Parts of a collective are a call.
  cut[0]["state"] = "scheduled", cut[1]["state"] = "started";
  REQUIRE(read(cut).groups[0].calls.size() == 1);
  CHECK(read(cut).groups[0].calls[0].what == "coalesced");
  CHECK(!read(entries, "gccl 0.1.0").groups[0].all_messages);
  for (const Json& wrong : {Json("0"), Json(), Json::array()}) {
    Json bad = entries;
    bad[5]["record_id"] = wrong;
    CHECK_THROWS_AS(read(bad), json::InputError);
  }
}

TEST_CASE("of a backend that does not say when calls end the rank that has made fewer of them is named") {
  // What PyTorch's FlightRecorderHook records of Gloo: so many calls, each scheduled and retired at once.
  const auto read = [](int rank, int calls, const char* last = "gloo:all_reduce") {
    Json dump = document_of_rank(0);
    dump["entries"] = Json::array();
    for (int n = 1; n <= calls; ++n) {
      dump["entries"].push_back(document_of_rank(0)["entries"][0]);
      dump["entries"].back().update({{"record_id", n - 1},
                                     {"collective_seq_id", n},
                                     {"profiling_name", n == calls ? last : "gloo:all_reduce"},
                                     {"state", "scheduled"},
                                     {"retired", true}});
    }
    const Folder folder;
    return sim::read_dump(folder.write("fr_" + std::to_string(rank), dump.dump()));
  };
  CHECK(found({read(0, 3), read(1, 3), read(2, 3)}).empty());
  CHECK(found({read(0, 3), read(1, 3)}).empty());
  CHECK(sim::doctor_text(sim::examined({read(0, 3)})).starts_with("1 dump: no rank"));
  CHECK(found({read(0, 3), read(1, 3), read(2, 3, "gloo:broadcast")}) == "differs [2]");
  const std::vector<sim::DumpOfRank> one_behind = {read(0, 4), read(1, 2), read(2, 4)};
  CHECK(found(one_behind) == "missing [1]");
  CHECK(sim::doctor_text(sim::examined(one_behind))
            .find(R"(ranks 0, 2 have made call #3 (all_reduce of [[4]] ["Float"]), which may have ended; rank 1 has )"
                  "not entered it: it has made 2 calls, and may be in any call") != std::string::npos);
}

TEST_CASE("of a backend that does not say when calls end who has made one that others lack is named after them") {
  // Rank 0 has made a call of the first group, ranks 1 and 2 one of the second, and rank 3, which is in both, none.
  const auto group = [](const char* name, std::vector<std::uint32_t> ranks, bool made_one) {
    sim::DumpedGroup g{.name = name, .ranks = std::move(ranks), .calls = {}, .messages = {}};
    if (made_one) g.calls.push_back(made(1, "broadcast", true));
    g.ends_known = !made_one;
    return g;
  };
  std::vector<sim::DumpOfRank> dumps(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    dumps[rank].rank = rank;
    dumps[rank].groups.push_back(group("first", {0, 1, 2, 3}, rank == 0));
    if (rank > 0) dumps[rank].groups.push_back(group("second", {1, 2, 3}, rank < 3));
  }
  CHECK(found(dumps) == "missing [3]; missing [3]; missing [1]; missing [2]");
}

TEST_CASE("in a group of which a dump has calls alone may be anybody who left one") {
  // As Gloo of PyTorch 2.15 records two groups: what it says of groups is of neither.
  const auto read = [](int rank, int calls, int others) {
    Json dump = document_of_rank(0);
    dump["pg_config"] = {{"", {{"name", ""}, {"desc", ""}, {"ranks", "[0, 1]"}}}};
    dump["entries"] = Json::array();
    const auto add = [&](const Json& group, int n, bool retired) {
      dump["entries"].push_back(document_of_rank(0)["entries"][0]);
      dump["entries"].back().update({{"process_group", group},
                                     {"record_id", dump["entries"].size() - 1},
                                     {"collective_seq_id", n},
                                     {"profiling_name", "gloo:all_reduce"},
                                     {"state", "scheduled"},
                                     {"retired", retired}});
    };
    for (int n = 1; n <= calls; ++n) add({"0", "default_pg"}, n, n < 4);
    for (int n = 1; n <= others; ++n) add({"1", "undefined"}, n, n < 2);
    const Folder folder;
    return sim::read_dump(folder.write("fr_" + std::to_string(rank), dump.dump()));
  };
  CHECK(found({read(0, 3, 1), read(1, 3, 0), read(2, 3, 1)}).empty());
  CHECK(found({read(0, 4, 1), read(1, 3, 0), read(2, 4, 1)}) == "missing [1]");
  CHECK(found({read(0, 4, 0), read(1, 3, 0)}) == "missing [1]");
  CHECK(found({read(0, 3, 2), read(1, 3, 0), read(2, 3, 1)}) == "missing [2]");
  const std::vector<sim::DumpOfRank> all_but_one = {read(0, 4, 1), read(1, 0, 0), read(2, 4, 1)};
  CHECK(found(all_but_one) == "waits [0,2]");
  CHECK(sim::doctor_text(sim::examined(all_but_one)).find("what rank 1 has done in this group is not in its dump") !=
        std::string::npos);
}

TEST_CASE("groups of one name without a rank in common, as PyTorch's split_group makes them, are examined one by one") {
  const auto read = [](int rank, int calls) {
    Json dump = document_of_rank(0);
    dump["pg_config"]["1"] = {
        {"name", "1"}, {"desc", "mesh_tp"}, {"ranks", rank < 2 ? Json("[0, 1]") : Json("[2, 3]")}};
    dump["pg_config"]["0"]["ranks"] = "[0, 1, 2, 3]";
    dump["entries"] = Json::array();
    for (int n = 1; n <= calls; ++n) {
      dump["entries"].push_back(document_of_rank(0)["entries"][0]);
      dump["entries"].back().update(
          {{"process_group", {"1", "mesh_tp"}}, {"collective_seq_id", n}, {"state", n < 3 ? "completed" : "started"}});
    }
    const Folder folder;
    return sim::read_dump(folder.write("fr_" + std::to_string(rank), dump.dump()));
  };
  CHECK(found({read(0, 1), read(1, 1), read(2, 2), read(3, 2)}).empty());
  const std::vector<sim::DumpOfRank> one_behind = {read(0, 1), read(1, 1), read(2, 3), read(3, 2)};
  CHECK(found(one_behind) == "missing [3]");
  CHECK(sim::doctor_text(sim::examined(one_behind)).find("(group 1 (mesh_tp) of ranks 2, 3; 4 dumps)") !=
        std::string::npos);
}

TEST_CASE(
    "who has forgotten its calls in a group, or has no such group in its dump, is not taken for one who made none") {
  const auto same = [](std::uint64_t n, bool completed) { return made(n, "allreduce of 4 x f32", completed); };
  sim::DumpOfRank other = dump(1, 3, {});
  other.groups.clear();
  std::vector<sim::DumpOfRank> dumps = {dump(0, 3, {same(5, false)}), other, dump(2, 3, {same(5, false)})};
  CHECK(found(dumps) == "waits [0,2]");
  CHECK(sim::doctor_text(sim::examined(dumps)).find("what rank 1 has done in this group is not in its dump") !=
        std::string::npos);
  dumps[0].groups[0].calls[0].waits_for = 1;
  CHECK(found(dumps) == "waits [1]");
  dumps[2] = dump(2, 3, {same(4, true)});
  CHECK(found(dumps) == "missing [2]");

  // PyTorch's: groups 0 and 2, which are this rank's first and second; all records but the latest of group 2 are gone.
  const auto read = [](int rank, const Json& status, int calls, bool forgotten, const Json& more = Json::object()) {
    Json dump = document_of_rank(0);
    dump["pg_config"]["2"] = {{"name", "2"}, {"desc", "data"}, {"ranks", "[0, 1, 2]"}};
    Json& entries = dump["entries"];
    entries[0].update({{"pg_id", 0}, {"record_id", 3000}, {"collective_seq_id", calls}});
    if (forgotten) entries[0].update({{"pg_id", 1}, {"process_group", {"2", "data"}}, {"state", "completed"}});
    entries[0].update(more);
    if (!status.is_null()) dump["pg_status"] = status;
    const Folder folder;
    return sim::read_dump(folder.write("fr_" + std::to_string(rank), dump.dump()));
  };
  const auto status = [](int calls, int others) {
    return Json{{"0", {{"last_enqueued_collective", calls}}}, {"1", {{"last_enqueued_collective", others}}}};
  };
  const sim::DumpOfRank waits = read(0, status(8, 2500), 8, false), waits_too = read(1, status(8, 2500), 8, false);
  const std::vector<sim::DumpOfRank> enqueued = {waits, waits_too, read(2, status(8, 2500), 2500, true)};
  CHECK(found(enqueued) == "waits [0,1]");
  CHECK(sim::doctor_text(sim::examined(enqueued)).find("what rank 2 has done in this group is not in its dump") !=
        std::string::npos);
  CHECK(found({waits, waits_too, read(2, status(7, 2500), 2500, true)}) == "missing [2]");
  CHECK(found({waits, waits_too, read(2, status(-1, 2500), 2500, true)}) == "missing [2]");
  CHECK(found({waits, waits_too, read(2, nullptr, 2500, true)}) == "waits [0,1]");
  // Where operations are numbered, from 0, 7 may be of the eighth call, or of a message.
  const Json operation = {{"op_id", 2499}, {"p2p_seq_id", 0}}, call = {{"op_id", 2500}, {"p2p_seq_id", 0}};
  CHECK(found({waits, waits_too, read(2, status(7, 2499), 2500, true, operation)}) == "waits [0,1]");
  CHECK(found({waits, waits_too, read(2, status(7, 2500), 2500, true, call)}) == "missing [2]");
}

TEST_CASE("dumps from before and after processes joined are refused, and which belong together is said") {
  std::vector<sim::DumpOfRank> dumps = {dump(0, 3, {}), dump(1, 3, {}), dump(2, 3, {})};
  dumps[0].world = dumps[2].world = "a", dumps[1].world = "b";
  try {
    sim::examined(dumps);
    FAIL("they were examined together");
  } catch (const json::InputError& e) {
    CHECK(std::string(e.what()).find("expected one of fr_0, fr_2; or fr_1") != std::string::npos);
  }
  dumps[1].world.clear();
  CHECK(found(dumps).empty());
}

TEST_CASE("the program reads PyTorch's pickles, exits with 1 and writes what its schema says; other files end with 2") {
  Folder folder;
  std::vector<std::string> words = {"doctor"};
  for (int r = 0; r < 3; ++r) {
    words.push_back(folder.path / ("fr_" + std::to_string(r)));
    std::ofstream(words.back(), std::ios::binary) << pickle_of(document_of_rank(r));
  }
  const Ended text = run_gccl(words);
  CHECK(text.code == 1);
  CHECK(text.out.find("culprit: rank 1\ncall #3 differs") == 0);
  words.insert(words.end(), {"--json", "-"});
  const Ended json = run_gccl(words);
  std::ifstream schema_file(kRoot / "sim/measured/doctor.schema.json");
  const JsonSchema schema(Json::parse(schema_file));
  CHECK(schema.accepts(Json::parse(json.out)));
  const std::string evil = folder.path / "evil_0", none = folder.path / "none";
  std::ofstream(evil, std::ios::binary) << bytes_of_hex(kEvil);
  std::ofstream(none) << "{\"schema\": \"gccl/dump/2\"}";
  const Ended refused = run_gccl({"doctor", evil}), wrong = run_gccl({"doctor", none});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("would run code") != std::string::npos);
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("gccl/dump/1") != std::string::npos);
}
