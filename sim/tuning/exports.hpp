// What a sweep found, as the tuning files of others: GCCL's own table, NCCL's example tuner, Open MPI, MPICH.
//
// Each file is for the numbers of ranks that were simulated, and from half the smallest size to the largest; elsewhere
// the library decides as ever. Where the fastest algorithm is one that the library does not have, the file goes by the
// fastest of those that it has, by simulation as well, and exported_otherwise() says what that costs. Rules for Open
// MPI leave calls to it where its own choice is as good (Exporting).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/select/tuning_table.hpp"
#include "sim/tuning/counterparts.hpp"

namespace gccl::sim {

// All take a "gccl/tuning/1" document. A sweep that has nothing for a library gives a file that changes nothing.
TuningTable tuning_table(const nlohmann::json& document, const Cluster& cluster);

// The CSV of NCCL's example tuner plug-in (NVIDIA/nccl plugins/tuner/example).
std::string nccl_csv(const nlohmann::json& document);
// Classic rules, which every Open MPI with coll/tuned reads: version 1, without a header. Where the fastest needs an
// operation that commutes it is named only for programs whose operations all do; else Open MPI chooses by itself.
std::string openmpi_rules(const nlohmann::json& document, const Exporting& how);
// Rules of version 3, as JSON: Open MPI 6.
std::string openmpi_json(const nlohmann::json& document, const Exporting& how);
// How many of the cells these rules leave to Open MPI: as its own choice is as good, or else where operations may not
// commute.
struct LeftToOpenMpi {
  std::size_t as_good = 0, commuting = 0;
};
LeftToOpenMpi left_to_openmpi(const nlohmann::json& document, double gain_percent);
// "at 3 of 9 places what Open MPI chooses by itself takes at most 10 % longer than ... (--export-gain)".
std::string own_choices_text(const LeftToOpenMpi& left, std::size_t cells, double gain_percent);
// MPICH's selection tree, complete, since MPICH has no other once it is given one: calls that were not simulated get
// what MPICH 4.0 does by default (src/mpi/coll/src/coll_impl.c and maint/tuning/coll/mpir/generic.json).
// From 4.1 on an algorithm of its defaults has another name; MPICH ends a program whose tree has one that it lacks.
enum class MpichRelease : std::uint8_t { v4_0, v4_1 };
std::string mpich_json(const nlohmann::json& document, MpichRelease release);

// A list of {"at", "best", "best_us", "exported" or null, "exported_us"}: the cells whose fastest algorithm the library
// does not have, or its file leaves to its own choice.
nlohmann::json exported_otherwise(const nlohmann::json& document, Library library, const Exporting& how);

}  // namespace gccl::sim
