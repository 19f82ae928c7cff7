// The few SVG shapes that the drawings need.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gccl::sim {

// Text as it may stand in HTML and SVG, between tags and in an attribute; control characters become blanks.
std::string escaped(std::string_view words);

// At most so many bytes of a text in UTF-8, and no part of a character.
std::string_view cut(std::string_view words, std::size_t bytes);

// Frames lie below lines, lines below boxes, boxes below text, whatever the order of the calls. Lengths are pixels.
class Canvas {
 public:
  void frame(double x, double y, double w, double h);
  // `dash`: lengths of strokes and gaps, as SVG has them; empty for a line without gaps.
  void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1.2,
            std::string_view dash = {});
  // A curve that hangs `depth` below the line y.
  void arc(double x1, double x2, double y, double depth, std::string_view color);
  // `count` cables side by side, as one line that is bent upwards by `bend`; `name` is shown where the pointer rests.
  void cables(double x1, double y1, double x2, double y2, double bend, std::string_view color, std::size_t count,
              std::string_view name);
  void box(double x, double y, double w, double h, std::string_view fill, std::string_view edge);
  enum class Anchor { start, middle, end };
  void text(double x, double y, std::string_view words, double size = 12, Anchor anchor = Anchor::start,
            std::string_view color = "#263238", bool bold = false);
  std::string document(double width, double height, std::string_view title) const;

  // Width of a text, on the safe side.
  static double width_of(std::string_view words, double size) { return double(words.size()) * size * 0.6; }
  // Breaks at blanks into lines of at most `columns` characters, at most `most` of them; the last one says when more is
  // left.
  static std::vector<std::string> wrapped(std::string_view words, std::size_t columns, std::size_t most);

 private:
  std::string frames_, lines_, boxes_, texts_;
};

}  // namespace gccl::sim
