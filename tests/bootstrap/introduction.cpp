// What ranks say about themselves when a job starts: those that do not fit each other get an error.
#include "libgccl/communicator/introduction.hpp"

#include <doctest/doctest.h>

#include "gccl/gccl.h"
#include "libgccl/base/shortened.hpp"

using namespace gccl;

namespace {

std::vector<Introduction> ranks(std::size_t n) {
  std::vector<Introduction> all(n);
  for (Introduction& i : all) {
    i.set_plans(Rank(n));
    i.set_settings({.backends = "shm,tcp"});
  }
  return all;
}

}  // namespace

TEST_CASE("ranks of one build fit each other, however many there are") {
  for (std::size_t n : {1, 2, 7, 64}) CHECK(compare(ranks(n), 0).ok());
  CHECK(ranks(2)[0].plans != ranks(64)[0].plans);  // they would take other algorithms
}

TEST_CASE("a rank whose library plans otherwise is refused, on every rank alike") {
  std::vector<Introduction> all = ranks(4);
  all[2].plans ^= 1;
  for (Rank me = 0; me < 4; ++me) {
    const Status s = compare(all, me);
    CHECK(s.code() == GCCL_ERR_INVALID_USAGE);
    CHECK(s.text() ==
          "rank 0 and rank 2 would run different algorithms for the same call: their libraries are different builds of "
          "one version; install one build on all machines");
  }
}

TEST_CASE("a setting that differs is named with both values") {
  std::vector<Introduction> all = ranks(2);
  all[1].set_settings({.check = 1, .backends = "shm,tcp"});
  CHECK(compare(all, 0).text() == "GCCL_CHECK differs: rank 0 has \"0\", rank 1 has \"1\"; set the same on every rank");
}

TEST_CASE("a process that joins fits members with the same build and settings, and else hears what differs") {
  std::vector<Introduction> all = ranks(2);
  CHECK(misfit(all[0], all[1]).ok());
  all[0].plans ^= 1;
  CHECK(misfit(all[0], all[1]).code() == GCCL_ERR_INVALID_USAGE);
  all = ranks(2);
  all[0].version += 1;
  CHECK(misfit(all[0], all[1]).code() == GCCL_ERR_INVALID_USAGE);
  all = ranks(2);
  all[0].set_settings({.check = 1, .backends = "shm,tcp"});
  CHECK(misfit(all[0], all[1]).text() ==
        "GCCL_CHECK differs: the members have \"0\", this process has \"1\"; set the same here");
}

TEST_CASE("a text that finds no room ends with a whole word and a mark") {
  const auto put = [](const char* text, std::size_t bytes) {
    std::string room(bytes + 1, '#');
    put_shortened(std::span(room.data(), bytes), text);
    CHECK(room.back() == '#');
    return std::string(room.c_str());
  };
  CHECK(put("", 5) == "");
  CHECK(put("rank 2 waits", 13) == "rank 2 waits");
  CHECK(put("rank 2 waits", 12) == "rank 2 ...");
  CHECK(put("rank 2 waits", 11) == "rank 2 ...");
  CHECK(put("rank 2 waits", 10) == "rank ...");
  CHECK(put("abcdefghij", 10) == "abcde ...");
  CHECK(put("abcdefghij", 5) == " ...");
  std::vector<Introduction> all = ranks(2);
  std::string why;
  while (why.size() < 300) why += "something ";
  all[1].set_error(Status::error(why, GCCL_ERR_SYSTEM));
  const Status s = compare(all, 0);
  CHECK(s.code() == GCCL_ERR_SYSTEM);
  CHECK_MESSAGE(s.text().ends_with(" something ..."), s.text());
}
