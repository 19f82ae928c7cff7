#include "libgccl/select/reason.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gccl {

std::string reason_of(const Plan& plan, const Authorities& authorities) {
  std::string text = fmt::format("by {}", name(plan.by));
  if (plan.entry && plan.by == Authority::table) text += fmt::format(" ({})", authorities.table->place(*plan.entry));
  if (plan.by == Authority::model && !std::isnan(plan.predicted_ns)) {
    text += fmt::format(": {:.4g} us predicted", plan.predicted_ns / 1e3);
    if (plan.second) text += fmt::format(", {:.4g} us for {}", plan.second_ns / 1e3, plan.second->name);
  }
  if (plan.limited && plan.by != Authority::lists) text += ", among what GCCL_ALGO allows";
  return text;
}

}  // namespace gccl
