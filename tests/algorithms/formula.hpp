// The formulas in which rows of the table and docs state what algorithms take.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gccl::test {

// A formula of a row: sums, products (also of factors side by side), quotients, ceil(), floor(), log2 of a variable,
// and p, the largest power of two that is at most n.
class Formula {
 public:
  Formula(std::string_view text, const std::map<char, double>& variables) : text_(text), variables_(variables) {}

  double value() {
    const double v = sum();
    if (!text_.empty()) throw std::invalid_argument("what is \"" + std::string(text_) + "\"?");
    return v;
  }

 private:
  bool take(std::string_view word) {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  double sum() {
    double v = product();
    for (;;) {
      if (take("+"))
        v += product();
      else if (take("-"))
        v -= product();
      else
        return v;
    }
  }
  double product() {
    double v = factor();
    for (;;) {
      if (take("/")) {
        v /= factor();
        continue;
      }
      take("");
      if (text_.empty() || text_.front() == '+' || text_.front() == '-' || text_.front() == ')') return v;
      v *= factor();
    }
  }
  double enclosed() {
    const double v = sum();
    if (!take(")")) throw std::invalid_argument("no ) before \"" + std::string(text_) + "\"");
    return v;
  }
  double factor() {
    if (take("ceil(")) return std::ceil(enclosed());
    if (take("floor(")) return std::floor(enclosed());
    if (take("log2")) return std::log2(factor());
    if (take("(")) return enclosed();
    take("");
    if (text_.empty()) throw std::invalid_argument("ends too soon");
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c >= '0' && c <= '9') return c - '0';
    return variables_.at(c);
  }

  std::string_view text_;
  const std::map<char, double>& variables_;
};

struct Stated {
  double value;
  bool bound;  // "at most"
};

// The part of "FORMULA; other n: FORMULA" that holds for these variables: the second one where n is no power of two
// ("odd n": where it is odd).
inline Stated stated(std::string_view text, const std::map<char, double>& variables) {
  if (const std::size_t at = text.find("; "); at != text.npos) {
    const std::string_view rest = text.substr(at + 2);
    const std::size_t colon = rest.find(": ");
    const auto x = std::uint64_t(variables.at(rest.substr(0, colon).back()));
    const bool second = rest.starts_with("odd ") ? x % 2 == 1 : !std::has_single_bit(x);
    text = second ? rest.substr(colon + 2) : text.substr(0, at);
  }
  const bool bound = text.starts_with("at most ");
  if (bound) text.remove_prefix(8);
  return {Formula(text, variables).value(), bound};
}

}  // namespace gccl::test
