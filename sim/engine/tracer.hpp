// Records what lanes did when, for a bounded number of ranks and spans.
#pragma once

#include <unordered_map>

#include "sim/engine/workload.hpp"

namespace gccl::sim {

class Tracer {
 public:
  explicit Tracer(const Workload& w) : ranks_(w.trace_ranks), spans_max_(w.trace_spans_max) {}

  bool on() const { return ranks_ > 0; }

  void begin(std::uint32_t lane, std::uint32_t token, Nanos now) { begun_[key(lane, token)] = now; }

  // `span` is complete but for its begin.
  void end(std::uint32_t lane, std::uint32_t token, TraceSpan span) {
    const auto it = begun_.find(key(lane, token));
    if (it == begun_.end()) return;
    span.begin = it->second;
    begun_.erase(it);
    if (span.rank >= ranks_) return;
    if (spans_.size() < spans_max_)
      spans_.push_back(span);
    else
      ++dropped_;
  }

  void finish(Outcome& out) {
    out.spans = std::move(spans_);
    out.spans_dropped = dropped_;
  }

 private:
  static std::uint64_t key(std::uint32_t lane, std::uint32_t token) { return std::uint64_t(lane) << 8 | token; }

  Rank ranks_;
  std::size_t spans_max_;
  std::unordered_map<std::uint64_t, Nanos> begun_;
  std::vector<TraceSpan> spans_;
  std::uint64_t dropped_ = 0;
};

}  // namespace gccl::sim
