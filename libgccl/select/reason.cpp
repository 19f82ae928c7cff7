#include "libgccl/select/reason.hpp"

#include <cstdio>

namespace gccl {
namespace {

std::string us(Cost ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g us", ns / 1e3);
  return text;
}

}  // namespace

std::string reason_of(const Plan& plan, const Authorities& authorities) {
  std::string text = std::string("by ").append(name(plan.by));
  if (plan.entry && plan.by == Authority::table) text += " (" + authorities.table->place(*plan.entry) + ")";
  if (plan.by == Authority::model && !std::isnan(plan.predicted_ns)) {
    text += ": " + us(plan.predicted_ns) + " predicted";
    if (plan.second) text += ", " + us(plan.second_ns) + " for " + std::string(plan.second->name);
  }
  if (plan.limited && plan.by != Authority::lists) text += ", among what GCCL_ALGO allows";
  return text;
}

}  // namespace gccl
