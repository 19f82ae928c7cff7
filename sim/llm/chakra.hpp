// Chakra execution traces (MLCommons, schema/protobuf/et_def.proto) as ASTRA-sim reads them: a file PREFIX.RANK.et for
// each rank, of length-delimited messages: GlobalMetadata, then Nodes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim::llm {

// Microseconds that a node may take: eleven days.
constexpr double kChakraMicrosMax = 1e12;

enum class ChakraType : std::uint8_t { invalid, metadata, load, store, compute, send, receive, collective };

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type{};
  std::vector<std::uint64_t> after;  // control and data dependencies
  double duration_us = 0;
  bool host = false;                        // is_cpu_op
  double operations = 0, bytes = 0;         // num_ops, tensor_size
  Collective collective{};                  // comm_type
  Count comm_bytes = 0;                     // comm_size
  std::string group;                        // pg_name; empty: all ranks
  std::optional<Rank> source, destination;  // comm_src, comm_dst
  std::uint64_t tag = 0;                    // comm_tag
};

// The file of one rank.
std::filesystem::path chakra_file(const std::filesystem::path& prefix, Rank rank);
// How many ranks have a file: 0, 1, ...
Rank chakra_ranks(const std::filesystem::path& prefix);
// The file of a rank from `ranks` on, the lowest that there is: where chakra_ranks() says `ranks`, one before is
// missing.
std::optional<std::filesystem::path> chakra_beyond(const std::filesystem::path& prefix, Rank ranks);
// Nodes in an order in which each comes behind those that it waits for, of those that could be next the lowest id
// first. Throws json::InputError with file, byte or node, what was found and what was expected: no such message, node
// types and collectives that GCCL does not know, dependencies on no node or in a circle.
std::vector<ChakraNode> read_chakra(const std::filesystem::path& file);

}  // namespace gccl::sim::llm
