// Finds a cluster's links by name: "leaf3->spine0" is one link; "leaf3", "node2/nic5" are places with all their links.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl::sim {

class LinkNames {
 public:
  explicit LinkNames(const Cluster& cluster);

  std::optional<LinkId> link(const std::string& name) const;
  // Those that begin or end there; empty: there is no such place.
  std::vector<LinkId> at(const std::string& place) const;
  // Links of a NIC's cable alone, not those to the cards of its node.
  std::vector<LinkId> cable(const std::string& nic) const;
  std::vector<std::string> nics() const;
  std::vector<std::string> switches() const;  // outside nodes
  const std::vector<std::string>& names() const { return names_; }

  // Each link's ends, as numbers of places.
  struct Ends {
    std::uint32_t from, to;
  };
  const std::vector<Ends>& ends() const { return ends_; }
  std::size_t places() const { return places_.size(); }
  // Of "node2/nic5" 2; none: the place is outside nodes.
  static std::optional<Rank> node_of(std::string_view place);
  std::optional<Rank> node_of(std::uint32_t place) const { return nodes_[place]; }
  bool is_nic(std::uint32_t place) const { return is_nic_[place]; }

 private:
  std::vector<std::string> names_;  // by link
  std::vector<Ends> ends_;
  std::map<std::string, std::uint32_t> number_;
  std::vector<std::string> places_;
  std::vector<std::optional<Rank>> nodes_;  // of places
  std::vector<bool> is_nic_;                // places
};

}  // namespace gccl::sim
