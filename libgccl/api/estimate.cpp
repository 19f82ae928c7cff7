// What a call would take.
#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "libgccl/api/builder.hpp"
#include "libgccl/api/guard.hpp"
#include "libgccl/api/handles.hpp"
#include "libgccl/base/nearest.hpp"
#include "libgccl/elements/elements.hpp"

using namespace gccl;

extern "C" GCCL_Result GCCL_Estimate(GCCL_Comm comm, const char* collective, size_t count, GCCL_Dtype dtype,
                                     GCCL_Prediction* prediction) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!prediction || prediction->struct_bytes < sizeof *prediction)
      return failed(invalid(prediction
                                ? fmt::format("prediction->struct_bytes is {}: set it to sizeof(GCCL_Prediction)",
                                              prediction->struct_bytes)
                                : "prediction is null"));
    const auto kind = collective_named(collective ? collective : "");
    if (!kind)
      return failed(invalid(fmt::format("there is no collective \"{}\"{}", collective ? collective : "",
                                        suggestion(collective ? collective : "", collective_names()))));
    Elements elements;
    if (const Status s = elements_of(dtype, std::nullopt, &elements); !s.ok()) return failed(s);
    if (const Status s = countable(count, elements.bytes, c->size()); !s.ok()) return failed(s);
    const CommunicatorCore::Estimate e = c->estimate(*kind, count, elements.bytes);
    prediction->struct_bytes = sizeof *prediction;
    prediction->time_us = e.plan.predicted_ns / 1e3;
    prediction->group_time_us = estimated_in_group(*c, e.plan.predicted_ns) / 1e3;
    prediction->algorithm = e.plan.algorithm->name.data();
    prediction->decided_by = name(e.plan.by).data();
    std::snprintf(prediction->why, sizeof prediction->why, "%s", e.why.c_str());
    return GCCL_SUCCESS;
  });
}
