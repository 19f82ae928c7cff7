// How the ranks of a job find each other: who I am, how many we are, and an all-gather to exchange addresses with.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/status.hpp"
#include "libgccl/bootstrap/settings.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// All ranks' few bytes for all ranks. Collective and blocking, used while a world is being made.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // `mine` has the same length on every rank; *all becomes those of all ranks, in rank order. Gives up after
  // timeout_ms, naming the ranks that did not come.
  virtual Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) = 0;
};

// The caller's own all-gather; its time is the caller's to limit.
class CallersExchange : public Exchange {
 public:
  CallersExchange(GCCL_Allgather_function function, void* context, Rank size)
      : function_(function), context_(context), size_(size) {}
  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t) override;

 private:
  const GCCL_Allgather_function function_;
  void* const context_;
  const Rank size_;
};

// One rank's part in the bootstrap of a job.
struct Bootstrap : RankSettings {
  Rank rank = 0, size = 1;
  Status wrong;  // why this rank cannot take part: for the other ranks, which would wait for it
  std::unique_ptr<Exchange> exchange;
};

// Resolves a configuration against the environment (docs/start.md names the variables) and opens the place where the
// ranks meet; the first all_gather waits for the others. `rank` >= 0 overrides the configuration's, whose
// struct_bytes is not looked at. GCCL_ERR_INVALID_ARGUMENT when the environment contradicts itself or misses something,
// naming the variable; GCCL_ERR_SYSTEM when rank 0 cannot listen. A setting that is wrong and with which the others can
// be met all the same is no error here but Bootstrap::wrong. Any thread; several may do so at once.
Status open_bootstrap(const GCCL_Config* config, int rank, Bootstrap* out);

// The same for a process that joins a job which runs: it needs a store. *wish becomes the rank that it was started as,
// or kNobody.
inline constexpr Rank kNobody = ~Rank(0);
Status read_joining(const GCCL_Config* config, RankSettings* out, Rank* wish);

}  // namespace gccl
