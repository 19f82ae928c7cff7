#include "sim/measured/fit/corrections.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace gccl::sim {
namespace {

// Times of one size, of several runs their mean.
struct Size {
  Count bytes = 0;
  double measured_us = 0, predicted_us = 0, operation_us = 0;

  bool at_floor() const { return measured_us < predicted_us - operation_us; }
  double extra_us() const { return std::max(measured_us - predicted_us, -operation_us); }
  double corrected_us(const Correction& by) const { return predicted_us + std::max(by.at(bytes) / 1e3, -operation_us); }
};

Correction correction_by(const std::vector<Size>& sizes, std::size_t left_out) {
  Correction c;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == left_out) continue;
    c.bytes.push_back(sizes[i].bytes);
    c.extra_ns.push_back(sizes[i].extra_us() * 1e3);
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
    size.operation_us += p->operation_us;
    ++number;
  }
  std::vector<Size> sizes;
  for (auto& [bytes, sum] : all)
    sizes.push_back({bytes, sum.first.measured_us / sum.second, sum.first.predicted_us / sum.second,
                     sum.first.operation_us / sum.second});
  return sizes;
}

// Mean errors without and with corrections.
struct BothErrors {
  std::size_t number = 0;
  double without = 0, with = 0;

  void add(const Size& size, const Correction& by) {
    ++number;
    without += error_of(size, size.predicted_us);
    with += error_of(size, size.corrected_us(by));
  }
  void add(const BothErrors& more) {
    number += more.number;
    without += more.without;
    with += more.with;
  }
  double mean_percent(double sum) const { return number ? 100 * sum / double(number) : 0; }
};

// The sizes of one number of nodes; the correction's place, where they got one.
struct SizedCurve {
  std::vector<Size> sizes;
  std::optional<std::size_t> correction;
};
using NodesSeries = std::tuple<Collective, Rank, std::string, std::string>;  // curves that differ in nodes alone

}  // namespace

Corrections corrections_of(const std::vector<CorrectedPoint>& points, CorrectionReport& report) {
  std::map<Corrected, std::vector<const CorrectedPoint*>> curves;
  for (const CorrectedPoint& p : points) curves[p.of].push_back(&p);
  report = {.curves = curves.size()};
  Corrections all;
  std::map<NodesSeries, std::map<Rank, SizedCurve>> series;
  BothErrors kept;
  for (const auto& [of, members] : curves) {
    const std::vector<Size> sizes = by_size(members);
    if (sizes.size() < kCorrectedSizes) continue;
    SizedCurve& curve = series[{of.kind, of.cards_per_node, of.algorithm, of.protocol}][of.nodes];
    curve = {sizes, {}};
    BothErrors errors;
    for (std::size_t i = 0; i < sizes.size(); ++i) errors.add(sizes[i], correction_by(sizes, i));
    if (errors.with >= kCorrectedMargin * errors.without) continue;
    Correction c = correction_by(sizes, sizes.size());
    c.of = of;
    curve.correction = all.size();
    report.sizes += sizes.size();
    report.at_floor += std::size_t(std::ranges::count_if(sizes, &Size::at_floor));
    all.push_back(std::move(c));
    kept.add(errors);
  }
  report.corrected = all.size();
  report.without_percent = kept.mean_percent(kept.without);
  report.with_percent = kept.mean_percent(kept.with);
  BothErrors carried;
  for (const auto& [key, by_nodes] : series) {
    BothErrors errors;
    const SizedCurve* before = nullptr;
    for (const auto& [nodes, curve] : by_nodes) {
      if (nodes == 1) continue;
      if (before && before->correction)
        for (const Size& s : curve.sizes) errors.add(s, all[*before->correction]);
      before = &curve;
    }
    if (!before || !before->correction || errors.with >= errors.without) continue;
    all[*before->correction].more_nodes = true;
    ++report.more_nodes;
    carried.add(errors);
  }
  report.next_without_percent = carried.mean_percent(carried.without);
  report.next_with_percent = carried.mean_percent(carried.with);
  return all;
}

}  // namespace gccl::sim
