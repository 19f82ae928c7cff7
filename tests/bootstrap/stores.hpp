// What tests of both stores share: how a rank opens one, and what must hold over either.
#pragma once

#include "libgccl/bootstrap/file_store.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "tests/support/clock.hpp"
#include "tests/support/meeting.hpp"

namespace gccl::test {

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::size_t(std::distance(begin(all), end(all)));
}

inline auto tcp(std::uint16_t port, Rank size, std::string secret = "s") {
  return [=](Rank r, std::unique_ptr<Exchange>* out) {
    return open_tcp_store({{"127.0.0.1", port}, r, size, secret, 20000}, out);
  };
}
inline auto files(std::string prefix, Rank size, std::string secret = "s") {
  return [=](Rank r, std::unique_ptr<Exchange>* out) { return open_file_store({prefix, r, size, secret}, out); };
}

// 4 of 8 ranks come; rank 2 has the shortest time limit of them.
template <class Open>
void check_missing_are_named(Open open) {
  const auto came = [](Rank r) { return r <= 2 || r == 4; };
  const auto results = in_threads(8, [&](Rank r, std::unique_ptr<Exchange>*) {
    return came(r) ? open_and_meet(open, r, 8, 1, r == 2 ? 600 : 20000) : Status();
  });
  for (Rank r = 0; r < 8; ++r) {
    if (!came(r)) continue;
    CHECK(results[r].code() == GCCL_ERR_TIMEOUT);
    CHECK_MESSAGE(has(results[r].text(), "ranks 3, 5-7 of 8 did not come within 600 ms"), results[r].text());
  }
}

// Of 3 ranks, rank 2 contributes more, and rank 1 comes late.
template <class Open>
void check_different_lengths(Open open) {
  const auto results = in_threads(3, [&](Rank r, std::unique_ptr<Exchange>*) {
    if (r == 1) pause_ms(100);
    std::unique_ptr<Exchange> e;
    if (Status s = open(r, &e); !s.ok()) return s;
    Bytes all;
    return e->all_gather(Bytes(r == 2 ? 9 : 8), &all, 20000);
  });
  for (const Status& s : results) {
    CHECK(s.code() == GCCL_ERR_MISMATCH);
    CHECK_MESSAGE(has(s.text(), "rank 2 contributed 9 bytes while rank 0 contributes 8"), s.text());
  }
}

}  // namespace gccl::test
