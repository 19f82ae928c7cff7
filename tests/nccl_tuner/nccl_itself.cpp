// NCCL itself loads libnccl-tuner-gccl.so. One GPU serves all ranks: each says that it is a host of its own
// (NCCL_HOSTID), so that NCCL sends through sockets. Where there is no NCCL 2.27 or later, or no GPU, the test is
// skipped and says so.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"

using gccl::test::Child;
using gccl::test::Folder;

namespace {

// CUDA's driver and NCCL, by the names and types of their headers; neither is needed to build this.
struct UniqueId {
  char bytes[128];
};
using Comm = void*;
using Stream = void*;
using Device = unsigned long long;  // an address on the GPU

template <class F>
F* symbol(void* library, const char* name) {
  F* const found = reinterpret_cast<F*>(dlsym(library, name));
  if (!found) throw std::runtime_error(dlerror());
  return found;
}
void must(int code, const std::string& what) {
  if (code != 0) throw std::runtime_error(fmt::format("{} returned {}", what, code));
}

void* open_nccl() { return dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL); }

class Gpu {
 public:
  Gpu() {
    void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda) throw std::runtime_error(dlerror());
    allocate_ = symbol<int(Device*, std::size_t)>(cuda, "cuMemAlloc_v2");
    put_ = symbol<int(Device, const void*, std::size_t)>(cuda, "cuMemcpyHtoD_v2");
    get_ = symbol<int(void*, Device, std::size_t)>(cuda, "cuMemcpyDtoH_v2");
    wait_ = symbol<int(Stream)>(cuda, "cuStreamSynchronize");
    int device = 0;
    void* context = nullptr;
    must(symbol<int(unsigned)>(cuda, "cuInit")(0), "cuInit");
    must(symbol<int(int*, int)>(cuda, "cuDeviceGet")(&device, 0), "cuDeviceGet");
    must(symbol<int(void**, int)>(cuda, "cuDevicePrimaryCtxRetain")(&context, device), "cuDevicePrimaryCtxRetain");
    must(symbol<int(void*)>(cuda, "cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    // One that waits for copies from pageable memory, which may go on after their call has returned.
    must(symbol<int(Stream*, unsigned)>(cuda, "cuStreamCreate")(&stream, 0), "cuStreamCreate");
  }
  Device allocate(std::size_t bytes) const {
    Device memory = 0;
    must(allocate_(&memory, bytes), "cuMemAlloc");
    return memory;
  }
  void put(Device to, const std::vector<float>& from) const { must(put_(to, from.data(), from.size() * 4), "copy"); }
  std::vector<float> get(Device from, std::size_t count) const {
    std::vector<float> to(count);
    must(get_(to.data(), from, count * 4), "copy");
    return to;
  }
  void wait() const { must(wait_(stream), "cuStreamSynchronize"); }

  Stream stream = nullptr;

 private:
  int (*allocate_)(Device*, std::size_t) = nullptr;
  int (*put_)(Device, const void*, std::size_t) = nullptr;
  int (*get_)(void*, Device, std::size_t) = nullptr;
  int (*wait_)(Stream) = nullptr;
};

// By NCCL's numbers.
enum Function { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };
constexpr std::array kNames{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
struct Call {
  Function function;
  std::size_t bytes;  // the bigger of a rank's two buffers, in multiples of 4 times the number of ranks
};

float element(int rank, std::size_t i) { return float(i % 11 + std::size_t(rank) * 3); }

// What rank `rank` of `ranks` finds after the call; empty where that is nothing.
std::vector<float> due(const Call& c, int rank, int ranks) {
  const std::size_t count = c.bytes / 4, block = count / std::size_t(ranks);
  const auto sum = [&](std::size_t i) {
    float all = 0;
    for (int r = 0; r < ranks; ++r) all += element(r, i);
    return all;
  };
  std::vector<float> result;
  if (c.function == kReduce && rank != 0) return result;
  for (std::size_t i = 0; i < (c.function == kReduceScatter ? block : count); ++i) switch (c.function) {
      case kBroadcast: result.push_back(element(0, i)); break;
      case kAllGather: result.push_back(element(int(i / block), i % block)); break;
      case kReduceScatter: result.push_back(sum(std::size_t(rank) * block + i)); break;
      default: result.push_back(sum(i));
    }
  return result;
}

void wait_for(const std::filesystem::path& file) {
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// One rank: makes a communicator, then the calls, and throws where a result is wrong.
void rank_of(int rank, int ranks, const std::vector<Call>& calls, const std::filesystem::path& folder) {
  alarm(60);
  const Gpu gpu;
  void* const nccl = open_nccl();
  UniqueId id;
  if (rank == 0) {
    must(symbol<int(UniqueId*)>(nccl, "ncclGetUniqueId")(&id), "ncclGetUniqueId");
    std::ofstream(folder / "id.part", std::ios::binary).write(id.bytes, sizeof id.bytes);
    std::filesystem::rename(folder / "id.part", folder / "id");
  } else {
    wait_for(folder / "id");
    std::ifstream(folder / "id", std::ios::binary).read(id.bytes, sizeof id.bytes);
  }
  Comm comm = nullptr;
  must(symbol<int(Comm*, int, UniqueId, int)>(nccl, "ncclCommInitRank")(&comm, ranks, id, rank), "ncclCommInitRank");
  using Collective = int(Device, Device, std::size_t, int, int, Comm, Stream);  // with a root, or an operation
  constexpr int kFloat = 7, kSum = 0, kRoot = 0;
  const std::size_t most =
      std::max_element(calls.begin(), calls.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; })->bytes;
  const Device in = gpu.allocate(most), out = gpu.allocate(most);
  for (const Call& c : calls) {
    const std::size_t count = c.bytes / 4, block = count / std::size_t(ranks);
    std::vector<float> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = element(rank, i);
    gpu.put(in, data);
    gpu.put(out, std::vector<float>(count, -1));
    int code = 0;
    switch (c.function) {
      case kBroadcast:
        code = symbol<Collective>(nccl, "ncclBroadcast")(in, out, count, kFloat, kRoot, comm, gpu.stream);
        break;
      case kReduce:
        code = symbol<int(Device, Device, std::size_t, int, int, int, Comm, Stream)>(nccl, "ncclReduce")(
            in, out, count, kFloat, kSum, kRoot, comm, gpu.stream);
        break;
      case kAllGather:
        code = symbol<int(Device, Device, std::size_t, int, Comm, Stream)>(nccl, "ncclAllGather")(
            in, out, block, kFloat, comm, gpu.stream);
        break;
      case kReduceScatter:
        code = symbol<Collective>(nccl, "ncclReduceScatter")(in, out, block, kFloat, kSum, comm, gpu.stream);
        break;
      case kAllReduce:
        code = symbol<Collective>(nccl, "ncclAllReduce")(in, out, count, kFloat, kSum, comm, gpu.stream);
        break;
    }
    must(code, kNames[c.function]);
    gpu.wait();
    const std::vector<float> expected = due(c, rank, ranks);
    if (gpu.get(out, expected.size()) != expected)
      throw std::runtime_error(fmt::format("rank {}: {} of {} bytes is wrong", rank, kNames[c.function], c.bytes));
  }
  must(symbol<int(Comm)>(nccl, "ncclCommDestroy")(comm), "ncclCommDestroy");
}

std::vector<Call> calls_on(int ranks) {
  std::vector<Call> calls;
  for (const Function f : {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce})
    for (const std::size_t bytes : {64, 2048, 4096, 65536, 262144, 1 << 20, 4 << 20})
      calls.push_back({f, bytes / std::size_t(4 * ranks) * std::size_t(4 * ranks)});
  return calls;
}

using Variables = std::map<std::string, std::string>;

// Runs the calls on so many ranks with these variables. Returns NCCL's log of rank 0; fails where a rank did.
std::string run(int ranks, const std::vector<Call>& calls, const Variables& variables, const Folder& folder) {
  std::filesystem::remove(folder.path / "id");
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank)
    children.emplace_back([&, rank] {
      const Variables own{{"NCCL_HOSTID", fmt::format("gccl-test-{}", rank)},
                          {"NCCL_SOCKET_IFNAME", "lo"},
                          {"NCCL_IB_DISABLE", "1"},
                          {"NCCL_DEBUG", "INFO"},
                          {"NCCL_DEBUG_SUBSYS", "INIT,ENV,GRAPH,TUNING"},
                          {"NCCL_DEBUG_FILE", (folder.path / fmt::format("log.{}", rank)).string()}};
      for (const auto& [name, value] : own) setenv(name.c_str(), value.c_str(), 1);
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      rank_of(rank, ranks, calls, folder.path);
    });
  bool good = true;
  for (Child& c : children) good = c.wait() == 0 && good;
  std::stringstream log;
  log << std::ifstream(folder.path / "log.0").rdbuf();
  CHECK_MESSAGE(good, log.str());
  return log.str();
}

// "ALGORITHM PROTOCOL" of each call, in order.
std::vector<std::string> chosen(const std::string& log) {
  static const std::regex line(R"((\w+): (\d+) Bytes -> Algo (\S+) proto (\S+) channel)");
  std::vector<std::string> all;
  for (std::sregex_iterator i(log.begin(), log.end(), line), end; i != end; ++i)
    all.push_back(fmt::format("{} {} {} {}", (*i)[1].str(), (*i)[2].str(), (*i)[3].str(), (*i)[4].str()));
  return all;
}

// What NCCL would hardly choose by itself.
const std::string kTable = R"({"schema": "gccl/table/1", "name": "t",
  "machine": {"cluster": "c", "nodes": 64, "cards_per_node": 1}, "entries": [
  {"collective": "allreduce", "to_bytes": 4096, "algorithm": "ring", "protocol": "Simple"},
  {"collective": "allreduce", "from_bytes": 4096, "to_bytes": 65536, "algorithm": "tree", "protocol": "Simple"},
  {"collective": "allreduce", "from_bytes": 65536, "to_bytes": "1MiB", "algorithm": "ring", "protocol": "LL"},
  {"collective": "allreduce", "from_bytes": "1MiB", "algorithm": "tree", "protocol": "LL"},
  {"collective": "allgather", "to_bytes": 65536, "algorithm": "ring", "protocol": "Simple"},
  {"collective": "allgather", "from_bytes": 65536, "algorithm": "pat", "protocol": "Simple"},
  {"collective": "reduce_scatter", "to_bytes": 65536, "algorithm": "ring", "protocol": "Simple"},
  {"collective": "reduce_scatter", "from_bytes": 65536, "algorithm": "ring", "protocol": "LL"},
  {"collective": "broadcast", "to_bytes": 65536, "algorithm": "chain", "protocol": "Simple"},
  {"collective": "broadcast", "from_bytes": 65536, "algorithm": "chain", "protocol": "LL"},
  {"collective": "reduce", "algorithm": "chain", "protocol": "Simple"}]})";

std::string by_table(const Call& c) {
  const std::size_t b = c.bytes;
  switch (c.function) {
    case kAllReduce: return b < 4096 ? "RING SIMPLE" : b < 65536 ? "TREE SIMPLE" : b < 1 << 20 ? "RING LL" : "TREE LL";
    case kAllGather: return b < 65536 ? "RING SIMPLE" : "PAT SIMPLE";
    case kReduceScatter: return b < 65536 ? "RING SIMPLE" : "RING LL";
    case kBroadcast: return b < 65536 ? "RING SIMPLE" : "RING LL";
    case kReduce: break;
  }
  return "RING SIMPLE";
}

// As NCCL logs it, by the bytes of a block.
std::string name_of(const Call& c, int ranks) {
  const bool of_blocks = c.function == kAllGather || c.function == kReduceScatter;
  return fmt::format("{} {}", kNames[c.function], of_blocks ? c.bytes / std::size_t(ranks) : c.bytes);
}

// Whether the test can be made here; says why not. In a process of its own: one that has used CUDA cannot be forked.
bool possible() {
  const int status =
      Child([] {
        alarm(60);
        try {
          void* const nccl = open_nccl();
          if (!nccl) throw std::runtime_error(dlerror());
          int version = 0;
          must(symbol<int(int*)>(nccl, "ncclGetVersion")(&version), "ncclGetVersion");
          if (version < 22700) throw std::runtime_error(fmt::format("NCCL {} is too old", version));
          const Gpu gpu;
          UniqueId id;
          Comm alone = nullptr;
          must(symbol<int(UniqueId*)>(nccl, "ncclGetUniqueId")(&id), "ncclGetUniqueId");
          must(symbol<int(Comm*, int, UniqueId, int)>(nccl, "ncclCommInitRank")(&alone, 1, id, 0), "ncclCommInitRank");
        } catch (const std::exception& e) {
          std::cout << "skipped, without NCCL and a GPU: " << e.what() << std::endl;
          return 1;
        }
        return 0;
      }).wait();
  if (WIFSIGNALED(status))
    std::cout << "skipped, without NCCL and a GPU: trying them ended by signal " << WTERMSIG(status) << std::endl;
  return status == 0;
}

}  // namespace

TEST_CASE("NCCL runs each call as the table says, and its results are right") {
  if (!possible()) return;
  for (const int ranks : {2, 4, 8}) {
    CAPTURE(ranks);
    const Folder folder;
    const auto calls = calls_on(ranks);
    const std::string log = run(ranks, calls,
                                {{"NCCL_TUNER_PLUGIN", GCCL_TUNER},
                                 {"GCCL_TUNING_FILE", folder.write("table.json", kTable).string()},
                                 {"GCCL_CLUSTER", ""}},
                                folder);
    CHECK(log.find("GCCL tuner:") != std::string::npos);
    const auto found = chosen(log);
    REQUIRE(found.size() == calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i)
      CHECK(found[i] == fmt::format("{} {}", name_of(calls[i], ranks), by_table(calls[i])));
  }
}

TEST_CASE("NCCL starts and chooses as without the plug-in where it has nothing that it can use") {
  if (!possible()) return;
  const Folder folder;
  const auto calls = calls_on(2);
  const auto alone = chosen(run(2, calls, {{"NCCL_TUNER_PLUGIN", "none"}}, folder));
  REQUIRE(alone.size() == calls.size());
  const std::string log = run(2, calls,
                              {{"NCCL_TUNER_PLUGIN", GCCL_TUNER},
                               {"GCCL_TUNING_FILE", (folder.path / "gone.json").string()},
                               {"GCCL_CLUSTER", ""}},
                              folder);
  CHECK(log.find("gone.json: no such file") != std::string::npos);
  CHECK(chosen(log) == alone);
  CHECK(alone[0] != "AllReduce 64 RING SIMPLE");
}

TEST_CASE("NCCL runs each call as the planner plans on a described cluster") {
  if (!possible()) return;
  const Folder folder;
  const auto calls = calls_on(4);
  const std::string log =
      run(4, calls,
          {{"NCCL_TUNER_PLUGIN", GCCL_TUNER},
           {"GCCL_TUNING_FILE", ""},
           {"GCCL_CLUSTER", (gccl::test::kRoot / "topologies/dgx-h100-superpod-2048.json").string()}},
          folder);
  CHECK(log.find("GCCL tuner: 4 ranks on 4 nodes: ") != std::string::npos);
  CHECK(chosen(log).size() == calls.size());
}
