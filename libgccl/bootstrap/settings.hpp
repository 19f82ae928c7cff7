// What a configuration and the environment say about a start, apart from who this process is.
#pragma once

#include <cstdint>
#include <string>

#include "gccl/gccl.h"
#include "libgccl/base/environment.hpp"

namespace gccl {

// What a process brings to a job.
struct RankSettings {
  std::string host;      // the same on all ranks of a machine
  std::string store;     // where the ranks meet, as in GCCL_Config, and later those that join; empty: nowhere
  std::string secret;    // empty: none, loopback only
  std::string address;   // to listen on, as in GCCL_Config; empty: found out
  std::string backends;  // "shm,tcp"
  std::int64_t timeout_ms = GCCL_TIMEOUT_NONE;
  std::int64_t start_timeout_ms = 60000;  // GCCL_START_TIMEOUT_MS
  std::int64_t join_timeout_ms = -1;      // GCCL_JOIN_TIMEOUT_MS; -1: none
  std::int64_t replace_wait_ms = -1;      // GCCL_REPLACE_WAIT_MS; -1: not set
  std::int64_t detection_ms = 5000;       // GCCL_DETECTION_MS
  bool progress_thread = false;
};

// As they are read: an empty host is to be found out.
struct Settings : RankSettings {
  bool can_meet = false;  // store and secret have been read, and are not wrong
};

// The configuration first, then GCCL_STORE, GCCL_SECRET, GCCL_SECRET_FILE, GCCL_HOST, GCCL_ADDRESS, GCCL_BACKENDS,
// GCCL_TIMEOUT_MS, GCCL_START_TIMEOUT_MS, GCCL_JOIN_TIMEOUT_MS, GCCL_DETECTION_MS and GCCL_PROGRESS_THREAD.
// Variables with an empty value count as not set. GCCL_ERR_INVALID_ARGUMENT names what is wrong; *out then holds what
// was read before.
Status read_settings(const GCCL_Config& config, const Environment& environment, Settings* out);

}  // namespace gccl
