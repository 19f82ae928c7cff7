// Lines through measured times, by their relative errors: a point that is far off moves them little.
#pragma once

#include <optional>
#include <vector>

namespace gccl::sim {

// How long so many bytes took, or a call with so many peers.
struct Timed {
  double amount = 0, ns = 0;
};

// A fixed time and one for each byte or peer; neither is negative.
struct Line {
  double fixed_ns = 0, ns_each = 0;
  double operator()(double amount) const { return fixed_ns + amount * ns_each; }
};

// The line with the least sum of |line / measured - 1|: one of those through two of the points, through one and the
// origin, or level through one, so all of them are tried. Requires a point; times above 0.
Line fit_line(const std::vector<Timed>& points);
// The mean of |line / measured - 1|.
double mean_error(const Line& line, const std::vector<Timed>& points);

// One line, or where that is clearly better one up to a size and another one beyond, as where messages are copied while
// they are short and fetched by the receiver when they are long.
struct Pieces {
  Line below, above;
  std::optional<double> last_below;  // the last size of `below`; without it there is one line, and both are it
  double operator()(double bytes) const { return last_below && bytes > *last_below ? above(bytes) : below(bytes); }
};
// Requires points by rising size.
Pieces fit_pieces(const std::vector<Timed>& points);

}  // namespace gccl::sim
