// The queue that transports keep their transfers in.
#include "libgccl/transports/transfer_queue.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace gccl;

namespace {

std::vector<GCCL_Transfer*> emptied(TransferQueue& queue) {
  std::vector<GCCL_Transfer*> out;
  while (!queue.empty()) out.push_back(queue.pop());
  return out;
}

TEST_CASE("transfers leave a queue in the order in which they came, those apart that have been removed") {
  for (std::size_t n = 1; n <= 4; ++n) {
    for (std::size_t removed = 0; removed < n; ++removed) {
      CAPTURE(n);
      CAPTURE(removed);
      std::vector<GCCL_Transfer> transfers(n + 1);
      TransferQueue queue;
      std::vector<GCCL_Transfer*> expected;
      for (std::size_t i = 0; i < n; ++i) {
        queue.push(&transfers[i]);
        CHECK(queue.front() == &transfers[0]);
        CHECK(queue.back() == &transfers[i]);
        if (i != removed) expected.push_back(&transfers[i]);
      }
      CHECK(queue.remove(&transfers[removed]));
      CHECK(queue.empty() == expected.empty());
      queue.push(&transfers[n]);
      expected.push_back(&transfers[n]);
      CHECK(emptied(queue) == expected);
    }
  }
}

TEST_CASE("a queue removes no transfer that is not in it") {
  GCCL_Transfer in{}, out{};
  TransferQueue queue;
  CHECK_FALSE(queue.remove(&out));
  queue.push(&in);
  CHECK_FALSE(queue.remove(&out));
  CHECK(queue.pop() == &in);
  CHECK_FALSE(queue.remove(&in));
}

TEST_CASE("an emptied queue takes a transfer that another one has had") {
  GCCL_Transfer first{}, second{};
  TransferQueue one, other;
  one.push(&first);
  one.push(&second);
  CHECK(one.pop() == &first);
  other.push(&first);
  CHECK(emptied(one) == std::vector<GCCL_Transfer*>{&second});
  one.push(&second);
  CHECK(emptied(other) == std::vector<GCCL_Transfer*>{&first});
  CHECK(emptied(one) == std::vector<GCCL_Transfer*>{&second});
}

}  // namespace
