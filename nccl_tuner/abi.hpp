// The interface of NCCL's tuner plug-ins, versions 2 to 6, and what it needs of NCCL's types. A binary interface:
// fields are in NCCL's order, and numbers are NCCL's. Source: NVIDIA/nccl src/include/plugin/tuner/tuner_v2.h to
// tuner_v6.h, src/include/nccl_common.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gccl::nccl {

using Result = int;  // ncclResult_t
inline constexpr Result kSuccess = 0;

using Function = int;  // ncclFunc_t: broadcast, reduce, all-gather, reduce-scatter, all-reduce, and others from 5 on

inline constexpr int kLogWarn = 2, kLogInfo = 3;  // ncclDebugLogLevel
inline constexpr unsigned long kTuning = 0x40;    // ncclDebugLogSubSys
using Logger = void (*)(int level, unsigned long subsystems, const char* file, int line, const char* format, ...);

// Entries of the cost table are microseconds, and the lowest wins; an entry of kImpossible stays as it is.
inline constexpr float kImpossible = -1.0F, kForced = 0.0F;
inline constexpr int kUndefined = -1;  // an algorithm or protocol of version 2 that nobody has set

struct TunerV2 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get)(void* context, Function function, std::size_t bytes, int collnet, int nvls, int grouped, int* algorithm,
                int* protocol, int* channels);
  Result (*destroy)(void* context);
};

// `costs` is an array [algorithms][protocols] of floats behind its type.
struct TunerV3 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get)(void* context, Function function, std::size_t bytes, int grouped, float** costs, int algorithms,
                int protocols, int* channels);
  Result (*destroy)(void* context);
};

using GetV4 = Result (*)(void* context, Function function, std::size_t bytes, int grouped, float** costs,
                         int algorithms, int protocols, int registered, int* channels);
struct TunerV4 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  GetV4 get;
  Result (*destroy)(void* context);
};

// What else version 5 hands over: NVLink domains, and constants of NCCL's model that a plug-in may change. This one
// looks at neither.
using InitV5 = Result (*)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes, Logger log,
                          void* nvlink_domains, void* constants);
struct TunerV5 {
  const char* name;
  InitV5 init;
  GetV4 get;
  Result (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  InitV5 init;
  GetV4 get;
  Result (*finalize)(void* context);
  Result (*chunk)(void* context, Function function, std::size_t bytes, int algorithm, int protocol, int channels,
                  std::size_t* bytes_of_chunk);  // null: NCCL's own
};

}  // namespace gccl::nccl
