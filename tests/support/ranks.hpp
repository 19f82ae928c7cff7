// Tests of the C++ interface on several ranks: failures are exceptions.
#pragma once

#include <stdexcept>
#include <string>

#include "gccl/gccl.hpp"
#include "tests/support/rank_job.hpp"

// In the ranks, where nobody would see a failed CHECK.
#define MUST(condition)                                                                                   \
  do {                                                                                                    \
    if (!(condition))                                                                                     \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition); \
  } while (false)

// Calls f(rank) in n processes. Returns what went wrong; "" when nothing did.
template <class F>
std::string on_ranks(int n, F f) {
  const auto ends = ranks::run({.size = n}, f);
  for (const ranks::End& e : ends)
    if (!e.good()) return ranks::texts(ends);
  return "";
}

// The result of what f throws, and its text; GCCL_SUCCESS when it does not.
template <class F>
GCCL_Result result_of(F f, std::string* text = nullptr) {
  try {
    f();
  } catch (const gccl::Error& e) {
    if (text) *text = e.what();
    return e.result();
  }
  return GCCL_SUCCESS;
}
