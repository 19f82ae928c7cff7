#include "sim/scenario/judge/promises.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/scenario/judge/row_text.hpp"

namespace gccl::sim {

void add_promises(const std::vector<nlohmann::json>& rows, nlohmann::json* expectations) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].contains("faults")) continue;
    const nlohmann::json& f = rows[i]["faults"];
    for (const auto& [key, text] :
         {std::pair("violations", "what the fault protocol promises"), {"differs", "as the simulation says"}})
      if (f.contains(key) && !f[key].empty())
        expectations->push_back({{"pointer", fmt::format("/runs/{}", rows[i]["run"].get<std::size_t>())},
                                 {"text", text},
                                 {"found", f[key][0].get<std::string>() + lateness(rows[i])},
                                 {"ok", false}});
  }
}

}  // namespace gccl::sim
