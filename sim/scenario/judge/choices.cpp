#include "sim/scenario/judge/choices.hpp"

namespace gccl::sim {

nlohmann::json mark_fastest(ResultRows& rows) {
  nlohmann::json choices = nlohmann::json::array();
  for (std::size_t first = 0, end; first < rows.size(); first = end) {
    end = competitors_end(rows, first);
    std::size_t best = first;
    for (std::size_t i = first; i < end; ++i) {
      const double own = time_us(rows[i]), least = time_us(rows[best]);
      if (own < least || (own == least && rows[i].at("auto").get<bool>())) best = i;
    }
    const double best_us = time_us(rows[best]);
    for (std::size_t i = first; i < end; ++i) {
      rows[i]["fastest"] = i == best;
      if (!rows[i].at("auto").get<bool>()) continue;
      nlohmann::json c;
      for (const char* key : {"run", "cluster", "label", "collective", "engine", "ranks", "bytes", "dtype"})
        c[key] = rows[i].at(key);
      c["chosen"] = rows[i].at("algorithm");
      c["chosen_us"] = time_us(rows[i]);
      c["fastest"] = rows[best].at("algorithm");
      c["fastest_us"] = best_us;
      c["compared"] = end - first;
      c["regret_percent"] = best_us > 0 ? (time_us(rows[i]) / best_us - 1) * 100 : 0.0;
      choices.push_back(std::move(c));
    }
  }
  return choices;
}

}  // namespace gccl::sim
