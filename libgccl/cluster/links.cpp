#include "libgccl/cluster/links.hpp"

#include <algorithm>

namespace gccl {

std::string_view name(Tier t) {
  static constexpr std::string_view kNames[] = {"card", "node", "nic", "leaf", "spine", "core", "other"};
  return kNames[std::size_t(t)];
}

Links::Kind Links::kind_of(const Link& link) {
  const std::size_t end = kinds_.size() - std::min(kinds_.size(), kLookedAt);
  for (std::size_t k = kinds_.size(); k-- > end;)
    if (kinds_[k] == link) return Kind(k);
  kinds_.push_back(link);
  return Kind(kinds_.size() - 1);
}

void Links::append(const Links& more) {
  std::vector<Kind> own;
  for (const Link& kind : more.kinds_) own.push_back(kind_of(kind));
  for (const Kind k : more.kind_) kind_.push_back(own[k]);
}

}  // namespace gccl
