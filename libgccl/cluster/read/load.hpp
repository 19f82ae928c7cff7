// From a cluster description ("schema": "gccl/cluster/1", docs/formats.md) to a Cluster.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "libgccl/cluster/composed.hpp"

namespace gccl {

// Throws json::InputError: file, JSON pointer, what was found and what was expected.
std::shared_ptr<const Cluster> load_cluster(const std::filesystem::path& file);
// The same for text; `file` names it in messages and is where relative references start.
std::shared_ptr<const Cluster> parse_cluster(std::string_view text, const std::filesystem::path& file);

// The same with other parameters than those that the description names. Kinds of nodes with their own parameters keep
// them.
std::shared_ptr<const Cluster> read_cluster(const json::Node& description, const Parameters& parameters);

// "mpi_parameters" of a description: what processes of an MPI library cost each other, with vectors in the host's
// memory. Nothing where it has none.
std::optional<Parameters> read_mpi_parameters(const json::Node& description);

// Reads "fabric" by its kind (fabric_kind.hpp) and fills in what of the composition depends on it.
void read_fabric(const json::Node& value, const Parameters& parameters, Composition& parts);

}  // namespace gccl
