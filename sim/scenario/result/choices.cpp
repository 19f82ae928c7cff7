#include "sim/scenario/result/choices.hpp"

#include <cmath>

namespace gccl::sim {

nlohmann::json mark_fastest(std::vector<nlohmann::json>& documents) {
  nlohmann::json choices = nlohmann::json::array();
  const ResultRows rows(documents);
  for (std::size_t first = 0, end; first < rows.size(); first = end) {
    end = rows.competitors_end(first);
    std::size_t best = end, compared = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (!rows[i].completed) continue;
      ++compared;
      const double own = rows[i].time_us, least = best == end ? INFINITY : rows[best].time_us;
      if (own < least || (own == least && rows[i].automatic)) best = i;
    }
    for (std::size_t i = first; i < end; ++i) {
      documents[i]["fastest"] = i == best;
      if (!rows[i].automatic || !rows[i].completed) continue;
      const double best_us = rows[best].time_us;
      nlohmann::json c;
      for (const char* key : {"run", "cluster", "label", "collective", "engine", "ranks", "bytes", "dtype"})
        c[key] = documents[i].at(key);
      c["chosen"] = rows[i].algorithm;
      c["chosen_us"] = rows[i].time_us;
      c["fastest"] = rows[best].algorithm;
      c["fastest_us"] = best_us;
      c["compared"] = compared;
      c["regret_percent"] = best_us > 0 ? (rows[i].time_us / best_us - 1) * 100 : 0.0;
      choices.push_back(std::move(c));
    }
  }
  return choices;
}

}  // namespace gccl::sim
