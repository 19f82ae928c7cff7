// Going on without ranks that have failed.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "libgccl/api/guard.hpp"

using namespace gccl;

namespace {

Recovery& recovery_of(CommunicatorCore& c) { return *c.world().recovery; }

// Calls that differ break the communicator, as any others do, and so does one that takes too long, as no other of them
// can succeed any more; and an abort is reported once.
template <class F>
Status agreement(CommunicatorCore& c, F call) {
  c.team().record->agreements.fetch_add(1, std::memory_order_relaxed);
  Status s = call();
  (void)c.agrees(Watch::In::nothing);
  const bool too_late = s.code() == GCCL_ERR_TIMEOUT && recovery_of(c).ended(c.members());
  if (s.code() == GCCL_ERR_MISMATCH || s.code() == GCCL_ERR_ABORTED || too_late) c.fail(s.copy_or_code());
  return s;
}

// How many ranks find(c, &all) finds, and as many of them as there is room for.
template <class F>
GCCL_Result give_ranks(GCCL_Comm comm, int* ranks, int capacity, int* count, F find) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!count) return failed(invalid("count is null"));
    if (capacity < 0 || (capacity > 0 && !ranks))
      return failed(
          invalid(capacity < 0 ? fmt::format("capacity is {}: expected 0 or more", capacity) : "ranks is null"));
    std::vector<Rank> all;
    if (const Status s = find(*c, &all); !s.ok()) return failed(s);
    *count = int(all.size());
    std::copy_n(all.begin(), std::min<std::size_t>(all.size(), std::size_t(capacity)), ranks);
    return GCCL_SUCCESS;
  });
}

}  // namespace

extern "C" {

GCCL_Result GCCL_Comm_revoke(GCCL_Comm comm) {
  return guarded(comm, [&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    const Inside inside(*c);
    c->fail(Status::error(fmt::format("{} revoked the communicator", c->members().name(c->rank())), GCCL_ERR_REVOKED));
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_get_failed(GCCL_Comm comm, int* ranks, int capacity, int* count) {
  return give_ranks(comm, ranks, capacity, count, [](CommunicatorCore& c, std::vector<Rank>* all) {
    if (const Status& s = recovery_of(c).usable(); !s.ok()) return s.copy_or_code();
    *all = recovery_of(c).failed(c.members(), c.lost());
    return Status();
  });
}

GCCL_Result GCCL_Comm_ack_failed(GCCL_Comm comm) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (const Status& s = recovery_of(*c).usable(); !s.ok()) return failed(s);
    (void)recovery_of(*c).failed(c->members(), c->lost());
    recovery_of(*c).acknowledge(c->members());
    c->survival().acknowledge();
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_agree(GCCL_Comm comm, uint64_t* flags) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!flags) return failed(invalid("flags is null"));
    if (const Status s = c->survival().not_inside(); !s.ok()) return failed(s);
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_agree"); !s.ok()) return failed(s);
    if (const Status& s = recovery_of(*c).usable(); !s.ok()) return failed(s);
    return failed_on(*c, agreement(*c, [&] { return recovery_of(*c).agree(*c, flags); }));
  });
}

GCCL_Result GCCL_Comm_shrink(GCCL_Comm comm, GCCL_Comm* out) {
  if (out) *out = GCCL_COMM_NULL;
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!out) return failed(invalid("out is null"));
    if (const Status s = c->survival().not_inside(); !s.ok()) return failed(s);
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_shrink"); !s.ok()) return failed(s);
    if (const Status& s = recovery_of(*c).usable(); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    if (const Status s = agreement(*c, [&] { return recovery_of(*c).shrink(*c, &made); }); !s.ok())
      return failed_on(*c, s);
    return failed(keep(std::move(made), out));
  });
}

GCCL_Result GCCL_Comm_grow(GCCL_Comm comm, int most, std::int64_t wait_ms, GCCL_Comm* out) {
  if (out) *out = GCCL_COMM_NULL;
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!out) return failed(invalid("out is null"));
    if (most < 1) return failed(invalid(fmt::format("most is {}: expected 1 or more", most)));
    if (wait_ms < 0) return failed(invalid(fmt::format("wait_ms is {}: expected 0 or more", wait_ms)));
    if (const Status s = c->survival().not_inside(); !s.ok()) return failed(s);
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_grow"); !s.ok()) return failed(s);
    if (const Status& s = recovery_of(*c).usable(); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    const Growth growth{.most = Rank(most), .wait_ms = std::min<std::int64_t>(wait_ms, kTimeoutMsMax)};
    if (const Status s = agreement(*c, [&] { return recovery_of(*c).grow(*c, growth, &made); }); !s.ok())
      return failed_on(*c, s);
    return failed(keep(std::move(made), out));
  });
}

GCCL_Result GCCL_Comm_get_joined(GCCL_Comm comm, int* ranks, int capacity, int* count) {
  return give_ranks(comm, ranks, capacity, count, [](const CommunicatorCore& c, std::vector<Rank>* all) {
    if (c.members().world) *all = c.world().joined;
    return Status();
  });
}

GCCL_Result GCCL_Comm_set_on_failure(GCCL_Comm comm, GCCL_Failure_policy policy) {
  return guarded(comm, [&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (policy < GCCL_FAIL || policy > GCCL_REJOIN)
      return failed(invalid(fmt::format(
          "policy is {}: expected GCCL_FAIL (0), GCCL_SHRINK (1), GCCL_SPARE (2) or GCCL_REJOIN (3)", int(policy))));
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_set_on_failure"); !s.ok()) return failed(s);
    return failed_on(*c, c->survival().set_policy(policy));
  });
}

GCCL_Result GCCL_On_failure(GCCL_Comm comm, GCCL_Failure_function function, void* context) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    c->survival().set_function(function, context, call_on_failure);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Dump(GCCL_Comm comm, const char* path) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!path || !*path) return failed(invalid(path ? "path is empty" : "path is null"));
    return failed(c->dump(path, "GCCL_Dump"));
  });
}

}  // extern "C"
