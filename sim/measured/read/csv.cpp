#include "sim/measured/read/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file, std::size_t first_line, char separator)
      : text_(text), file_(file), line_(first_line), separator_(separator) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  std::vector<CsvRecord> all() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      if (take_line_end()) continue;
      CsvRecord& record = records.emplace_back(CsvRecord{line_, {}});
      do record.fields.push_back(field());
      while (take(separator_));
      if (at_ < text_.size() && !take_line_end())
        fail(fmt::format("found text behind a closing quote, expected {} or a line end",
                         separator_ == '\t' ? "a tab" : fmt::format("\"{}\"", separator_)));
    }
    return records;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw json::InputError(fmt::format("{}:{}: {}", file_, line_, what));
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_line_end() const { return text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n"); }
  bool take_line_end() {
    if (at_ == text_.size() || !at_line_end()) return false;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    return true;
  }
  bool at_blank() const { return at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t') && !at_separator(); }
  bool at_separator() const { return text_[at_] == separator_; }
  std::string field() {
    while (at_blank()) ++at_;
    if (take('"')) {
      std::string value = quoted();
      while (at_blank()) ++at_;
      return value;
    }
    std::string value;
    for (; at_ < text_.size() && !at_separator() && !at_line_end(); ++at_) {
      if (text_[at_] == '"') fail("found a quote inside a field, expected the whole field in quotes");
      value += text_[at_];
    }
    value.resize(value.find_last_not_of(" \t") + 1);
    return value;
  }
  std::string quoted() {
    std::string value;
    const std::size_t begin = line_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return value;
      line_ += c == '\n';
      value += c;
    }
    line_ = begin;
    fail("a quote is never closed");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_;
  char separator_;
};

}  // namespace

char separator_of(std::string_view first_line) {
  const auto number = [&](char c) { return std::count(first_line.begin(), first_line.end(), c); };
  const std::string_view all = ",;\t";
  return *std::max_element(all.begin(), all.end(), [&](char a, char b) { return number(a) < number(b); });
}

std::vector<CsvRecord> read_csv(std::string_view text, const std::string& file, std::size_t first_line,
                                char separator) {
  return CsvReader(text, file, first_line, separator).all();
}

}  // namespace gccl::sim
