#include "sim/engine/link_names.hpp"

#include <algorithm>
#include <charconv>

namespace gccl::sim {

LinkNames::LinkNames(const Cluster& cluster) {
  const LinkId links = LinkId(cluster.links().size());
  const auto number = [&](const std::string& place) {
    const auto [at, fresh] = number_.try_emplace(place, std::uint32_t(places_.size()));
    if (fresh) {
      places_.push_back(place);
      nodes_.push_back(node_of(place));
      is_nic_.push_back(false);
    }
    return at->second;
  };
  for (LinkId l = 0; l < links; ++l) {
    names_.push_back(cluster.link_name(l));
    const std::string& name = names_.back();
    const std::size_t arrow = name.find("->");
    const std::string from = name.substr(0, arrow), to = arrow == std::string::npos ? name : name.substr(arrow + 2);
    const std::uint32_t a = number(from), b = number(to);
    ends_.push_back({a, b});
    // A NIC is what its cable joins to the fabric; switches of a node may be called as they like.
    if (cluster.links()[l].tier != Tier::leaf) continue;
    for (const std::uint32_t end : {a, b})
      if (nodes_[end]) is_nic_[end] = true;
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

std::optional<Rank> LinkNames::node_of(std::string_view place) {
  constexpr std::string_view kNode = "node";
  if (!place.starts_with(kNode)) return std::nullopt;
  const char* const end = place.data() + place.size();
  Rank node = 0;
  const auto [rest, error] = std::from_chars(place.data() + kNode.size(), end, node);
  return error == std::errc() && rest != end && *rest == '/' ? std::optional(node) : std::nullopt;
}

std::vector<std::string> LinkNames::nics() const {
  std::vector<std::string> all;
  for (std::size_t p = 0; p < places_.size(); ++p)
    if (is_nic_[p]) all.push_back(places_[p]);
  return all;
}

std::vector<std::string> LinkNames::switches() const {
  std::vector<std::string> all;
  for (std::size_t p = 0; p < places_.size(); ++p)
    if (!nodes_[p]) all.push_back(places_[p]);
  return all;
}

}  // namespace gccl::sim
