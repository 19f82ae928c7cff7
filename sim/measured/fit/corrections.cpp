#include "sim/measured/fit/corrections.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace gccl::sim {
namespace {

// Times of one size, of several runs their mean.
struct Size {
  Count bytes = 0;
  double measured_us = 0, predicted_us = 0;
};

Correction correction_by(const std::vector<Size>& sizes, std::size_t left_out) {
  Correction c;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == left_out) continue;
    c.bytes.push_back(sizes[i].bytes);
    c.extra_ns.push_back((sizes[i].measured_us - sizes[i].predicted_us) * 1e3);
  }
  return c;
}

// Of a logarithm, so that too fast by half is as far off as twice too slow.
double error_of(const Size& s, double predicted_us) {
  constexpr double kLeast = 0.01;  // of the measured time
  return std::abs(std::log(std::max(predicted_us / s.measured_us, kLeast)));
}

std::vector<Size> by_size(const std::vector<const CorrectedPoint*>& points) {
  std::map<Count, std::pair<Size, double>> all;
  for (const CorrectedPoint* p : points) {
    auto& [size, number] = all[p->bytes];
    size.bytes = p->bytes;
    size.measured_us += p->measured_us;
    size.predicted_us += p->predicted_us;
    ++number;
  }
  std::vector<Size> sizes;
  for (auto& [bytes, sum] : all)
    sizes.push_back({bytes, sum.first.measured_us / sum.second, sum.first.predicted_us / sum.second});
  return sizes;
}

}  // namespace

Corrections corrections_of(const std::vector<CorrectedPoint>& points, CorrectionReport& report) {
  using Key = std::tuple<Collective, Rank, Rank, std::string, std::string>;
  std::map<Key, std::vector<const CorrectedPoint*>> curves;
  for (const CorrectedPoint& p : points)
    curves[{p.of.kind, p.of.nodes, p.of.cards_per_node, p.of.algorithm, p.of.protocol}].push_back(&p);
  report = {.curves = curves.size()};
  Corrections all;
  std::size_t number = 0;
  double without = 0, with = 0;
  for (const auto& [key, members] : curves) {
    const std::vector<Size> sizes = by_size(members);
    if (sizes.size() < kCorrectedSizes) continue;
    double left = 0, corrected = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      left += error_of(sizes[i], sizes[i].predicted_us);
      corrected += error_of(sizes[i], sizes[i].predicted_us + correction_by(sizes, i).at(sizes[i].bytes) / 1e3);
    }
    if (corrected >= kCorrectedMargin * left) continue;
    Correction c = correction_by(sizes, sizes.size());
    c.of = members[0]->of;
    all.push_back(std::move(c));
    number += sizes.size();
    without += left, with += corrected;
  }
  report.corrected = all.size();
  if (number) {
    report.without_percent = 100 * without / double(number);
    report.with_percent = 100 * with / double(number);
  }
  return all;
}

}  // namespace gccl::sim
