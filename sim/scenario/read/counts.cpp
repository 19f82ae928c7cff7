#include "sim/scenario/read/counts.hpp"

#include <numeric>

#include "sim/scenario/description/hash.hpp"

namespace gccl::sim {

Distribution read_distribution(const json::Node& node) {
  static constexpr std::string_view kNames[] = {"uniform", "random", "skewed"};
  node.allow({"distribution", "seed", "max"});
  Distribution d;
  d.kind = Distribution::Kind(node.at("distribution").one_of(kNames));
  if (const auto seed = node.find("seed")) d.seed = std::uint64_t(seed->integer(0, INT64_MAX));
  if (const auto max = node.find("max")) d.max = max->number(1, 1e9);
  return d;
}

CountTable::CountTable(const Distribution& d, Count mean, Rank ranks, bool symmetric, std::uint64_t seed)
    : kind_(d.kind),
      symmetric_(symmetric),
      mean_(mean),
      ranks_(ranks),
      seed_(d.seed.value_or(seed)),
      max_(d.max),
      shared_(ranks) {
  if (kind_ != Distribution::Kind::skewed) return;
  stride_ =
      std::max<Rank>(1, Rank(double(ranks) * 0.618));  // near the golden ratio: neighbours in popularity lie apart
  while (std::gcd(stride_, ranks) != 1) ++stride_;
  harmonic_ = 0;
  for (Rank k = 1; k <= ranks; ++k) harmonic_ += 1.0 / k;
  while (longest_ < ranks && shared_ / harmonic_ / (1 + longest_) > max_) {
    shared_ -= max_;
    harmonic_ -= 1.0 / ++longest_;
  }
}

Count CountTable::operator()(Rank from, Rank to) const {
  switch (kind_) {
    case Distribution::Kind::uniform: return mean_;
    case Distribution::Kind::random: {
      if (symmetric_ && from > to) std::swap(from, to);
      const double u = double(hash(seed_, std::uint64_t(from) << 32 | to) >> 11) * 0x1p-53;  // 0 <= u < 1
      if (max_ < 2) return Count(double(mean_) * (2 - max_ + u * 2 * (max_ - 1)) + 0.5);
      return Count(u * double(2 * mean_ + 1));
    }
    default: {
      const double place = double((std::uint64_t(to) * stride_ + seed_ % ranks_) % ranks_);
      if (place < longest_) return Count(double(mean_) * max_);
      return Count(double(mean_) * shared_ / harmonic_ / (1 + place));
    }
  }
}

}  // namespace gccl::sim
