// A plan with what carrying it out needs: scratch, and its compiled form; kept for calls of the same shape.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/select/plan.hpp"
#include "libgccl/transports/fast_path.hpp"

namespace gccl {

struct PreparedPlan : Plan {
  std::uint32_t epoch = 0;           // of Plans::epoch()
  std::vector<Count> scratch;        // elements, by lane
  std::unique_ptr<Program> program;  // null: a Flow
};

// Everything on which a plan depends besides the communicator.
struct Shape {
  Collective kind;
  bool in_place;
  std::uint16_t reserved = 0;
  Rank root;
  std::uint32_t element_bytes;
  std::uint32_t reserved2 = 0;
  Count count;
  const Algorithm* algorithm = nullptr;  // asked for, with its slicing; null: chosen
  Slicing slicing{};
  friend bool operator==(const Shape&, const Shape&) = default;
};

// A few hundred plans; the least useful place is overwritten.
class PlanCache {
 public:
  // Where the shape's plan is, or is to be put; *found says which.
  std::shared_ptr<PreparedPlan>& place(const Shape& s, bool* found) {
    if (last_ && last_->shape == s) {
      *found = true;
      return last_->plan;
    }
    std::uint64_t h = (std::uint64_t(s.kind) << 1 | s.in_place) * splitmix::kGolden + s.count * 0xbf58476d1ce4e5b9 +
                      (std::uint64_t(s.root) << 32 | s.element_bytes) * 0x94d049bb133111eb;
    h += reinterpret_cast<std::uintptr_t>(s.algorithm);
    h ^= h >> 29;
    Entry& e = entries_[(h * splitmix::kGolden) >> (64 - kBits)];
    *found = e.plan && e.shape == s;
    if (!*found) {
      e.plan.reset();
      e.shape = s;
    }
    last_ = &e;
    return e.plan;
  }

 private:
  static constexpr unsigned kBits = 8;
  struct Entry {
    Shape shape;
    std::shared_ptr<PreparedPlan> plan;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(1u << kBits);
  Entry* last_ = nullptr;
};

}  // namespace gccl
