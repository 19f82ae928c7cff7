// Memory that is short where a test says so: new and delete of the whole program. For one file of a program to include.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// While it is true, threads find no memory, those apart that have said that they do, once some allocations are spared;
// and whether one looked for some.
inline std::atomic<bool> starving{false}, missed_some{false};
inline std::atomic<int> spared{0};
inline thread_local bool fed = false;

// One allocation of a thread that fails, the one after `left` others, or that one and all later ones.
struct Denied {
  int left = -1;  // negative: none
  bool lasting = false;
  bool met = false;
};
inline thread_local Denied denied;

inline bool is_denied() {
  if (denied.left < 0) return false;
  if (denied.left > 0) return --denied.left, false;
  if (!denied.lasting) denied.left = -1;
  denied.met = true;
  return true;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* const p = operator new(bytes, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (starving && !fed && spared-- <= 0) return missed_some = true, nullptr;
  return is_denied() ? nullptr : std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
