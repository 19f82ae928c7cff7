#include "sim/engine/link_names.hpp"

#include <algorithm>

namespace gccl::sim {
namespace {

bool in_node(const std::string& place) { return place.starts_with("node") && place.find('/') != std::string::npos; }
bool is_nic(const std::string& place) { return in_node(place) && place.find("/nic") != std::string::npos; }

}  // namespace

LinkNames::LinkNames(const Cluster& cluster) {
  const LinkId links = LinkId(cluster.links().size());
  const auto number = [&](const std::string& place) {
    const auto [at, fresh] = number_.try_emplace(place, std::uint32_t(places_.size()));
    if (fresh) places_.push_back(place);
    return at->second;
  };
  for (LinkId l = 0; l < links; ++l) {
    names_.push_back(cluster.link_name(l));
    const std::string& name = names_.back();
    const std::size_t arrow = name.find("->");
    const std::string from = name.substr(0, arrow), to = arrow == std::string::npos ? name : name.substr(arrow + 2);
    const std::uint32_t a = number(from), b = number(to);
    ends_.push_back({a, b});
  }
}

std::optional<LinkId> LinkNames::link(const std::string& name) const {
  const auto at = std::find(names_.begin(), names_.end(), name);
  return at == names_.end() ? std::nullopt : std::optional(LinkId(at - names_.begin()));
}

std::vector<LinkId> LinkNames::at(const std::string& place) const {
  std::vector<LinkId> all;
  const auto found = number_.find(place);
  if (found == number_.end()) return all;
  for (LinkId l = 0; l < ends_.size(); ++l)
    if (ends_[l].from == found->second || ends_[l].to == found->second) all.push_back(l);
  return all;
}

std::vector<LinkId> LinkNames::cable(const std::string& nic) const {
  std::vector<LinkId> all = at(nic);
  const std::string node = nic.substr(0, nic.find('/') + 1);
  std::erase_if(all, [&](LinkId l) {
    return places_[ends_[l].from].starts_with(node) && places_[ends_[l].to].starts_with(node);
  });
  return all;
}

std::optional<Rank> LinkNames::node_of(const std::string& place) {
  return in_node(place) ? std::optional(Rank(std::stoul(place.substr(4)))) : std::nullopt;
}

std::vector<std::string> LinkNames::nics() const {
  std::vector<std::string> all;
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(all), is_nic);
  return all;
}

std::vector<std::string> LinkNames::switches() const {
  std::vector<std::string> all;
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(all),
               [](const std::string& p) { return !in_node(p); });
  return all;
}

}  // namespace gccl::sim
