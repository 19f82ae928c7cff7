// Limits of algorithms in which every rank sends to every other one: beyond them n (n-1) messages only cost time, on a
// machine as in a simulation of every algorithm.
#pragma once

#include "libgccl/schedule/call.hpp"
#include "libgccl/schedule/group.hpp"

namespace gccl {

// For whole vectors and signals: overheads of 31 messages come to more than the five latencies of a tree.
constexpr Rank kFewRanks = 32;
// For parts of vectors: the largest domain behind one crossbar (NVIDIA GH200's NVLink Switch System) has 256 cards.
constexpr Rank kCrossbarRanks = 256;

constexpr std::string_view kFewRanksLimit = "it is for at most 32 ranks";
constexpr std::string_view kCrossbarRanksLimit = "it is for at most 256 ranks";

inline bool few_ranks(const Call&, const View& v) { return v.all.size <= kFewRanks; }
inline bool crossbar_ranks(const Call&, const View& v) { return v.all.size <= kCrossbarRanks; }

}  // namespace gccl
