// What is said of a table's rows.
#include <doctest/doctest.h>

#include "tests/measured/reading.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

bool is_line(std::string_view text) { return text.find('\n') == text.npos; }

}  // namespace

TEST_CASE("messages about cells with line ends stay on one line") {
  const std::string columns = "nodes,gpus_per_node,collective,bytes,time_us,note";
  for (const std::string& text :
       {columns + "\n1,2,all_reduce,\"6\n4\",1,\n", columns + "\n1,2,all_reduce,64,\"\n1\",\n",
        columns + ",\"nod\nes\"\n", columns + ",\"bytes\n\",\"bytes\n\"\n",
        std::string(R"([{"name":"AllReduce","gpus":2,"time":1,"algBw":1,"size":"6\n4"}])")}) {
    CAPTURE(text);
    CHECK(is_line(wrong(text)));
  }
  const Measured m = read(columns + ",\"x\ny\"\n1,2,\"all\nreduce2\",64,1,,\n" + "1,2,all_reduce,64,1,,\n");
  CHECK(m.rows.size() == 1);
  REQUIRE(m.remarks.size() == 1);
  CHECK(is_line(m.remarks[0]));
  CHECK(has_reason(m, "no counterpart of the collective \"all?reduce2\""));
}
