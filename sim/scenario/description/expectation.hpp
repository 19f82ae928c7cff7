// What a scenario demands of its results.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {

struct Check;

// One check and the results that it is about. "expect" is an object, or a list of objects; each has checks (judge/) and
// filters: "cluster" (its name), "engine", "ranks", "bytes" (as the run states them), "algorithm" (a name, or "auto").
struct Expectation {
  json::Node where;    // the check's own value; the run, where nobody states it
  json::Node filters;  // the object that it is in
  const Check* check = nullptr;
  double limit = 0;                              // in the check's unit
  bool none_holds = false;                       // what it is about is drawn by the seed, and may not come
  std::string subject;                           // what is compared with: an algorithm, a run's label, a file
  std::optional<json::Node> label;               // names the run to compare with
  std::optional<std::size_t> run;                // which one that is
  std::shared_ptr<const nlohmann::json> stored;  // the rows of the stored result to compare with
  std::optional<std::string> cluster, engine, algorithm;
  std::optional<std::int64_t> ranks;
  std::optional<std::uint64_t> bytes;

  // It is about what so many ranks do on that cluster by that engine.
  bool selects(std::string_view on, std::string_view by, std::uint64_t n) const {
    return (!cluster || *cluster == on) && (!engine || *engine == by) && (!ranks || std::uint64_t(*ranks) == n);
  }
};

}  // namespace gccl::sim
