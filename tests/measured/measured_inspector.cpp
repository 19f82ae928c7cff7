// NCCL Inspector's records as other programs write them again: a list, or an object over many lines.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/measured/reading.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// As jq and Python's json.dumps(indent=2) write it, of seven lines; each indented by so much.
std::string record_of_lines(int call, double us, const std::string& indent = "") {
  return fmt::format(
      "{0}{{\n{0}  \"header\": {{ \"id\": \"0xa}}\", \"rank\": 0, \"n_ranks\": 8, \"nnodes\": 2 }},\n"
      "{0}  \"coll_perf\": {{\n{0}    \"coll\": \"AllReduce\", \"coll_sn\": {1},\n"
      "{0}    \"coll_msg_size_bytes\": 4096, \"coll_exec_time_us\": {2}\n{0}  }}\n{0}}}",
      indent, call, us);
}

void is_median(const Measured& m, double us, std::size_t line) {
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == us);
  CHECK(m.rows[0].bytes == 4096);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 4);
  CHECK(m.rows[0].at.line == line);
}

}  // namespace

TEST_CASE("NCCL Inspector: records of many lines, one below the other, and in a list") {
  const std::string three = record_of_lines(1, 40) + "\n" + record_of_lines(2, 60) + "\n\n" + record_of_lines(3, 50);
  is_median(read(three + "\n"), 50, 1);
  is_median(read("\n" + record_of_lines(1, 40) + "\n"), 40, 2);
  std::string labelled;
  for (const char c : "\n" + three) labelled += c == '\n' ? "\n0: " : std::string(1, c);
  is_median(read(labelled.substr(1)), 50, 1);
  const std::string list = "[\n" + record_of_lines(1, 40, "  ") + ",\n" + record_of_lines(2, 60, "  ") + ",\n" +
                           record_of_lines(3, 50, "  ") + "\n]\n";
  is_median(read(list), 50, 2);
  // One header for all that follow.
  const std::string
      head = R"({"header":{"id":"0xa","n_ranks":8,"nnodes":2}})",
      call = R"({"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":4096,"coll_exec_time_us":40}})";
  is_median(read("[" + head + ",\n" + call + "]"), 40, 2);
  CHECK(has(wrong("[" + head + ",[" + call + "]]"), "/1: found"));
  const Measured headless = read(call + "\n");
  CHECK(headless.rows.empty());
  CHECK(has_reason(headless, "no record above it has a header"));
}

TEST_CASE("NCCL Inspector: records of many lines that are cut short") {
  const std::string first = record_of_lines(1, 40) + "\n", second = record_of_lines(2, 60) + "\n";
  const Measured m = read(first + second.substr(0, second.size() - 30));
  is_median(m, 40, 1);
  REQUIRE(m.skipped.size() == 1);
  CHECK(m.skipped[0].at.line == 8);
  CHECK(m.skipped[0].reason == "the last record is cut short");
  CHECK(has(wrong(second.substr(0, 60) + "\n" + first), ": not valid JSON at line"));
  CHECK(has(wrong(first + second.substr(0, 60) + "\n" + first), ":8: not valid JSON"));
  CHECK(has(wrong("[\n" + first + ",\n"), ": not valid JSON at line"));
  CHECK(has(wrong(first + "nonsense\n" + second), ":8: not valid JSON"));
}
