#include "sim/report/topology_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/composed.hpp"
#include "libgccl/cluster/fabrics/torus.hpp"
#include "libgccl/cluster/read/summary.hpp"
#include "sim/report/canvas.hpp"

namespace gccl::sim {
namespace {

using Anchor = Canvas::Anchor;

constexpr double kMargin = 28, kWidthMin = 880;
constexpr unsigned kShownPerNode = 8, kShownPerLayer = 8, kShownNamed = 64, kShownTypes = 3, kShownGrid = 4;
constexpr double kCell = 46, kBox = 36, kRow = 24, kGap = 34;  // inside a node
constexpr double kLayerGap = 64, kLayerHeight = 28, kNamedBox = 72;
constexpr double kStop = 24, kRingNic = 34, kStopGap = 4;  // ranks and NICs in a channel's ring
constexpr std::string_view kMuted = "#607d8b";

std::string_view color(Tier t) {
  static constexpr std::string_view kColors[] = {"#2e7d32", "#8d6e63", "#6a1b9a", "#1565c0",
                                                 "#e65100", "#c62828", "#546e7a"};
  return kColors[std::size_t(t)];
}

std::string range(double least, double most) {
  return least == most ? fmt::format("{:.4g}", least) : fmt::format("{:.4g} - {:.4g}", least, most);
}

// Rows from the top: NICs, switches away from the cards (root complexes), switches next to cards, cards, and switches
// that join cards only (NVSwitch): no line to a NIC crosses them.
class NodePicture {
 public:
  explicit NodePicture(const NodeType& type) : g_(type.graph) {
    std::vector<bool> low(g_.switches.size(), false), apart(g_.switches.size(), true);
    const Vertex first = g_.cards + g_.nics;
    for (const auto& e : g_.edges) {
      meshed_ |= e.from < g_.cards && e.to < g_.cards;
      if (e.from < g_.cards && e.to >= first) low[e.to - first] = true;
      if (e.from >= g_.cards && e.to >= first) apart[e.to - first] = false;
      if (e.to >= g_.cards && e.from >= first) apart[e.from - first] = false;
    }
    add_row(rows_[0], g_.cards, g_.nics);
    for (std::size_t s = 0; s < g_.switches.size(); ++s) {
      auto& row = rows_[!low[s] ? 1 : apart[s] && !meshed_ ? 4 : 2];
      if (row.size() < kShownPerNode) row.push_back(Vertex(first + s));
    }
    add_row(rows_[3], 0, g_.cards);
    std::size_t widest = 2;
    for (const auto& row : rows_) widest = std::max(widest, row.size());
    hidden_cards_ = g_.cards > kShownPerNode;
    hidden_nics_ = g_.nics > kShownPerNode;
    width_ = double(widest + (hidden_cards_ || hidden_nics_ ? 1 : 0)) * kCell + 20;
  }

  double width() const { return width_; }
  double height() const {
    double h = 30 + (meshed_ ? kGap : 6);
    for (const auto& row : rows_) h += row.empty() ? 0 : kRow + kGap;
    return h - kGap + 12;
  }

  // Returns where the shown NICs are.
  std::vector<double> draw(Canvas& canvas, double x, double y, std::string_view label) const {
    canvas.frame(x, y, width_, height());
    canvas.text(x + 10, y + height() - 8, label, 11, Anchor::start, kMuted);
    std::map<Vertex, std::pair<double, double>> at;  // middle of each shown thing
    double top = y + 12;
    for (int r = 0; r < 5; ++r) {
      if (rows_[r].empty()) continue;
      const bool switches = r == 1 || r == 2 || r == 4;
      const double room = switches ? (width_ - 20) / double(rows_[r].size()) : kCell;
      for (std::size_t i = 0; i < rows_[r].size(); ++i) {
        const Vertex v = rows_[r][i];
        const double w = switches ? room - (kCell - kBox) : kBox, left = x + 10 + double(i) * room + (kCell - kBox) / 2;
        at[v] = {left + w / 2, top + kRow / 2};
        canvas.box(left, top, w, kRow, fill(r), edge(r));
        canvas.text(left + w / 2, top + 16, fitting(v, w), 10, Anchor::middle);
      }
      if ((r == 0 && hidden_nics_) || (r == 3 && hidden_cards_))
        canvas.text(x + 10 + kShownPerNode * kCell + kCell / 2, top + 16, fmt::format("... {}", r ? g_.cards : g_.nics),
                    11, Anchor::middle, kMuted);
      top += kRow + kGap;
    }
    draw_links(canvas, at);
    std::vector<double> nic_x;
    for (const Vertex v : rows_[0]) nic_x.push_back(at[v].first);
    return nic_x;
  }

 private:
  static void add_row(std::vector<Vertex>& row, Vertex first, unsigned count) {
    for (unsigned i = 0; i < std::min(count, kShownPerNode); ++i) row.push_back(first + i);
  }
  static std::string_view fill(int row) {
    static constexpr std::string_view kFills[] = {"#f3e5f5", "#efebe9", "#e0f2f1", "#e8f5e9", "#e0f2f1"};
    return kFills[row];
  }
  static std::string_view edge(int row) {
    static constexpr std::string_view kEdges[] = {"#6a1b9a", "#8d6e63", "#00796b", "#2e7d32", "#00796b"};
    return kEdges[row];
  }
  std::string fitting(Vertex v, double w) const {
    std::string label = g_.vertex_name(v);
    if (v < g_.cards) label = label.size() > 5 ? fmt::format("{}", v) : label;
    return std::string(cut(label, std::size_t(std::max(1.0, (w - 2) / 6.0))));
  }

  void draw_links(Canvas& canvas, const std::map<Vertex, std::pair<double, double>>& at) const {
    for (const auto& e : g_.edges) {
      const auto a = at.find(e.from), b = at.find(e.to);
      if (e.from > e.to || a == at.end() || b == at.end()) continue;  // one line for both directions
      const auto [x1, y1] = a->second;
      const auto [x2, y2] = b->second;
      if (e.from < g_.cards && e.to < g_.cards) {
        canvas.arc(x1, x2, y1 + kRow / 2, 4 + (kGap - 8) * std::abs(x2 - x1) / (kShownPerNode * kCell),
                   color(e.link.tier));
      } else if (y1 == y2) {
        canvas.line(x1, y1, x2, y2, color(e.link.tier));
      } else {  // straight up or down where the upper box is wide enough
        const bool first_is_switch = e.from >= g_.cards + g_.nics, second_is_switch = e.to >= g_.cards + g_.nics;
        // A card and its NIC often stand above each other: a little aside, the line is not hidden by the card's own.
        const double aside = !first_is_switch && !second_is_switch ? 6 : 0;
        const double x = second_is_switch && within(x1, e.to, at)    ? x1
                         : first_is_switch && within(x2, e.from, at) ? x2
                                                                     : -1;
        canvas.line((x < 0 ? x1 : x) + aside, y1, (x < 0 ? x2 : x) + aside, y2, color(e.link.tier));
      }
    }
  }
  bool within(double x, Vertex v, const std::map<Vertex, std::pair<double, double>>& at) const {
    for (const auto* row : {&rows_[1], &rows_[2], &rows_[4]})
      if (std::find(row->begin(), row->end(), v) != row->end()) {
        const double half = ((width_ - 20) / double(row->size()) - (kCell - kBox)) / 2;
        return std::abs(x - at.at(v).first) < half;
      }
    return false;
  }

  const NodeGraph& g_;
  std::vector<Vertex> rows_[5];
  double width_ = 0;
  bool hidden_cards_ = false, hidden_nics_ = false, meshed_ = false;
};

class Drawing {
 public:
  Drawing(const Cluster& cluster, const std::vector<ChannelRing>& rings)
      : summary_(summarize(cluster)), composed_(dynamic_cast<const ComposedCluster*>(&cluster)), rings_(rings) {}

  std::string draw() {
    const bool torus = composed_ && composed_->parts().cards_are_ports;
    if (composed_ && !torus) plan_nodes();
    if (composed_ && composed_->parts().fabric) {
      layers_ = composed_->parts().fabric->layers();
      bundles_ = composed_->parts().fabric->bundles();
    }
    width_ = std::max(kWidthMin, nodes_width_ + 2 * kMargin);
    for (const Layer& l : layers_) width_ = std::max(width_, 2 * kMargin + kNamedBox * double(shown(l)));
    heading();
    if (torus) draw_grid();
    if (composed_ && !torus) draw_nodes_and_fabric();
    if (!rings_.empty()) draw_rings();
    legend();
    return canvas_.document(width_, y_ + 10, summary_.name);
  }

 private:
  struct Spot {  // one node to be drawn, or a count of nodes that are not
    std::uint32_t node = 0;
    std::uint64_t more = 0;
    std::unique_ptr<NodePicture> picture;
    double x = 0;
  };

  void plan_nodes() {
    const auto& types = composed_->parts().types;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> first_and_count;
    for (Rank n = 0; n < composed_->nodes(); ++n) {
      auto& [first, count] = first_and_count.try_emplace(composed_->parts().type_of_node[n], n, 0).first->second;
      ++count;
    }
    std::uint64_t hidden = 0;
    unsigned shown = 0;
    for (const auto& [type, place] : first_and_count) {
      if (shown++ >= kShownTypes) {
        hidden += place.second;
        continue;
      }
      const auto [first, count] = place;
      const unsigned each = types.size() == 1 && count > 1 && NodePicture(types[type]).width() < 440 ? 2 : 1;
      for (unsigned i = 0; i < each; ++i) spot(first + i, 0, std::make_unique<NodePicture>(types[type]));
      if (count > each) spot(0, count - each, nullptr);
    }
    if (hidden) spot(0, hidden, nullptr);
  }

  void spot(std::uint32_t node, std::uint64_t more, std::unique_ptr<NodePicture> picture) {
    spots_.push_back({node, more, std::move(picture), nodes_width_});
    nodes_width_ += (spots_.back().picture ? spots_.back().picture->width() : 96) + 16;
  }

  void heading() {
    const auto columns = std::size_t((width_ - 2 * kMargin) / 7.2);
    y_ = kMargin + 6;
    for (const auto& l : Canvas::wrapped(summary_.name, columns / 2, 2))
      canvas_.text(kMargin, y_, l, 18, Anchor::start, "#263238", true), y_ += 22;
    for (const auto& l : Canvas::wrapped(summary_.description, columns, 4))
      canvas_.text(kMargin, y_, l, 12, Anchor::start, kMuted), y_ += 16;
    std::string line = fmt::format("{}, {}", counted(summary_.cards, "card"), counted(summary_.nodes, "node"));
    if (summary_.nics) line += ", " + counted(summary_.nics, "NIC");
    if (!summary_.fabric.empty()) line += "; " + summary_.fabric;
    for (const auto& l : Canvas::wrapped(line, columns, 3)) canvas_.text(kMargin, y_ + 4, l, 12), y_ += 16;
    y_ += 20;
  }

  // Layers of switches from the top down, then the nodes.
  void draw_nodes_and_fabric() {
    const auto& layers = layers_;
    std::vector<std::vector<double>> x(layers.size());
    std::vector<double> tops(layers.size());
    for (std::size_t i = layers.size(); i-- > 0;) {
      y_ += arcs_above(i);
      tops[i] = y_;
      x[i] = draw_layer(layers[i]);
      y_ += kLayerHeight + kLayerGap;
    }
    draw_bundles(x, tops);
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
      if (!layers[i].up) continue;
      for (const double a : x[i])
        for (const double b : x[i + 1])
          canvas_.line(a, tops[i], layers[i + 1].cables ? a : b, tops[i + 1] + kLayerHeight, color(*layers[i].up), 0.8);
    }
    double tallest = 0;
    for (const Spot& s : spots_)
      if (s.picture) tallest = std::max(tallest, s.picture->height());
    const double left = (width_ - nodes_width_ + 16) / 2;
    for (const Spot& s : spots_) {
      if (!s.picture) {
        canvas_.text(left + s.x + 48, y_ + tallest / 2 - 6, "...", 16, Anchor::middle, kMuted);
        canvas_.text(left + s.x + 48, y_ + tallest / 2 + 12, fmt::format("and {} more", s.more), 12, Anchor::middle,
                     kMuted);
        // They hang on switches too: on those that no drawn node is plugged into, where there are such.
        // Like the NICs' their lines meet above the nodes, and so cross none.
        const auto idle = layers.empty() ? std::vector<double>() : idle_switches(x[0]);
        const double more = left + s.x + 48;
        if (!idle.empty()) canvas_.line(more, y_ + tallest / 2 - 26, more, y_ - 6, color(Tier::leaf), 1, "2 5");
        for (const double to : idle)
          canvas_.line(more, y_ - 6, to, tops[0] + kLayerHeight, color(Tier::leaf), 1, "2 5");
        continue;
      }
      const double top = y_ + tallest - s.picture->height();
      const auto nic_x = s.picture->draw(canvas_, left + s.x, top, fmt::format("node {}", s.node));
      if (layers.empty()) continue;
      for (std::size_t i = 0; i < nic_x.size(); ++i) {
        const std::uint64_t at = composed_->nic_switch(s.node, unsigned(i));
        const double to = at < x[0].size() ? x[0][at] : dots_[0];
        canvas_.line(nic_x[i], top + 12, nic_x[i], y_ - 6, color(Tier::leaf));
        canvas_.line(nic_x[i], y_ - 6, to, tops[0] + kLayerHeight, color(Tier::leaf));
      }
    }
    y_ += tallest + 24;
  }

  // Switches that a layer shows. Where cables are given one by one every switch counts.
  unsigned shown(const Layer& layer) const {
    const std::uint64_t most = layer.cables ? 1 : bundles_.empty() ? kShownPerLayer : kShownNamed;
    return unsigned(std::min<std::uint64_t>(layer.count, most));
  }

  // How high the cable between two switches of one layer is bent; neighbours' goes straight.
  static double bend(std::size_t a, std::size_t b) {
    const std::size_t apart = std::max(a, b) - std::min(a, b);
    return apart < 2 ? 0 : std::min(6.0 + 5.0 * double(apart), 60.0);
  }

  // Room above a layer for the cables between its own switches.
  double arcs_above(std::size_t layer) const {
    double most = 0;
    for (const Bundle& b : bundles_)
      if (b.a.layer == layer && b.b.layer == layer) most = std::max(most, bend(b.a.place, b.b.place));
    return most;
  }

  void draw_bundles(const std::vector<std::vector<double>>& x, const std::vector<double>& tops) {
    for (const Bundle& bundle : bundles_) {
      const bool upward = bundle.a.layer > bundle.b.layer;
      const Bundle::End low = upward ? bundle.b : bundle.a, high = upward ? bundle.a : bundle.b;
      // A switch that is not shown stands where the layer's dots are.
      const auto middle = [&](const Bundle::End& e) {
        return e.place < x[e.layer].size() ? x[e.layer][e.place] : dots_[e.layer];
      };
      const double from = middle(low), to = middle(high), half = half_[low.layer];
      const std::string name = layers_[low.layer].names[low.place] + " - " + layers_[high.layer].names[high.place];
      if (low.layer != high.layer) {
        canvas_.cables(from, tops[low.layer], to, tops[high.layer] + kLayerHeight, 0, color(bundle.tier), bundle.cables,
                       name);
      } else if (const double up = bend(low.place, high.place); up > 0) {
        canvas_.cables(from, tops[low.layer], to, tops[low.layer], up, color(bundle.tier), bundle.cables, name);
      } else {
        const double y = tops[low.layer] + kLayerHeight / 2, side = from < to ? half : -half;
        canvas_.cables(from + side, y, to - side, y, 0, color(bundle.tier), bundle.cables, name);
      }
    }
  }

  // The middles of those drawn switches that no drawn NIC is plugged into, and of the dots for the others.
  std::vector<double> idle_switches(const std::vector<double>& middles) const {
    std::vector<double> idle;
    std::vector<bool> used(middles.size() + 1, false);
    for (const Spot& s : spots_) {
      if (!s.picture) continue;
      for (unsigned nic = 0; nic < composed_->type_of(s.node).graph.nics; ++nic)
        used[std::min<std::uint64_t>(composed_->nic_switch(s.node, nic), middles.size())] = true;
    }
    for (std::size_t i = 0; i < middles.size(); ++i)
      if (!used[i]) idle.push_back(middles[i]);
    if (layers_[0].count > middles.size()) idle.push_back(dots_[0]);
    return idle;
  }

  // The middles of the boxes that are drawn for a layer.
  std::vector<double> draw_layer(const Layer& layer) {
    const unsigned shown = this->shown(layer);
    const bool all = layer.count == shown || layer.cables;
    const double room = (width_ - 2 * kMargin) / (shown + (all ? 0 : 1.4)), gap = std::min(24.0, room / 5);
    std::vector<double> middles;
    for (unsigned i = 0; i < shown; ++i) {
      const double x = kMargin + i * room + gap / 2, w = room - gap;
      canvas_.box(x, y_, w, kLayerHeight, layer.cables ? "#ffebee" : "#e3f2fd", layer.cables ? "#c62828" : "#1565c0");
      const std::string label = layer.cables             ? fmt::format("{} {}", layer.count, layer.name)
                                : i < layer.names.size() ? layer.names[i]
                                : layer.count == 1       ? layer.name
                                                         : fmt::format("{} {}", layer.name, i);
      canvas_.text(x + w / 2, y_ + 18, Canvas::width_of(label, 11) < w ? label : fmt::format("{}", i), 11,
                   Anchor::middle);
      middles.push_back(x + w / 2);
      if (layer.across && i)
        canvas_.line(x - gap, y_ + kLayerHeight / 2, x, y_ + kLayerHeight / 2, color(*layer.across), 2);
    }
    if (!all) {
      more_x_ = kMargin + shown * room + 0.7 * room;
      canvas_.text(more_x_, y_ + 7, "...", 14, Anchor::middle, kMuted);
      canvas_.text(more_x_, y_ + 21, fmt::format("{} in all", layer.count), 11, Anchor::middle, kMuted);
      if (layer.group)
        canvas_.text(more_x_, y_ + 36, fmt::format("{} per group", layer.group), 11, Anchor::middle, kMuted);
    } else {
      more_x_ = middles.back();
    }
    const auto at = std::size_t(&layer - layers_.data());
    dots_.resize(layers_.size());
    half_.resize(layers_.size());
    dots_[at] = more_x_;
    half_[at] = (room - gap) / 2;
    return middles;
  }

  // A corner of the torus: the first two dimensions.
  void draw_grid() {
    const auto& dims = static_cast<const Torus&>(*composed_->parts().fabric).dims();
    const unsigned nx = std::min(dims[0], kShownGrid), ny = dims.size() > 1 ? std::min(dims[1], kShownGrid) : 1;
    const double pitch = 92, left = width_ / 2 - (nx - 1) * pitch / 2, top = y_ + 30;
    const auto place = [&](unsigned i) { return left + i * pitch; };
    for (unsigned j = 0; j < ny; ++j)
      for (unsigned i = 0; i < nx; ++i) {
        const double x = place(i), y = top + j * 66;
        const std::string_view c = color(Tier::card);
        if (i + 1 < nx || dims[0] > nx) canvas_.line(x, y, x + (i + 1 < nx ? pitch : 60), y, c, 1.6);
        if (j + 1 < ny || (dims.size() > 1 && dims[1] > ny)) canvas_.line(x, y, x, y + (j + 1 < ny ? 66 : 36), c, 1.6);
        canvas_.box(x - 28, y - 13, 56, 26, "#e8f5e9", "#2e7d32");
        canvas_.text(x, y + 4, fmt::format("card {}", j * dims[0] + i), 10, Anchor::middle);
      }
    if (dims[0] > nx)
      canvas_.text(place(nx - 1) + 70, top + 5, fmt::format("... {}", dims[0]), 12, Anchor::start, kMuted);
    y_ = top + (ny - 1) * 66 + 52;
    if (dims.size() > 1 && dims[1] > ny)
      canvas_.text(place(0), y_, fmt::format("... {}", dims[1]), 12, Anchor::middle, kMuted);
    y_ += 20;
    if (dims.size() > 2) {
      std::uint64_t layers = 1;
      for (std::size_t d = 2; d < dims.size(); ++d) layers *= dims[d];
      canvas_.text(
          width_ / 2, y_,
          fmt::format("{} such planes, joined along the other dimension{}", layers, dims.size() > 3 ? "s" : ""), 12,
          Anchor::middle, kMuted);
      y_ += 20;
    }
    y_ += 10;
  }

  // A row for each channel: the nodes in its order, as many as there is room for.
  void draw_rings() {
    canvas_.text(kMargin, y_, fmt::format("Channels: rings of {} ranks", rings_[0].size()), 12, Anchor::start,
                 "#263238", true);
    y_ += 14;
    for (std::size_t c = 0; c < rings_.size(); ++c) {
      canvas_.text(kMargin, y_ + kStop / 2 + 18, fmt::format("channel {}", c), 11, Anchor::start, kMuted);
      draw_ring(rings_[c], kMargin + 76);
      y_ += kStop + 26;
    }
    y_ += 18;
  }

  void draw_ring(const ChannelRing& ring, double x) {
    const double top = y_ + 14, middle = top + kStop / 2, right = width_ - kMargin - 110;
    double from = -1;  // where the line to the next node begins
    for (std::size_t begin = 0, end = 0; begin < ring.size(); begin = end) {
      const auto on_node = [&](const RingStop& s) { return s.node == ring[begin].node; };
      end = std::size_t(std::find_if_not(ring.begin() + std::ptrdiff_t(begin), ring.end(), on_node) - ring.begin());
      const std::string &in = ring[begin].in, &out = ring[end - 1].out;
      const auto room_of = [](const std::string& nic) { return nic.empty() ? 0 : kRingNic + kStopGap; };
      // A node that has room is drawn whole; of the first one, what has room.
      const double most = std::floor((right - x - room_of(in) - room_of(out)) / (kStop + kStopGap));
      const std::size_t shown = double(end - begin) <= most ? end - begin : begin > 0 ? 0 : std::size_t(most);
      if (from >= 0) canvas_.line(from, middle, x, middle, color(out.empty() ? Tier::card : Tier::leaf));
      if (shown > 0) {
        canvas_.text(x, top - 4, fmt::format("node {}", ring[begin].node), 9, Anchor::start, kMuted);
        const double width =
            room_of(in) + double(shown) * (kStop + kStopGap) + (begin + shown < end ? 0 : room_of(out));
        canvas_.line(x + kStopGap, middle, x + width - 2 * kStopGap, middle, color(Tier::card));
      }
      if (shown > 0 && !in.empty()) x = draw_stop(x, top, kRingNic, in, Tier::nic);
      for (std::size_t i = begin; i < begin + shown; ++i)
        x = draw_stop(x, top, kStop, std::to_string(ring[i].rank), Tier::card);
      if (const std::size_t left = ring.size() - begin - shown; begin + shown < end) {
        canvas_.text(x, middle + 4, fmt::format("... {} more ranks", left), 11, Anchor::start, kMuted);
        return;
      }
      if (!out.empty()) x = draw_stop(x, top, kRingNic, out, Tier::nic);
      from = x - kStopGap;
      x += 18;
    }
    canvas_.text(x - 8, middle + 4, "and to its start", 11, Anchor::start, kMuted);
  }

  // Returns where the next box begins.
  double draw_stop(double x, double top, double width, std::string_view label, Tier tier) {
    canvas_.box(x, top, width, kStop, tier == Tier::nic ? "#f3e5f5" : "#e8f5e9", color(tier));
    canvas_.text(x + width / 2, top + kStop / 2 + 4, label, 9, Anchor::middle);
    return x + width + kStopGap;
  }

  void legend() {
    static constexpr std::string_view kMeaning[] = {
        "between cards",    "PCIe and processors", "to the NICs", "NIC to its switch",
        "between switches", "upper or global",     "other"};
    canvas_.text(kMargin, y_, bundles_.empty() ? "Links" : "Links (between switches: the wider, the more side by side)",
                 12, Anchor::start, "#263238", true);
    y_ += 20;
    for (const TierSummary& t : summary_.tiers) {
      canvas_.line(kMargin, y_ - 4, kMargin + 34, y_ - 4, color(t.tier), 3);
      canvas_.text(kMargin + 44, y_, name(t.tier), 12);
      canvas_.text(kMargin + 100, y_, kMeaning[std::size_t(t.tier)], 12, Anchor::start, kMuted);
      canvas_.text(kMargin + 410, y_, range(t.GBps_min, t.GBps_max) + " GB/s", 12, Anchor::end);
      canvas_.text(kMargin + 550, y_, range(double(t.latency_ns_min), double(t.latency_ns_max)) + " ns", 12,
                   Anchor::end);
      canvas_.text(kMargin + 700, y_, fmt::format("{} links", t.links), 12, Anchor::end, kMuted);
      if (t.oversubscription)
        canvas_.text(kMargin + 824, y_, fmt::format("{:.3g}:1 of NICs", *t.oversubscription), 12, Anchor::end, kMuted);
      y_ += 18;
    }
  }

  const Summary summary_;
  const ComposedCluster* composed_;
  const std::vector<ChannelRing>& rings_;
  Canvas canvas_;
  std::vector<Spot> spots_;
  std::vector<Layer> layers_;  // the lowest first
  std::vector<Bundle> bundles_;
  std::vector<double> dots_, half_;  // of each layer: where "..." stands, half a box's width
  double width_ = 0, nodes_width_ = 0, y_ = 0, more_x_ = 0;
};

}  // namespace

std::string topology_svg(const Cluster& cluster, const std::vector<ChannelRing>& rings) {
  return Drawing(cluster, rings).draw();
}

}  // namespace gccl::sim
