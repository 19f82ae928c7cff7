// The file store: real ranks that meet through files, some of which are stopped or killed on the way.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>

#include "libgccl/bootstrap/store_url.hpp"
#include "tests/bootstrap/stores.hpp"

using namespace gccl;
using namespace gccl::test;

TEST_CASE("file store: ranks of every number meet, and leave nothing behind") {
  Folder folder;
  for (Rank size : {1, 2, 3, 7, 32}) {
    check_all_ok(in_threads(size, files(folder.path / "store", size)));
    CHECK(folder.empty());
  }
  for (int i = 0; i < 50; ++i) {
    check_all_ok(in_threads(3, files(folder.path / "again", 3), 2));
    REQUIRE(folder.empty());
  }
}

TEST_CASE("file store: rounds at one path that overlap, and no descriptor stays open") {
  Folder folder;
  const std::size_t before = open_descriptors();
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    for (int i = 0; i < 100; ++i) {
      std::unique_ptr<Exchange> e;
      if (Status s = files(folder.path / "store", 3)(r, &e); !s.ok()) return s;
      if (Status s = meet(*e, r, 3, 1); !s.ok()) return s;
    }
    return Status();
  }));
  CHECK(open_descriptors() == before);
  CHECK(folder.empty());
}

TEST_CASE("file store: what killed jobs left behind confuses nobody") {
  Folder folder;
  const std::string prefix = folder.path / "store";
  for (int round = 0; round < 4; ++round) {
    // Four ranks of which some die before they meet, while they do, or afterwards.
    std::vector<Child> killed;
    for (Rank r = 0; r < 4; ++r)
      killed.emplace_back([&] {
        std::unique_ptr<Exchange> e;
        if (files(prefix, 4)(r, &e).ok() && !(round == 0 && r == 3)) (void)meet(*e, r, 4, 100000);
        pause_ms(10000);
      });
    while (folder.empty()) pause_ms(1);
    pause_ms(round == 0 ? 100 : 3 * round);
    killed.clear();
    if (round == 3) break;
    check_all_ok(in_threads(4, files(prefix, 4)));
  }
  check_all_ok(in_threads(3, files(prefix, 3)));  // and a job of another size
}

// Rank 1's, to the first round.
void await_contribution_of_1(const Folder& folder) {
  const auto there = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      if (const std::string name = entry.path(); has(name, ".0.1.") && !name.ends_with("~")) return true;
    return false;
  };
  for (int i = 0; i < 20000 && !there(); ++i) pause_ms(1);
}

TEST_CASE("file store: a rank that is stopped when the others have met still learns of it") {
  Folder folder;
  const std::string prefix = folder.path / "store";
  Child stopped([&] { return open_and_meet(files(prefix, 3), 1, 3, 1).ok() ? 0 : 1; });
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    if (r == 1) return Status();
    if (r == 2) {
      await_contribution_of_1(folder);
      stopped.kill(SIGSTOP);
    }
    return open_and_meet(files(prefix, 3), r, 3, 1);
  }));
  stopped.kill(SIGCONT);
  CHECK(stopped.wait() == 0);
  CHECK(folder.empty());
}

// As in a program with two worlds.
TEST_CASE("file store: a rank that is stopped when the others have met, and meet anew, still learns of it") {
  const Folder folder;
  const auto open = files(folder.path / "store", 3);
  Child stopped([&] { return open_and_meet(open, 1, 3, 1).ok() && open_and_meet(open, 1, 3, 1).ok() ? 0 : 1; });
  check_all_ok(in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    if (r == 1) return Status();
    if (r == 2) {
      await_contribution_of_1(folder);
      stopped.kill(SIGSTOP);
    }
    if (Status s = open_and_meet(open, r, 3, 1); !s.ok()) return s;
    std::unique_ptr<Exchange> next;
    if (Status s = open(r, &next); !s.ok()) return s;
    if (r == 0) stopped.kill(SIGCONT);
    return meet(*next, r, 3, 1);
  }));
  CHECK(stopped.wait() == 0);
  CHECK(folder.empty());
}

TEST_CASE("file store: different lengths are a mismatch on every rank, the late ones too") {
  const Folder folder;
  check_different_lengths(files(folder.path / "store", 3));
}

TEST_CASE("file store: another secret on one rank is found on every rank, at once, whether all have come or not") {
  for (const Rank other : {0, 1, 2})
    for (const Rank absent : {3, 2})
      for (const char* secret : {"wrong", ""}) {
        if (other == absent) continue;
        const Folder folder;
        const auto begin = Clock::now();
        const auto results = in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
          if (r == absent) return Status();
          return open_and_meet(files(folder.path / "store", 3, r == other ? secret : "right"), r, 3);
        });
        CHECK(seconds_since(begin) < 10);  // of 20
        for (Rank r = 0; r < 3; ++r) {
          if (r == absent) continue;
          CHECK(results[r].code() == GCCL_ERR_AUTHENTICATION);
          const std::string named = fmt::format("rank {} has another secret than rank 0", other > 0 ? other : 1);
          CHECK_MESSAGE((has(results[r].text(), named) || (other == 0 && has(results[r].text(), "rank 2 has another"))),
                        results[r].text());
          CHECK_MESSAGE(has(results[r].text(), "set the same GCCL_SECRET or GCCL_SECRET_FILE"), results[r].text());
        }
      }
}

TEST_CASE("file store: ranks that are missing are named") {
  Folder folder;
  check_missing_are_named(files(folder.path / "store", 8));
  CHECK(folder.empty());
  std::unique_ptr<Exchange> e;
  REQUIRE(files(folder.path / "store", 4)(2, &e).ok());
  CHECK(has(meet(*e, 2, 4, 1, 200).text(), "rank 2: ranks 0, 1, 3 of 4 did not come within 200 ms"));
}

// As many processes as there are ranks in the list: all hear the same at once, of 20 s.
void check_no_start(const std::vector<std::pair<Rank, Rank>>& ranks_and_sizes, const std::string& text) {
  Folder folder;
  const auto begin = Clock::now();
  const auto results = in_threads(Rank(ranks_and_sizes.size()), [&](Rank i, std::unique_ptr<Exchange>*) {
    const auto [rank, size] = ranks_and_sizes[i];
    return open_and_meet(files(folder.path / "s", size), rank, size);
  });
  CHECK(seconds_since(begin) < 10);
  for (const Status& s : results) {
    CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
    CHECK_MESSAGE(has(s.text(), text), s.text());
  }
  CHECK(folder.empty());
}

TEST_CASE("file store: a rank that gives another size ends the start at once, on every rank") {
  check_no_start({{0, 3}, {1, 3}, {2, 4}}, "rank 2 of a job of 4 ranks came to the store file://");
  check_no_start({{0, 3}, {1, 3}, {5, 6}}, "rank 5 of a job of 6 ranks came to the store file://");
  check_no_start({{0, 4}, {1, 3}}, "rank 1 of a job of 3 ranks came to the store file://");
}

TEST_CASE("file store: two processes that say that they are one rank end the start at once, on every rank") {
  check_no_start({{0, 3}, {1, 3}, {1, 3}}, "rank 1 has come twice");
  check_no_start({{0, 3}, {0, 3}}, "rank 0 has come twice");
}

TEST_CASE("file store: what killed jobs left is gone once others have met there") {
  Folder folder;
  const std::string prefix = folder.path / "store";
  for (int i = 0; i < 3; ++i) {
    Child killed([&] { return open_and_meet(files(prefix, 2), 1, 2).ok() ? 0 : 1; });
    while (folder.empty()) pause_ms(1);
    pause_ms(20);
  }
  check_all_ok(in_threads(2, files(prefix, 2)));
  CHECK(folder.empty());
}

TEST_CASE("file store: no folder, no rights, foreign things in the way") {
  Folder folder;
  std::unique_ptr<Exchange> e;
  const Status s = open_file_store({folder.path / "none" / "store", 0, 2}, &e);
  CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(has(s.text(), "No such file or directory"));
  CHECK(file_store_prefix(folder.path) == (folder.path / "gccl").string());
  CHECK(file_store_prefix(folder.path / "x") == (folder.path / "x").string());
  std::filesystem::create_directory(folder.path / "gccl.job");
  REQUIRE(open_file_store({folder.path / "gccl", 1, 2}, &e).ok());
  CHECK(has(meet(*e, 1, 2, 1, 300).text(), "expected a regular file"));
}
