// How much shared memory the machine has left, as a test wants it: for posix_fallocate (shm.cpp) and fstatvfs
// (shm_shared.cpp) of this program.
#pragma once

#include <atomic>

namespace gccl::test {

inline std::atomic<bool> memory_is_full{false};
inline std::atomic<int> reservations_left{-1};   // then ENOSPC; -1: no limit
inline std::atomic<int> thousandths_left{1000};  // of all

}  // namespace gccl::test
