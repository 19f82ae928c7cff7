// What joins the nodes: switches, or routers, and the cables between them.
#pragma once

#include <optional>

#include "libgccl/cluster/read/parameters.hpp"

namespace gccl {

// A place to plug in one NIC, 0 .. ports-1. Some may stay empty.
using FabricPort = std::uint32_t;

// A row of like switches, for drawings and tables: the lowest first.
struct Layer {
  std::string name;                     // of one switch
  std::uint64_t count;                  // switches
  std::optional<Tier> up;               // links to the next layer
  std::optional<Tier> across;           // links between switches of this layer
  std::uint64_t group = 0;              // switches per group (dragonfly); 0: no groups
  bool cables = false;                  // not switches: cables that join all groups pairwise
  std::vector<std::string> names = {};  // of the switches, where they have names of their own
};

// Cables side by side between two switches, each named by its layer and its place there.
struct Bundle {
  struct End {
    std::size_t layer, place;
  } a, b;
  std::size_t cables;
  Tier tier;
};

// Immutable. Links are numbered from 0; the cable between a NIC and its port belongs to the NIC's node. Routes are
// static: they depend on the two ports alone.
class Fabric {
 public:
  virtual ~Fabric() = default;

  const Links& links() const { return links_; }
  // Appends base + link for each link between the switches of two ports.
  virtual void route(FabricPort from, FabricPort to, LinkId base, std::vector<LinkId>& out) const = 0;
  virtual std::string link_name(LinkId link) const = 0;
  virtual std::string switch_of(FabricPort port) const = 0;
  // The number of that switch in the lowest of layers().
  virtual std::uint64_t switch_number(FabricPort port) const = 0;
  // The narrower direction of the narrowest cut of the switches' links into halves of the ports, without the NICs' own
  // cables; infinite where there is none; nullopt where the structure gives no formula.
  virtual std::optional<double> bisection_GBps() const = 0;
  virtual std::vector<Layer> layers() const = 0;
  // All cables, where they are given one by one; empty where they follow from the structure.
  virtual std::vector<Bundle> bundles() const { return {}; }
  // Whether every cable joins one layer to the next, so that the bandwidths of layers can be compared.
  virtual bool layered() const { return true; }
  // One line that says kind and sizes.
  virtual std::string describe() const = 0;

 protected:
  // Appends both directions of a cable: ids 2k and 2k+1.
  void add_cable(const LinkKind& kind) {
    links_.push_back(kind.forward);
    links_.push_back(kind.reverse);
  }
  Links links_;
};

}  // namespace gccl
