// Measured times of collectives, as benchmarks on real systems give them. The readers (read/) make rows from files,
// predict/ makes times from rows and a cluster, validation/ compares both, fit/ changes parameters until they agree.
#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/cost/slicing.hpp"
#include "libgccl/elements/dtype.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

// Names that files give are compared so.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Where a row stands.
struct FilePlace {
  std::string file;
  std::size_t line = 0;  // from 1

  std::string text() const { return file + ":" + std::to_string(line); }
};

// One measured point. Texts are as the file has them, so that its rows are found again.
struct Measurement {
  FilePlace at;
  std::size_t test = 0;  // which of the file's, of those that print one table after the other
  std::string system;
  Rank nodes = 0, cards = 0;  // cards: of each node, with a rank each
  Collective kind{};
  std::string collective, algorithm, protocol;  // "all_reduce", "NCCL_ALGO=ring", "LL128"
  Count bytes = 0;                              // as nccl-tests counts: see elements() in sim/scenario/read/sizes.hpp
  double time_us = 0;
  bool derived = false;  // the time is from a bandwidth
  Dtype dtype = Dtype::f32;
  bool in_place = false;
  std::optional<Slicing> slicing = {};  // as it was cut up; absent where a file does not say, or "auto" decides
  Rank root = 0;
  std::string source, note;

  Rank ranks() const { return nodes * cards; }
};

// A row that is not used, and why: a text that many rows share.
struct SkippedRow {
  FilePlace at;
  std::string reason;
};

struct Measured {
  std::vector<Measurement> rows;  // in the order of the files
  std::vector<SkippedRow> skipped;
  std::vector<std::string> remarks;  // about files as a whole
};

}  // namespace gccl::sim
