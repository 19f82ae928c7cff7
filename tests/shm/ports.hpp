// Ranks of one process, each with its port of the shared-memory transport.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "libgccl/transports/shm/shm_port.hpp"
#include "tests/support/has.hpp"

namespace gccl::test {

struct Ranks {
  std::uint32_t size;
  std::vector<std::uint32_t> node = std::vector<std::uint32_t>(size), world_rank = numbers(size);
  std::deque<shm::Instance> instance;
  std::vector<std::unique_ptr<shm::Port>> port = std::vector<std::unique_ptr<shm::Port>>(size);

  static std::vector<std::uint32_t> numbers(std::uint32_t size) {
    std::vector<std::uint32_t> all(size);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  GCCL_Port_spec spec(std::uint32_t rank) const {
    return {.struct_bytes = sizeof(GCCL_Port_spec),
            .rank = rank,
            .size = size,
            .channels = 2,
            .communicator = 1,
            .node = node.data(),
            .world_rank = world_rank.data(),
            .connect_timeout_ms = 0};
  }
  explicit Ranks(std::uint32_t ranks) : size(ranks) {
    for (std::uint32_t r = 0; r < size; ++r) instance.emplace_back(process_environment());
    std::vector<std::byte> addresses(size * GCCL_BACKEND_ADDRESS_BYTES);
    for (std::uint32_t r = 0; r < size; ++r) {
      const Status s =
          shm::Port::open(instance[r], spec(r), &port[r], addresses.data() + r * GCCL_BACKEND_ADDRESS_BYTES);
      REQUIRE_MESSAGE(s.ok(), s.text());
    }
    for (std::uint32_t r = 0; r < size; ++r) {
      std::vector<std::uint8_t> reaches(size);
      const Status s = port[r]->connect(spec(r), addresses.data(), reaches.data());
      REQUIRE_MESSAGE(s.ok(), s.text());
      REQUIRE(std::count(reaches.begin(), reaches.end(), 1) == size - 1);
    }
    for (auto& p : port) p->connected();
  }
};

struct TwoRanks : Ranks {
  TwoRanks() : Ranks(2) {}
  // The cell that rank `to` reads next.
  shm::Cell* next_cell(std::uint32_t to) {
    const shm::Cell* const c = port[to]->end(1 - to, 0, true)->reader.peek();
    REQUIRE(c);
    return const_cast<shm::Cell*>(c);
  }
};

inline GCCL_Transfer transfer(std::uint32_t peer, void* data, std::uint64_t bytes) {
  GCCL_Transfer t{};
  t.peer = peer;
  t.data = data;
  t.bytes = bytes;
  t.signature = 42;
  return t;
}

}  // namespace gccl::test
