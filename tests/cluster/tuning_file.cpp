// Tuning tables as files: what is read, what is refused and how, and that schema and reader agree.
#include "libgccl/cluster/read/tuning_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using test::kRoot;
using test::read_text;
using Json = nlohmann::json;

namespace {

Json entry(const Json& more = Json::object()) {
  Json e = {{"collective", "allreduce"}, {"algorithm", "ring"}};
  e.update(more);
  return e;
}

Json table_of(const std::vector<Json>& entries) {
  return {{"schema", "gccl/table/1"},
          {"name", "t"},
          {"machine", {{"cluster", "c"}, {"nodes", 4}, {"cards_per_node", 8}}},
          {"entries", entries}};
}

TuningTable read(const Json& document) { return read_tuning_table(json::Node::parse(document.dump(), "t.json")); }

std::string refused(const Json& document) {
  try {
    read(document);
    return "accepted";
  } catch (const json::InputError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("an entry says what it is about and what to do, and what it leaves out is open") {
  const TuningTable t = read(table_of({entry({{"ranks_min", 3},
                                              {"ranks_max", 16},
                                              {"nodes_min", 2},
                                              {"from_bytes", "1KiB"},
                                              {"to_bytes", "1MiB"},
                                              {"protocol", "LL"},
                                              {"chunks", 8},
                                              {"channels", 4},
                                              {"window", 6},
                                              {"predicted_us", 12.5},
                                              {"predicted_at_bytes", "4KiB"}}),
                                       {{"collective", "broadcast"}, {"algorithm", "chain"}}}));
  CHECK(t.name == "t");
  CHECK(t.machine == TuningTable::Machine{.cluster = "c", .nodes = 4, .cards_per_node = 8});
  REQUIRE(t.entries.size() == 2);
  CHECK(t.entries[0] == TuningTable::Entry{.ranks_min = 3,
                                           .ranks_max = 16,
                                           .nodes_min = 2,
                                           .nodes_max = 4,
                                           .from_bytes = 1024,
                                           .to_bytes = 1 << 20,
                                           .algorithm = find_algorithm(Collective::allreduce, "ring"),
                                           .protocol = "LL",
                                           .chunks = 8,
                                           .channels = 4,
                                           .window = 6,
                                           .predicted_us = 12.5,
                                           .predicted_at_bytes = 4096});
  CHECK(t.entries[1] == TuningTable::Entry{.ranks_max = 32,
                                           .nodes_max = 4,
                                           .algorithm = find_algorithm(Collective::broadcast, "chain")});
  CHECK(t.place(t.entries[1]) == "t.json: /entries/1");
}

TEST_CASE("what cannot be right is refused with its place, what was found and what was expected") {
  const struct {
    std::vector<Json> entries;
    const char* message;
  } kCases[] = {
      {{entry({{"algorithm", "rink"}})},
       R"(t.json: /entries/0/algorithm: found "rink", expected an algorithm of allreduce; did you mean "ring"?)"},
      {{entry({{"collective", "alreduce"}})},
       R"(t.json: /entries/0/collective: found "alreduce"; did you mean "allreduce"?)"},
      {{entry({{"from_bytes", 8}, {"to_bytes", 8}})},
       R"(/entries/0/to_bytes: found 8, expected more than "from_bytes", 8: the range ends before it)"},
      {{entry({{"ranks_min", 9}, {"ranks_max", 8}})},
       R"(/entries/0/ranks_max: found 8, which is less than "ranks_min", 9)"},
      {{entry({{"ranks_max", 33}})}, "/entries/0/ranks_max: found 33, expected"},
      {{entry({{"nodes_max", 5}})}, "/entries/0/nodes_max: found 5, expected"},
      {{entry({{"nodes_min", 3}, {"ranks_max", 2}})}, "no node is without a rank"},
      {{entry({{"channels", 2}})}, R"(/entries/0/channels: expected "chunks" with it)"},
      {{entry({{"channels", 3}, {"chunks", 2}})}, R"(/entries/0/channels: found 3, expected at most "chunks", 2)"},
      {{entry({{"chanels", 3}})}, R"(did you mean "channels"?)"},
      {{entry({{"predicted_at_bytes", 8}})}, R"(/entries/0/predicted_at_bytes: expected "predicted_us" with it)"},
      {{entry({{"predicted_us", 1}, {"predicted_at_bytes", 8}, {"to_bytes", 8}})},
       "/entries/0/predicted_at_bytes: found 8, expected a size that the entry is about"},
      {{entry({{"predicted_us", 1}, {"predicted_at_bytes", 8}, {"from_bytes", 9}})},
       "/entries/0/predicted_at_bytes: found 8, expected a size that the entry is about"},
      {{entry(), entry({{"from_bytes", 4}})},
       "/entries/1: it is about calls that /entries/0 is about, too: expected ranges"},
      {{entry({{"from_bytes", 4}}), entry({{"ranks_max", 8}, {"to_bytes", 5}})}, "/entries/1: it is about calls"},
      {{entry({{"ranks_max", 8}}), entry({{"ranks_min", 8}})}, "/entries/1: it is about calls"},
      {{}, "/entries: has 0 elements, expected at least 1"},
  };
  for (const auto& c : kCases) {
    CAPTURE(Json(c.entries).dump());
    const std::string message = refused(table_of(c.entries));
    CAPTURE(message);
    CHECK(message.find(c.message) != std::string::npos);
  }
  // Ranges that meet do not overlap, nor do those of another collective, of other ranks or of other nodes.
  for (const std::vector<Json>& entries : {std::vector{entry({{"to_bytes", 4}}), entry({{"from_bytes", 4}})},
                                           std::vector{entry({{"ranks_max", 7}}), entry({{"ranks_min", 8}})},
                                           std::vector{entry({{"nodes_max", 1}}), entry({{"nodes_min", 2}})},
                                           std::vector{entry(), entry({{"collective", "reduce_scatter"}})}})
    CHECK(refused(table_of(entries)) == "accepted");
}

TEST_CASE("a table that is written reads back as the same one") {
  TuningTable t = read(table_of(
      {entry({{"to_bytes", 4}, {"predicted_us", 0.1}, {"predicted_at_bytes", 0}, {"chunks", 3}, {"channels", 3}}),
       entry({{"from_bytes", 4}, {"ranks_max", 5}, {"protocol", "\xc3\xa9 \"x\""}, {"chunks", 2}, {"channels", 1}}),
       entry({{"from_bytes", 4}, {"ranks_min", 6}, {"chunks", 2}})}));
  t.description = "with \"quotes\"\n";
  t.machine.backends = "shm,tcp";
  const std::string text = write_tuning_table(t);
  const TuningTable back = read_tuning_table(json::Node::parse(text, "t.json"));
  CHECK(back.description == t.description);
  CHECK(back.machine == t.machine);
  CHECK(back.entries == t.entries);
  CHECK(write_tuning_table(back) == text);
  CHECK(
      test::JsonSchema(Json::parse(read_text(kRoot / "libgccl/cluster/table.schema.json"))).accepts(Json::parse(text)));
}

TEST_CASE("schema and reader judge every changed table alike") {
  const test::JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/table.schema.json")));
  Json whole = table_of({entry({{"ranks_min", 1},
                                {"ranks_max", 32},
                                {"nodes_min", 1},
                                {"nodes_max", 4},
                                {"from_bytes", 0},
                                {"to_bytes", "1GiB"},
                                {"protocol", "LL"},
                                {"chunks", 64},
                                {"channels", 1},
                                {"window", 8},
                                {"predicted_us", 1.5},
                                {"predicted_at_bytes", 8},
                                {"source", "s"}})});
  whole["machine"]["backends"] = "shm";
  whole["description"] = "d";
  std::size_t changed = 0, accepted = 0;
  const auto judge = [&](const Json& document) {
    CAPTURE(document.dump());
    const std::string why = refused(document);
    CAPTURE(why);
    CHECK(schema.accepts(document) == (why == "accepted"));
    ++changed;
    accepted += why == "accepted";
  };
  judge(whole);
  const Json kValues[] = {nullptr, true, -1, 0, 1, 0.5, 2, 1e300, "2MiB", "-3", "", Json::array(), Json::object()};
  for (const char* const place : {"", "/machine", "/entries/0"}) {
    const Json::json_pointer at{std::string(place)};
    const Json part = whole[at];
    for (const auto& [key, original] : part.items()) {
      Json copy = whole;
      copy[at].erase(key);
      judge(copy);
      copy[at][key + "z"] = original;
      judge(copy);
      copy[at].erase(key + "z");
      for (const Json& value : kValues) {
        // What a schema cannot say: which names there are, and how values compare with others.
        if (key == "algorithm" && value.is_string()) continue;
        if (key == "cards_per_node" || key == "nodes" || key == "ranks_max" || key == "channels" || key == "chunks")
          if (value.is_number() && value > 0) continue;
        if (key == "to_bytes" && value.is_number_integer() && value >= 0) continue;
        if (key == "from_bytes" && value == "2MiB") continue;
        copy[at][key] = value;
        judge(copy);
      }
    }
  }
  CHECK(changed > 200);
  CHECK(accepted > 30);
}
