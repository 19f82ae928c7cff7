#include "libgccl/select/others/openmpi_rules.hpp"

#include <limits>
#include <span>

namespace gccl {
namespace {

// The first rule that both numbers are below decides.
struct OpenMpiRule {
  double ranks_below, bytes_below;
  int id;
};
constexpr double kAny = std::numeric_limits<double>::infinity();

constexpr OpenMpiRule kAllreduce[] = {
    {4, 8, 4},       {4, 4096, 3},     {4, 8192, 4},     {4, 16384, 3},    {4, 65536, 4},   {4, 262144, 5},
    {4, kAny, 6},    {8, 16, 4},       {8, 8192, 3},     {8, kAny, 6},     {16, 8192, 3},   {16, kAny, 6},
    {32, 64, 5},     {32, 4096, 3},    {32, kAny, 6},    {64, 128, 5},     {64, kAny, 6},   {128, 262144, 3},
    {128, kAny, 6},  {256, 131072, 2}, {256, 262144, 3}, {256, kAny, 6},   {512, 4096, 2},  {512, kAny, 6},
    {2048, 2048, 2}, {2048, 16384, 3}, {2048, kAny, 6},  {4096, 2048, 2},  {4096, 4096, 5}, {4096, 16384, 3},
    {4096, kAny, 6}, {kAny, 2048, 2},  {kAny, 16384, 5}, {kAny, 32768, 3}, {kAny, kAny, 6}};
constexpr OpenMpiRule kAlltoall[] = {
    {3, 2, 2},        {3, 4, 5},        {3, 16, 2},        {3, 64, 5},        {3, 256, 2},     {3, 4096, 5},
    {3, 32768, 2},    {3, 262144, 4},   {3, 1048576, 5},   {3, kAny, 2},      {8, 8192, 4},    {8, 16384, 1},
    {8, 65536, 4},    {8, 524288, 1},   {8, 1048576, 2},   {8, kAny, 1},      {16, 262144, 4}, {16, kAny, 1},
    {32, 4, 4},       {32, 512, 3},     {32, 8192, 4},     {32, 32768, 1},    {32, 262144, 4}, {32, 524288, 1},
    {32, kAny, 4},    {64, 512, 3},     {64, 524288, 1},   {64, kAny, 4},     {128, 1024, 3},  {128, 2048, 1},
    {128, 4096, 4},   {128, 262144, 1}, {128, kAny, 2},    {256, 1024, 3},    {256, 2048, 4},  {256, 262144, 1},
    {256, kAny, 2},   {512, 1024, 3},   {512, 8192, 4},    {512, 32768, 1},   {512, kAny, 2},  {1024, 512, 3},
    {1024, 8192, 4},  {1024, 16384, 1}, {1024, 131072, 4}, {1024, 262144, 1}, {1024, kAny, 2}, {2048, 512, 3},
    {2048, 1024, 4},  {2048, 2048, 1},  {2048, 16384, 4},  {2048, 262144, 1}, {2048, kAny, 4}, {4096, 1024, 3},
    {4096, 4096, 4},  {4096, 8192, 1},  {4096, 131072, 4}, {4096, kAny, 1},   {kAny, 2048, 3}, {kAny, 8192, 4},
    {kAny, 16384, 1}, {kAny, 32768, 4}, {kAny, 65536, 1},  {kAny, kAny, 4}};
constexpr OpenMpiRule kAlltoallv[] = {{4, kAny, 2},   {64, kAny, 1},   {128, kAny, 2},
                                      {256, kAny, 1}, {1024, kAny, 2}, {kAny, kAny, 1}};
constexpr OpenMpiRule kBarrier[] = {{4, kAny, 3},   {8, kAny, 1},    {64, kAny, 3},   {256, kAny, 4},
                                    {512, kAny, 6}, {1024, kAny, 4}, {4096, kAny, 6}, {kAny, kAny, 4}};
constexpr OpenMpiRule kBroadcast[] = {
    {4, 32, 3},        {4, 256, 5},     {4, 512, 3},       {4, 1024, 7},     {4, 32768, 1},    {4, 131072, 5},
    {4, 262144, 2},    {4, 524288, 1},  {4, 1048576, 6},   {4, kAny, 5},     {8, 64, 5},       {8, 128, 6},
    {8, 2048, 5},      {8, 8192, 6},    {8, 1048576, 1},   {8, kAny, 2},     {16, 8, 7},       {16, 64, 5},
    {16, 4096, 7},     {16, 16384, 5},  {16, 32768, 6},    {16, kAny, 1},    {32, 4096, 7},    {32, 1048576, 6},
    {32, kAny, 8},     {64, 2048, 6},   {64, kAny, 7},     {128, kAny, 7},   {256, 2, 6},      {256, 16384, 5},
    {256, 32768, 1},   {256, 65536, 5}, {256, kAny, 7},    {1024, 16384, 7}, {1024, 32768, 4}, {1024, kAny, 7},
    {2048, 524288, 7}, {2048, kAny, 8}, {4096, 262144, 7}, {4096, kAny, 8},  {kAny, 8192, 7},  {kAny, 16384, 5},
    {kAny, 262144, 7}, {kAny, kAny, 8}};
constexpr OpenMpiRule kReduce[] = {
    {4, 8, 7},       {4, 16, 4},       {4, 32, 3},       {4, 262144, 1},  {4, 524288, 3}, {4, 1048576, 2},
    {4, kAny, 3},    {8, 4096, 4},     {8, 65536, 2},    {8, 262144, 5},  {8, 524288, 1}, {8, 1048576, 5},
    {8, kAny, 1},    {16, 8192, 4},    {16, kAny, 5},    {32, 4096, 4},   {32, kAny, 5},  {256, kAny, 5},
    {512, 8192, 5},  {512, 16384, 6},  {512, kAny, 5},   {2048, kAny, 5}, {4096, 512, 5}, {4096, 1024, 6},
    {4096, 8192, 5}, {4096, 16384, 6}, {4096, kAny, 5},  {kAny, 16, 5},   {kAny, 32, 6},  {kAny, 1024, 5},
    {kAny, 2048, 6}, {kAny, 8192, 5},  {kAny, 16384, 6}, {kAny, kAny, 5}};
constexpr OpenMpiRule kReduceScatterv[] = {
    {4, 65536, 3},    {4, 131072, 4},   {4, kAny, 3},     {8, 8, 1},       {8, 262144, 2},  {8, kAny, 3},
    {32, 262144, 2},  {32, kAny, 3},    {64, 64, 1},      {64, 2048, 2},   {64, 524288, 4}, {64, kAny, 3},
    {128, 256, 1},    {128, 512, 2},    {128, 2048, 4},   {128, 4096, 2},  {128, kAny, 4},  {256, 256, 1},
    {256, 512, 2},    {256, kAny, 4},   {512, 256, 1},    {512, 1024, 2},  {512, kAny, 4},  {1024, 512, 1},
    {1024, 2048, 2},  {1024, 8192, 4},  {1024, 16384, 2}, {1024, kAny, 4}, {2048, 512, 1},  {2048, 4096, 2},
    {2048, 16384, 4}, {2048, 32768, 2}, {2048, kAny, 4},  {4096, 512, 1},  {4096, 4096, 2}, {4096, kAny, 4},
    {kAny, 1024, 1},  {kAny, 8192, 2},  {kAny, kAny, 4}};
constexpr OpenMpiRule kReduceScatter[] = {
    {4, 4, 2},         {4, 8, 4},        {4, 16, 3},       {4, 128, 4},   {4, 256, 3},   {4, 4096, 4},
    {4, 8192, 3},      {4, 131072, 4},   {4, kAny, 1},     {8, 8, 3},     {8, 32, 2},    {8, 256, 4},
    {8, 8192, 3},      {8, 16384, 4},    {8, 1048576, 3},  {8, kAny, 1},  {16, 4, 1},    {16, 32, 3},
    {16, 128, 4},      {16, 524288, 3},  {16, 4194304, 1}, {16, kAny, 4}, {32, 32, 1},   {32, 524288, 3},
    {32, 2097152, 1},  {32, 4194304, 3}, {32, kAny, 4},    {kAny, 4, 3},  {kAny, 16, 1}, {kAny, 65536, 4},
    {kAny, 262144, 1}, {kAny, kAny, 4}};
constexpr OpenMpiRule kAllgather[] = {
    {3, kAny, 6},      {32, kAny, 3},   {64, 1024, 3}, {64, 65536, 5},   {64, kAny, 4},    {128, 512, 3},
    {128, 65536, 5},   {128, kAny, 4},  {256, 512, 3}, {256, 131072, 5}, {256, 524288, 4}, {256, 1048576, 5},
    {256, kAny, 4},    {512, 32, 3},    {512, 128, 2}, {512, 1024, 3},   {512, 131072, 5}, {512, 524288, 4},
    {512, 1048576, 5}, {512, kAny, 4},  {1024, 64, 3}, {1024, 256, 2},   {1024, 2048, 3},  {1024, kAny, 5},
    {2048, 4, 3},      {2048, 8, 2},    {2048, 16, 3}, {2048, 32, 2},    {2048, 256, 3},   {2048, 512, 2},
    {2048, 4096, 3},   {2048, kAny, 5}, {4096, 32, 2}, {4096, 128, 3},   {4096, 512, 2},   {4096, 4096, 3},
    {4096, kAny, 5},   {kAny, 2, 3},    {kAny, 8, 2},  {kAny, 16, 3},    {kAny, 512, 2},   {kAny, 4096, 3},
    {kAny, kAny, 5}};
constexpr OpenMpiRule kAllgatherv[] = {
    {3, 2048, 3},    {3, 4096, 5},    {3, 8192, 3},   {3, kAny, 5},    {8, 256, 1},     {8, 4096, 4},
    {8, 8192, 3},    {8, 16384, 4},   {8, 262144, 2}, {8, kAny, 4},    {16, 1024, 1},   {16, kAny, 2},
    {32, 128, 1},    {32, 262144, 2}, {32, kAny, 3},  {64, 256, 1},    {64, 8192, 2},   {64, kAny, 3},
    {128, 256, 1},   {128, 4096, 2},  {128, kAny, 3}, {256, 1024, 2},  {256, 65536, 4}, {256, kAny, 3},
    {512, 1024, 2},  {512, kAny, 3},  {1024, 512, 2}, {1024, 1024, 1}, {1024, 4096, 2}, {1024, 1048576, 4},
    {1024, kAny, 3}, {kAny, 4096, 2}, {kAny, kAny, 4}};
constexpr OpenMpiRule kGather[] = {{4, 2, 3},      {4, 4, 1},      {4, 32768, 2},  {4, 65536, 1},
                                   {4, 131072, 2}, {4, kAny, 3},   {8, 1024, 2},   {8, 8192, 1},
                                   {8, 32768, 2},  {8, 262144, 1}, {8, kAny, 3},   {256, kAny, 2},
                                   {512, 2048, 2}, {512, 8192, 1}, {512, kAny, 2}, {kAny, kAny, 2}};
constexpr OpenMpiRule kScatter[] = {{4, 2, 3},      {4, 131072, 1},   {4, 262144, 3}, {4, kAny, 1},    {8, 2048, 2},
                                    {8, 4096, 1},   {8, 8192, 2},     {8, 32768, 1},  {8, 1048576, 3}, {8, kAny, 1},
                                    {16, 16384, 2}, {16, 1048576, 3}, {16, kAny, 1},  {32, 16384, 2},  {32, 32768, 1},
                                    {32, kAny, 3},  {64, 512, 2},     {64, 8192, 3},  {64, 16384, 2},  {64, kAny, 3},
                                    {kAny, 512, 2}, {kAny, kAny, 3}};

struct OpenMpiRules {
  std::span<const OpenMpiRule> rules;
  std::span<const std::string_view> names;  // of algorithm 1, 2, ...
};

constexpr std::string_view kAllreduceNames[] = {"basic_linear",   "nonoverlapping", "recursive_doubling", "ring",
                                                "segmented_ring", "rabenseifner",   "allgather_reduce"};
constexpr std::string_view kAlltoallNames[] = {"linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"};
constexpr std::string_view kAlltoallvNames[] = {"basic_linear", "pairwise"};
constexpr std::string_view kBarrierNames[] = {"linear", "double_ring", "recursive_doubling",
                                              "bruck",  "two_proc",    "tree"};
constexpr std::string_view kBroadcastNames[] = {"basic_linear",          "chain",    "pipeline", "split_binary_tree",
                                                "binary_tree",           "binomial", "knomial",  "scatter_allgather",
                                                "scatter_allgather_ring"};
constexpr std::string_view kReduceNames[] = {"linear",   "chain",           "pipeline",    "binary",
                                             "binomial", "in-order_binary", "rabenseifner"};
constexpr std::string_view kReduceScatterNames[] = {"basic_linear", "recursive_doubling", "recursive_halving",
                                                    "butterfly"};
constexpr std::string_view kReduceScattervNames[] = {"non-overlapping", "recursive_halving", "ring", "butterfly"};
constexpr std::string_view kAllgatherNames[] = {"linear", "bruck",    "recursive_doubling",
                                                "ring",   "neighbor", "two_proc"};
constexpr std::string_view kAllgathervNames[] = {"default", "bruck", "ring", "neighbor", "two_proc"};
constexpr std::string_view kGatherNames[] = {"basic_linear", "binomial", "linear_sync"};
constexpr std::string_view kScatterNames[] = {"basic_linear", "binomial", "linear_nb"};

OpenMpiRules openmpi_rules(Collective kind) {
  switch (kind) {
    case Collective::allreduce: return {kAllreduce, kAllreduceNames};
    case Collective::allgather: return {kAllgather, kAllgatherNames};
    case Collective::reduce_scatter: return {kReduceScatter, kReduceScatterNames};
    case Collective::broadcast: return {kBroadcast, kBroadcastNames};
    case Collective::reduce: return {kReduce, kReduceNames};
    case Collective::gather: return {kGather, kGatherNames};
    case Collective::scatter: return {kScatter, kScatterNames};
    case Collective::alltoall: return {kAlltoall, kAlltoallNames};
    case Collective::alltoallv: return {kAlltoallv, kAlltoallvNames};
    case Collective::barrier: return {kBarrier, kBarrierNames};
    case Collective::sendrecv: return {};
    case Collective::allgatherv: return {kAllgatherv, kAllgathervNames};
    case Collective::reduce_scatterv: return {kReduceScatterv, kReduceScattervNames};
  }
  return {};
}

}  // namespace

OpenMpiAlgorithm openmpi_algorithm(Collective kind, Rank ranks, double bytes) {
  const OpenMpiRules all = openmpi_rules(kind);
  for (const OpenMpiRule& r : all.rules)
    if (ranks < r.ranks_below && bytes < r.bytes_below) return {r.id, all.names[std::size_t(r.id) - 1]};
  return {};
}

}  // namespace gccl
