#include "sim/report/canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/base/control_characters.hpp"
#include "libgccl/base/counted.hpp"

namespace gccl::sim {

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : without_control(words, ' ')) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view cut(std::string_view words, std::size_t bytes) {
  if (words.size() <= bytes) return words;
  while (bytes > 0 && (words[bytes] & 0xc0) == 0x80) --bytes;
  return words.substr(0, bytes);
}

void Canvas::frame(double x, double y, double w, double h) {
  frames_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\" fill=\"#fafafa\" "
      "stroke=\"#b0bec5\"/>\n",
      x, y, w, h);
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view color, double width,
                  std::string_view dash) {
  lines_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x1, y1,
      x2, y2, color, width, dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash));
}

void Canvas::arc(double x1, double x2, double y, double depth, std::string_view color) {
  lines_ += fmt::format("<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\"/>\n", x1,
                        y, (x1 + x2) / 2, y + 2 * depth, x2, y, color);
}

void Canvas::cables(double x1, double y1, double x2, double y2, double bend, std::string_view color, std::size_t count,
                    std::string_view name) {
  lines_ += fmt::format(
      "<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" "
      "data-cables=\"{}\"><title>{}: {}</title></path>\n",
      x1, y1, (x1 + x2) / 2, (y1 + y2) / 2 - 2 * bend, x2, y2, color, std::min(1 + 0.5 * std::log2(double(count)), 5.0),
      count, escaped(name), counted(count, "cable"));
}

void Canvas::box(double x, double y, double w, double h, std::string_view fill, std::string_view edge) {
  boxes_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", x, y,
      w, h, fill, edge);
}

void Canvas::text(double x, double y, std::string_view words, double size, Anchor anchor, std::string_view color,
                  bool bold) {
  static constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  texts_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n",
                        x, y, size, kAnchors[int(anchor)], color, bold ? " font-weight=\"bold\"" : "", escaped(words));
}

std::string Canvas::document(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}{4}{5}{6}</svg>\n",
      width, height, escaped(title), frames_, lines_, boxes_, texts_);
}

std::vector<std::string> Canvas::wrapped(std::string_view words, std::size_t columns, std::size_t most) {
  std::vector<std::string> lines;
  while (!words.empty()) {
    std::size_t n = words.size();
    if (n > columns) {
      n = words.rfind(' ', columns);
      if (n == std::string_view::npos || n == 0) n = std::max<std::size_t>(cut(words, columns).size(), 1);
    }
    if (lines.size() + 1 == most && n < words.size()) {
      lines.push_back(std::string(words.substr(0, n)) + " ...");
      break;
    }
    lines.emplace_back(words.substr(0, n));
    words.remove_prefix(n);
    while (!words.empty() && words.front() == ' ') words.remove_prefix(1);
  }
  return lines;
}

}  // namespace gccl::sim
