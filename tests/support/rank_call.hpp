// One collective call on one rank, with everything that makes it checkable: inputs that every rank can compute, buffers
// with guards around them, and what they hold afterwards. Knows gccl.h, which says where things lie, and the definition
// of the collectives, which says what they are (definition.hpp); nothing behind these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/schedule/definition.hpp"

namespace ranks {

using Kind = gccl::Collective;
// Those that gccl.h has.
inline constexpr Kind kKinds[] = {Kind::broadcast,  Kind::reduce,         Kind::allreduce,       Kind::allgather,
                                  Kind::allgatherv, Kind::reduce_scatter, Kind::reduce_scatterv, Kind::alltoall,
                                  Kind::alltoallv,  Kind::scatter,        Kind::gather,          Kind::barrier};

// The built-in types and operations.
inline constexpr GCCL_Dtype kTypes[] = {GCCL_INT8,    GCCL_UINT8,    GCCL_INT32,   GCCL_UINT32,
                                        GCCL_INT64,   GCCL_UINT64,   GCCL_FLOAT16, GCCL_FLOAT32,
                                        GCCL_FLOAT64, GCCL_BFLOAT16, GCCL_INT16,   GCCL_UINT16};
inline constexpr GCCL_Op kOps[] = {GCCL_SUM, GCCL_PROD, GCCL_MAX, GCCL_MIN, GCCL_AVG};
std::size_t bytes_of(GCCL_Dtype dtype);

// A small generator, so that every rank draws the same from the same seed.
using Random = gccl::splitmix::Generator;

enum class Place : std::uint8_t {
  apart,
  in_place,  // GCCL_IN_PLACE
  same,      // NCCL's addresses, or GCCL_IN_PLACE where gccl.h names none
  mixed,     // another of these on each rank, where gccl.h lets ranks differ; else apart
};

struct CallCase {
  Kind kind = Kind::barrier;
  GCCL_Dtype dtype = GCCL_FLOAT32;
  GCCL_Op op = GCCL_SUM;
  std::size_t count = 0;  // of the v-forms: the longest block
  int root = 0;
  Place place = Place::apart;
  bool displaced = false;  // v-forms that have displacements: with gaps, out of order
  std::uint64_t seed = 1;  // of values and of the v-forms' lengths
};
std::string describe(const CallCase& c, int size);
// Any case whose buffers stay below about max_bytes on a communicator of this size.
CallCase random_case(Random& random, int size, std::size_t max_bytes);
// Every collective, type, operation and place, with each case's number, from 1 on; the same on all ranks. Until f
// returns false.
void each_case(int size, const std::function<bool(const CallCase& c, std::uint64_t number)>& f);

class RankCall {
 public:
  // The buffers lie in memory of `memory`.
  RankCall(const CallCase& c, int rank, int size, std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  ~RankCall();  // not inline: rooms that drive ranks are not optimised, and go through a vector's bytes one by one
  RankCall(const RankCall&) = delete;
  RankCall& operator=(const RankCall&) = delete;

  GCCL_Result run(GCCL_Comm comm) { return call(comm, nullptr); }
  GCCL_Result start(GCCL_Comm comm, GCCL_Request* request) { return call(comm, request); }
  // "" when every byte of every buffer is what it must be; else where and how it differs.
  std::string verify() const;

 private:
  // Memory with guards, aligned to the element and to nothing more, and what it must hold in the end.
  struct Space {
    explicit Space(std::pmr::memory_resource* memory) : bytes(memory) {}
    std::pmr::vector<std::byte> bytes;
    std::vector<std::byte> due;
    std::vector<bool> any;  // elements that may hold anything; empty: none
    std::size_t first = 0, element = 1, count = 0;
    void expect_as_is();  // unless more is known already
    void make(std::size_t elements, std::size_t element_bytes, std::byte filler);
    std::byte* data() { return bytes.data() + first; }
    std::string differences(const char* name) const;
  };
  GCCL_Result call(GCCL_Comm comm, GCCL_Request* request);
  Place place_here() const;
  gccl::Call defined(bool in_place) const;
  void prepare();
  std::size_t length(int from, int to) const;  // of the v-forms' blocks
  std::vector<std::size_t> places(const std::vector<std::size_t>& lengths, int salt) const;
  // What elements hold depends on their index by its class alone, so that each value is computed once for all of them.
  static constexpr std::size_t kClasses = 101;
  std::size_t class_of(std::size_t index, gccl::Rank rank) const;
  std::int64_t value(std::size_t class_of_element) const;
  std::int64_t combined(std::size_t class_on_rank_0) const;
  // Writes the piece's elements to the space, `at` elements on: as they are now, or as they must be in the end.
  void now(Space& s, std::size_t at, const gccl::Piece& p) const;
  void then(Space& s, std::size_t at, const gccl::Piece& p) const;
  void fill(std::byte* to, const gccl::Piece& p, bool reduced) const;

  CallCase c_;
  int rank_, size_;
  std::size_t element_;
  Space input_, output_;
  const void* send_ = nullptr;
  void* recv_ = nullptr;
  std::vector<std::size_t> send_counts_, recv_counts_, send_places_, recv_places_;
};

// Carries the case out on this rank, and returns what was wrong; "" when nothing was.
std::string outcome(const CallCase& c, GCCL_Comm comm, int rank, int size, bool non_blocking);

}  // namespace ranks
