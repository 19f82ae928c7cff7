// A cluster's links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl {

using LinkId = std::uint32_t;

// Where a link sits; reports group by it.
enum class Tier : std::uint8_t { card, node, nic, leaf, spine, core, other };
std::string_view name(Tier);

// One direction of a cable, bus or port. 1 GB/s = 1 byte/ns.
struct Link {
  double bandwidth_GBps;
  Nanos latency_ns;
  Tier tier;
  bool operator==(const Link&) const = default;
};

// Links by number, from 0. A million of them are of a few kinds: each is the number of its kind.
class Links {
 public:
  using Kind = std::uint32_t;

  Links() = default;
  Links(std::initializer_list<Link> links) {
    for (const Link& l : links) push_back(l);
  }
  Links(std::size_t count, const Link& all) : kinds_{all}, kind_(count, 0) {}

  std::size_t size() const { return kind_.size(); }
  bool empty() const { return kind_.empty(); }
  const Link& operator[](std::size_t l) const { return kinds_[kind_[l]]; }
  Kind kind(LinkId l) const { return kind_[l]; }
  // By number of kind. Two may be the same.
  const std::vector<Link>& kinds() const { return kinds_; }

  void reserve(std::size_t links) { kind_.reserve(links); }
  void push_back(const Link& link) { kind_.push_back(kind_of(link)); }
  void append(const Links& more);
  // Calls f(Link&) for each kind: it changes all links of the kind.
  template <class F>
  void change(F f) {
    for (Link& kind : kinds_) f(kind);
  }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Link;
    using difference_type = std::ptrdiff_t;
    using pointer = const Link*;
    using reference = const Link&;
    Iterator() = default;
    Iterator(const Links& links, std::size_t at) : links_(&links), at_(at) {}
    const Link& operator*() const { return (*links_)[at_]; }
    const Link* operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Links* links_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  // Where it is among the latest so many kinds, and else a new one: then a million kinds take no search.
  static constexpr std::size_t kLookedAt = 32;
  Kind kind_of(const Link& link);

  std::vector<Link> kinds_;
  std::vector<Kind> kind_;  // by link
};

}  // namespace gccl
