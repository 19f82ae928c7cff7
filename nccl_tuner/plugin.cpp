// libnccl-tuner-gccl.so: NCCL_TUNER_PLUGIN=gccl lets NCCL choose as a GCCL tuning table or planner does. It never fails
// a communicator or a call: what it cannot use is warned about once, through NCCL's log, and NCCL chooses by itself.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "libgccl/cluster/shipped.hpp"
#include "nccl_tuner/abi.hpp"
#include "nccl_tuner/choices.hpp"

namespace gccl::nccl {
namespace {

std::mutex mutex;

// Once in a process: each rank and communicator would say the same.
void warn_once(Logger log, const std::string& text) {
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (log && said.insert(text).second) log(kLogWarn, kTuning, __FILE__, __LINE__, "GCCL tuner: %s", text.c_str());
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// The files that were installed with this library, or lie beside it in a build folder.
void find_shipped_files() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&find_shipped_files), &here) || !here.dli_fname) return;
  const auto folder = std::filesystem::absolute(here.dli_fname).parent_path();
  ShippedFolders all;
  for (const std::filesystem::path& data : {folder / ".." / "share" / "gccl", folder / GCCL_DATA_FROM_LIB}) {
    const std::filesystem::path clusters = (data / "topologies").lexically_normal();
    if (std::ranges::count(all.clusters, clusters) > 0) continue;
    all.clusters.push_back(clusters);
    all.parameters.push_back((data / "cost-models").lexically_normal());
  }
  set_shipped_folders(all);
}

// Communicators of one shape share what was found out. Where a source could not be read the next one looks again.
std::shared_ptr<const Choices> choices_for(std::size_t ranks, std::size_t nodes, Logger log) {
  static std::once_flag once;
  std::call_once(once, find_shipped_files);
  const Choices::Sources sources{variable("GCCL_TUNING_FILE"), variable("GCCL_CLUSTER")};
  static std::mutex one_at_a_time;
  static std::map<std::tuple<std::string, std::string, std::size_t, std::size_t>, std::shared_ptr<const Choices>> known;
  const std::lock_guard lock(one_at_a_time);
  auto& kept = known[{sources.table, sources.cluster, ranks, nodes}];
  if (kept) return kept;
  std::vector<std::string> warnings;
  auto made = std::make_shared<const Choices>(sources, ranks, nodes, &warnings);
  for (const std::string& text : warnings) warn_once(log, text);
  if (made->usable()) kept = made;
  return made;
}

// One communicator.
struct Context {
  Logger log;
  std::size_t nodes;
  std::shared_ptr<const Choices> choices;
};

Result begin(std::size_t ranks, std::size_t nodes, Logger log, void** out) noexcept {
  if (!out) return kSuccess;
  *out = nullptr;
  try {
    auto context = std::make_unique<Context>(Context{log, nodes, choices_for(ranks, nodes, log)});
    if (log)
      log(kLogInfo, kTuning, __FILE__, __LINE__, "GCCL tuner: %zu ranks on %zu nodes: %s", ranks, nodes,
          context->choices->text().c_str());
    *out = context.release();
  } catch (const std::exception& e) {
    if (log) log(kLogWarn, kTuning, __FILE__, __LINE__, "GCCL tuner: %s: NCCL chooses by itself", e.what());
  } catch (...) {
  }
  return kSuccess;
}

Result end(void* context) noexcept {
  delete static_cast<Context*>(context);
  return kSuccess;
}

// A version 2 to 6 of a call, and null where there is nothing to say.
const Choice* find(void* context, Function function, std::size_t bytes) noexcept {
  auto* const c = static_cast<const Context*>(context);
  if (!c) return nullptr;
  if (function >= 0 && std::size_t(function) < kCollectives.size())
    return c->choices->find(std::size_t(function), bytes);
  try {
    warn_once(c->log, "NCCL asks about its function " + std::to_string(function) + ", which is none of " +
                          std::to_string(kCollectives.size()) + " that it has algorithms for");
  } catch (...) {
  }
  return nullptr;
}

void warn_of_costs(void* context) noexcept {
  auto* const c = static_cast<const Context*>(context);
  try {
    warn_once(c->log, "NCCL hands over no table of costs");
  } catch (...) {
  }
}

// Whether NCCL 2.21 can be given this. It takes what a plug-in names without looking at what it has ruled out, and
// hands over no costs that show it: multicast between nodes needs CollNet, and LL128 cards that keep 128 bytes
// together.
bool safe_in_v2(const Choice& c, std::size_t nodes, bool collnet, bool nvls) {
  if (c.protocol == NcclProtocol::LL128 || c.algorithm == NcclAlgorithm::pat) return false;  // PAT came with version 3
  if (c.algorithm == NcclAlgorithm::nvls) return nvls && (nodes == 1 || collnet);
  return c.algorithm != NcclAlgorithm::nvls_tree || nvls;
}

Result get_v2(void* context, Function function, std::size_t bytes, int collnet, int nvls, int /*grouped*/,
              int* algorithm, int* protocol, int* channels) noexcept {
  const Choice* const choice = find(context, function, bytes);
  if (!choice || !choice->protocol || !algorithm || !protocol) return kSuccess;
  if (!safe_in_v2(*choice, static_cast<const Context*>(context)->nodes, collnet != 0, nvls != 0)) return kSuccess;
  *algorithm = int(choice->algorithm);
  *protocol = int(*choice->protocol);
  if (channels && choice->channels > 0) *channels = int(choice->channels);
  return kSuccess;
}

// The entry of the choice, or of the protocol that NCCL likes best where it has none; null where NCCL does not have it.
float* entry_of(const Choice& choice, float* costs, int algorithms, int protocols) {
  if (int(choice.algorithm) >= algorithms) return nullptr;
  float* const row = costs + std::ptrdiff_t(choice.algorithm) * protocols;
  if (choice.protocol) {
    const int p = int(*choice.protocol);
    return p < protocols && row[p] >= 0 ? row + p : nullptr;
  }
  float* best = nullptr;
  for (int p = 0; p < protocols; ++p)
    if (row[p] >= 0 && (!best || row[p] < *best)) best = row + p;
  return best;
}

Result get_v4(void* context, Function function, std::size_t bytes, int /*grouped*/, float** costs, int algorithms,
              int protocols, int /*registered*/, int* channels) noexcept {
  const Choice* const choice = find(context, function, bytes);
  if (!choice) return kSuccess;
  if (!costs || algorithms <= 0 || protocols <= 0) {
    warn_of_costs(context);
    return kSuccess;
  }
  float* const entry = entry_of(*choice, reinterpret_cast<float*>(costs), algorithms, protocols);
  if (!entry) return kSuccess;
  *entry = kForced;
  if (channels && choice->channels > 0) *channels = int(choice->channels);
  return kSuccess;
}

Result get_v3(void* context, Function function, std::size_t bytes, int grouped, float** costs, int algorithms,
              int protocols, int* channels) noexcept {
  return get_v4(context, function, bytes, grouped, costs, algorithms, protocols, 0, channels);
}

Result begin_v5(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, Logger log, void*,
                void*) noexcept {
  return begin(ranks, nodes, log, context);
}

constexpr const char* kName = "GCCL";

}  // namespace
}  // namespace gccl::nccl

#define GCCL_EXPORTED extern "C" __attribute__((visibility("default")))
GCCL_EXPORTED const gccl::nccl::TunerV2 ncclTunerPlugin_v2;
GCCL_EXPORTED const gccl::nccl::TunerV3 ncclTunerPlugin_v3;
GCCL_EXPORTED const gccl::nccl::TunerV4 ncclTunerPlugin_v4;
GCCL_EXPORTED const gccl::nccl::TunerV5 ncclTunerPlugin_v5;
GCCL_EXPORTED const gccl::nccl::TunerV6 ncclTunerPlugin_v6;

using namespace gccl::nccl;
const TunerV2 ncclTunerPlugin_v2{kName, begin, get_v2, end};
const TunerV3 ncclTunerPlugin_v3{kName, begin, get_v3, end};
const TunerV4 ncclTunerPlugin_v4{kName, begin, get_v4, end};
const TunerV5 ncclTunerPlugin_v5{kName, begin_v5, get_v4, end};
const TunerV6 ncclTunerPlugin_v6{kName, begin_v5, get_v4, end, nullptr};
