// Real elements carried through a simulated network, and the check of what they leave behind.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "libgccl/verify/oracle.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

// The buffers of every rank of every operation in flight. Elements are 64-bit whatever element_bytes says:
// sizes count for time, values for correctness.
class Payload {
 public:
  using Message = std::vector<OracleElement>;

  explicit Payload(const Workload& w) : workload_(w), operations_(w.operations.size()) {}

  // The rank enters: its buffers get their contents.
  void enter(std::uint32_t operation, Rank rank);
  // The rank is through: its output is checked and its buffers are let go.
  void leave(std::uint32_t operation, Rank rank);

  Message read(std::uint32_t operation, Rank rank, std::uint32_t lane, Region from);
  void write(std::uint32_t operation, Rank rank, std::uint32_t lane, Region to, const Message& message);
  // to = from (+) message
  void combine(std::uint32_t operation, Rank rank, std::uint32_t lane, Region from, Region to, const Message& message);

  std::uint64_t wrong() const { return wrong_; }
  const std::string& first_wrong() const { return first_wrong_; }

 private:
  struct Buffers {
    std::vector<OracleElement> input, output;
    std::vector<std::vector<OracleElement>> scratch;  // per lane
  };
  struct State {
    std::unique_ptr<Oracle> oracle;
    std::unordered_map<Rank, Buffers> ranks;
  };
  OracleElement* at(std::uint32_t operation, Rank rank, std::uint32_t lane, Region r);

  const Workload& workload_;
  std::vector<State> operations_;
  std::vector<Buffers> spare_;  // of ranks that are through: new memory for each call would be cleared page by page
  std::vector<OracleElement> expected_;
  std::uint64_t wrong_ = 0;
  std::string first_wrong_;
};

}  // namespace gccl::sim
