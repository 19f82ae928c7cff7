// Any bytes offered as a scenario file are either a plan of points or one clear InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/scenario/judge/evaluate.hpp"
#include "sim/scenario/read/reader.hpp"
#include "sim/scenario/result/row.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gccl;
  try {
    const auto node =
        json::Node::parse({reinterpret_cast<const char*>(data), size}, GCCL_SOURCE_DIR "/scenarios/fuzz.json");
    const sim::Campaign plan = sim::make_campaign(sim::read_scenario(node), {});
    sim::check_expectations(*plan.scenario, sim::row_heads(plan));
  } catch (const json::InputError&) {
  }
  return 0;
}
