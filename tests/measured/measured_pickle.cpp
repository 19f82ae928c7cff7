// Pickles of Python's, and documents that are written value by value: both are what nlohmann has in memory.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "libgccl/json/pickle.hpp"
#include "tests/measured/pickled.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;
using namespace std::string_literals;

namespace {

// What pickle.dumps() of Python 3.11 makes of
// {"version": "2.10", "n": [-1, 255, 65536, 2**40, -2**40, 2**63], "t": (1, 2.5), "b": True, "x": None, "s": "\u00e9",
//  "a": shared, "c": shared} with shared = [1], by protocols 2 and 5.
const std::string kPython2 =
    "80027d710028580700000076657273696f6e71015804000000322e3130710258010000006e71035d7104284affffffff"
    "4bff4a000001008a060000000000018a060000000000ff8a090000000000000080006558010000007471054b01474004"
    "00000000000086710658010000006271078858010000007871084e58010000007371095802000000c3a9710a58010000"
    "0061710b5d710c4b0161580100000063710d680c752e";
const std::string kPython5 =
    "80059578000000000000007d94288c0776657273696f6e948c04322e3130948c016e945d94284affffffff4bff4a0000"
    "01008a060000000000018a060000000000ff8a09000000000000008000658c0174944b0147400400000000000086948c"
    "016294888c0178944e8c0173948c02c3a9948c0161945d944b01618c016394680c752e";

}  // namespace

TEST_CASE("a pickle of Python's is read as it was written, and nothing in it is run") {
  const Json due = {{"version", "2.10"},     {"n", {-1, 255, 65536, 1ll << 40, -(1ll << 40), 1ull << 63}},
                    {"t", {1, 2.5}},         {"b", true},
                    {"x", nullptr},          {"s", "\u00e9"},
                    {"a", Json::array({1})}, {"c", Json::array({1})}};
  Json got;
  std::string error;
  for (const std::string& hex : {kPython2, kPython5}) {
    REQUIRE_MESSAGE(json::from_pickle(bytes_of_hex(hex), &got, &error), error);
    CHECK(got == due);
  }
  REQUIRE(json::from_pickle(pickle_of(due), &got, &error));
  CHECK(got == due);
  // A text of protocol 2 that is no UTF-8.
  REQUIRE(json::from_pickle("\x80\x02X\x02\0\0\0a\xff."s, &got, &error));
  CHECK(got == "a\ufffd");
  // A number that is none, and two keys that are one text.
  REQUIRE(json::from_pickle("\x80\x02G\x7f\xf8\0\0\0\0\0\0."s, &got, &error));
  CHECK(got.is_null());
  CHECK_FALSE(json::from_pickle("\x80\x02}(X\x01\0\0\0\xffK\x01X\x01\0\0\0\xfeK\x02u."s, &got, &error));
  CHECK(error.find("twice") != std::string::npos);
  CHECK_FALSE(json::from_pickle(bytes_of_hex(kEvil), &got, &error));
  CHECK(error.find("would run code") != std::string::npos);
  // Cut or damaged anywhere it is refused, or is another value; it never crashes.
  const std::string whole = bytes_of_hex(kPython5);
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(json::from_pickle(whole.substr(0, n), &got, &error));
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = char(damaged[i] ^ 1 << bit);
      (void)json::from_pickle(damaged, &got, &error);
    }
  // A list that holds itself.
  CHECK_FALSE(json::from_pickle(std::string("\x80\x02]q\x00h\x00"
                                            "a.",
                                            9),
                                &got, &error));
}

TEST_CASE("a document that is written value by value is the one that nlohmann writes") {
  for (const Json& due :
       {Json(), Json(true), Json(-1), Json(1ull << 63), Json(0.1), Json("a\"\\\n\u00e9\xff"), Json::array(),
        Json::object(), Json::array({Json::array(), Json::object(), 1, Json::array({Json::array({2})})}),
        Json({{"a", {{"b", Json::array()}, {"c", {1, "x", nullptr}}}}, {"d", Json::object()}, {"e", {{"f", 2.5}}}})}) {
    std::string text;
    json::JsonWriter w(&text);
    write_value(w, due);
    CHECK(text == due.dump(1, ' ', false, Json::error_handler_t::replace));
  }
}
