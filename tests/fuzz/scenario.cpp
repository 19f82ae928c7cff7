// Any bytes offered as a scenario file are either a plan of points or one clear InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/scenario/plan/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gccl;
  try {
    const auto node =
        json::Node::parse({reinterpret_cast<const char*>(data), size}, GCCL_SOURCE_DIR "/scenarios/fuzz.json");
    sim::make_plan(sim::read_scenario(node), {});
  } catch (const json::InputError&) {
  }
  return 0;
}
