// libnccl-tuner-gccl.so as NCCL uses it: opened by name, found by the symbols of each version of the interface, asked
// with tables of costs. The interface is declared here once more, from NCCL's documentation of it.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tuner_test {

enum { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce, kSendRecv };
enum { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
enum { kLL, kLL128, kSimple };

using Logger = void (*)(int, unsigned long, const char*, int, const char*, ...);
using InitOld = int (*)(std::size_t, std::size_t, Logger, void**);
using InitNew = int (*)(void**, std::uint64_t, std::size_t, std::size_t, Logger, void*, void*);
using Get2 = int (*)(void*, int, std::size_t, int, int, int, int*, int*, int*);
using Get3 = int (*)(void*, int, std::size_t, int, float**, int, int, int*);
using Get4 = int (*)(void*, int, std::size_t, int, float**, int, int, int, int*);
using End = int (*)(void*);
struct Tuner2 {
  const char* name;
  InitOld init;
  Get2 get;
  End end;
};
struct Tuner3 {
  const char* name;
  InitOld init;
  Get3 get;
  End end;
};
struct Tuner4 {
  const char* name;
  InitOld init;
  Get4 get;
  End end;
};
struct Tuner5 {
  const char* name;
  InitNew init;
  Get4 get;
  End end;
};
struct Tuner6 : Tuner5 {
  int (*chunk)(void*, int, std::size_t, int, int, int, std::size_t*);
};

// What the plug-in said, warnings apart.
inline std::mutex log_mutex;
inline std::vector<std::string> warnings, remarks;
inline void log(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  (level == 2 ? warnings : remarks).push_back(text);
}

template <class T>
const T& tuner(int version) {
  static void* const library = ::dlopen(GCCL_TUNER, RTLD_NOW | RTLD_LOCAL);
  if (!library) FAIL(std::string(::dlerror()));
  const void* const found = ::dlsym(library, ("ncclTunerPlugin_v" + std::to_string(version)).c_str());
  REQUIRE(found);
  const T& t = *static_cast<const T*>(found);
  REQUIRE(std::string(t.name) == "GCCL");
  return t;
}

// One communicator by one version.
struct Comm {
  int version;
  void* context = nullptr;
  Comm(int v, std::size_t ranks, std::size_t nodes, Logger logger = log) : version(v) {
    int result = 0;
    if (v == 2) result = tuner<Tuner2>(2).init(ranks, nodes, logger, &context);
    if (v == 3) result = tuner<Tuner3>(3).init(ranks, nodes, logger, &context);
    if (v == 4) result = tuner<Tuner4>(4).init(ranks, nodes, logger, &context);
    if (v >= 5) {
      int domains[3] = {1, 8, 8};
      double constants[7 * 3 * 4 + 5 * 4 * 3] = {};
      result = tuner<Tuner5>(v).init(&context, 7, ranks, nodes, logger, domains, constants);
    }
    CHECK(result == 0);
  }
  ~Comm() {
    int result = 0;
    if (version == 2) result = tuner<Tuner2>(2).end(context);
    if (version == 3) result = tuner<Tuner3>(3).end(context);
    if (version == 4) result = tuner<Tuner4>(4).end(context);
    if (version >= 5) result = tuner<Tuner5>(version).end(context);
    CHECK(result == 0);
  }
  Comm(const Comm&) = delete;
  int ask(int function, std::size_t bytes, float* costs, int algorithms, int protocols, int* channels) const {
    auto** const table = reinterpret_cast<float**>(costs);
    if (version == 3) return tuner<Tuner3>(3).get(context, function, bytes, 1, table, algorithms, protocols, channels);
    if (version == 4)
      return tuner<Tuner4>(4).get(context, function, bytes, 1, table, algorithms, protocols, 0, channels);
    return tuner<Tuner5>(version).get(context, function, bytes, 1, table, algorithms, protocols, 0, channels);
  }
};

// NCCL's costs, and which of them the plug-in set to 0.
struct Answer {
  std::set<std::pair<int, int>> forced;
  bool others_kept = true;
  int channels = 0;
};
inline Answer ask(const Comm& comm, int function, std::size_t bytes, int algorithms = 7, int protocols = 3,
                  const std::set<std::pair<int, int>>& impossible = {}) {
  std::vector<float> costs(std::size_t(algorithms * protocols) + 8, 1e9F);  // what is behind the table stays, too
  for (int a = 0; a < algorithms; ++a)
    for (int p = 0; p < protocols; ++p)
      costs[std::size_t(a * protocols + p)] = impossible.count({a, p}) ? -1 : float(10 + a - p);
  const std::vector<float> before = costs;
  Answer answer;
  CHECK(comm.ask(function, bytes, costs.data(), algorithms, protocols, &answer.channels) == 0);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] == before[i]) continue;
    answer.others_kept = answer.others_kept && costs[i] == 0 && i < std::size_t(algorithms * protocols);
    answer.forced.insert({int(i) / protocols, int(i) % protocols});
  }
  CHECK(answer.others_kept);
  return answer;
}
using Forced = std::set<std::pair<int, int>>;

inline std::string table(const std::string& entries, const std::string& cluster = "c") {
  return R"({"schema": "gccl/table/1", "name": "t", "machine": {"cluster": ")" + cluster +
         R"(", "nodes": 4, "cards_per_node": 8}, "entries": [)" + entries + "]}";
}
inline const std::string kEntries = R"(
  {"collective": "allreduce", "to_bytes": 65536, "algorithm": "tree", "protocol": "LL"},
  {"collective": "allreduce", "from_bytes": 65536, "to_bytes": "1MiB", "algorithm": "ring", "protocol": "LL128",
   "chunks": 8, "channels": 8},
  {"collective": "allreduce", "from_bytes": "1MiB", "ranks_max": 16, "algorithm": "nvls", "protocol": "Simple"},
  {"collective": "allreduce", "from_bytes": "1MiB", "ranks_min": 17, "algorithm": "nvls_tree", "protocol": "Simple"},
  {"collective": "allgather", "nodes_min": 2, "algorithm": "pat", "protocol": "Simple"},
  {"collective": "broadcast", "algorithm": "chain", "protocol": "Simple", "chunks": 4, "channels": 4},
  {"collective": "reduce", "algorithm": "chain"})";

inline void sources(const std::string& tuning_file, const std::string& cluster) {
  ::setenv("GCCL_TUNING_FILE", tuning_file.c_str(), 1);
  ::setenv("GCCL_CLUSTER", cluster.c_str(), 1);
  warnings.clear();
  remarks.clear();
}

}  // namespace tuner_test
