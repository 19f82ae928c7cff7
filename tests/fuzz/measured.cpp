// Any bytes offered as measurements are either rows, each with its line, or one clear InputError that names the file.
// Nothing that a table or a list holds is left out silently: it is a row, or it is skipped with a reason.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "libgccl/base/limits.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/read/read.hpp"

namespace {

using namespace gccl;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

// A whole number and three more numbers or more, and nothing else: a size and its measures, by whatever program.
bool is_number_row(std::string_view line) {
  std::size_t numbers = 0;
  for (std::size_t at = line.find_first_not_of(' '); at != line.npos; at = line.find_first_not_of(' ', at)) {
    const std::string_view word = line.substr(at, line.find(' ', at) - at);
    const std::size_t point = word.find('.');
    const std::string_view whole = word.substr(0, point), part = point == word.npos ? "" : word.substr(point + 1);
    const auto digits = [](std::string_view text) { return text.find_first_not_of("0123456789") == text.npos; };
    if (whole.empty() || whole.size() > 15 || !digits(whole) || !digits(part)) return false;
    if (numbers++ == 0 && point != word.npos) return false;
    at += word.size();
  }
  return numbers >= 4;
}

bool is_line(std::string_view text) { return !text.empty() && text.find('\n') == text.npos; }

void check_rows(const sim::Measured& m, std::size_t lines, const std::string& file) {
  for (const sim::Measurement& row : m.rows) {
    expect(row.at.file == file && row.at.line >= 1 && row.at.line <= lines);
    expect(std::isfinite(row.time_us) && row.time_us > 0 && row.bytes <= Count(1) << 50);
    expect(std::uint64_t(row.nodes) * row.cards >= 2 && std::uint64_t(row.nodes) * row.cards <= kRanksMax);
    expect(!row.collective.empty() && row.root < row.ranks());
  }
  for (const sim::SkippedRow& row : m.skipped)
    expect(row.at.file == file && row.at.line >= 1 && row.at.line <= lines && is_line(row.reason));
  for (const std::string& remark : m.remarks) expect(remark.starts_with(file + ":") && is_line(remark));
}

// Whether some line has a comment behind other words, which may then be taken away from any line.
bool has_words_before_comment(std::string_view text) {
  for (std::size_t at = text.find('#'); at != text.npos; at = text.find('#', at + 1)) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    if (text[text.find_first_not_of(' ', begin)] != '#') return true;
  }
  return false;
}

// Of a text that is no JSON. Colours, single CRs and quotes may move lines, or make several one.
void check_lines(const sim::Measured& m, std::string_view text) {
  if (text.find_first_of("\x1b\r\"{[") != text.npos || has_words_before_comment(text)) return;
  std::set<std::size_t> named;
  for (const sim::Measurement& row : m.rows) named.insert(row.at.line);
  for (const sim::SkippedRow& row : m.skipped) named.insert(row.at.line);
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (is_number_row(text.substr(at, end - at))) expect(named.contains(line));
    at = end + 1;
  }
}

// Of the lists that a whole document may hold.
void check_list(const sim::Measured& m, std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || (text[first] != '{' && text[first] != '[')) return;
  try {
    const auto document = json::Node::parse(text, file);
    if (!document.is_object()) return;
    const bool bench = document.has("runs") && document.has("schema");
    if (const auto list = document.find(bench ? "runs" : "results"); list && (bench || document.has("config")))
      expect(m.rows.size() + m.skipped.size() == list->items().size());
  } catch (const json::InputError&) {
  }
}

void read(std::string_view text, const sim::StatedOfRows& stated) {
  const std::string file = "log";
  try {
    const sim::Measured m = sim::read_measurements({sim::MeasuredText{file, std::string(text)}}, stated);
    const auto ends = std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; });
    check_rows(m, std::size_t(ends) + 1, file);
    check_lines(m, text);
    check_list(m, text, file);
  } catch (const json::InputError& e) {
    const std::string_view what = e.what();
    expect(what.starts_with(file + ":") && is_line(what));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text, {});
  read(text, {.collective = Collective::allreduce, .nodes = 2, .cards = 4, .system = ""});
  return 0;
}
