#include "sim/measured/read/read.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"
#include "sim/measured/read/csv.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

enum class Format : std::uint8_t { table, rccl_table, nccl_tests, osu, imb, hccl_test, ucc, json };

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view looks_like(Format f) {
  return f == Format::table || f == Format::rccl_table ? "a table"
         : f == Format::osu                            ? "what an OSU benchmark prints"
         : f == Format::imb                            ? "what Intel's MPI benchmarks print"
         : f == Format::hccl_test                      ? "what hccl_test prints"
         : f == Format::ucc                            ? "what ucc_perftest prints"
                                                       : "what nccl-tests print";
}

// By what is in the file, whatever its name.
std::optional<Format> format_of(std::string_view text, const std::string& file) {
  bool first = true;
  std::optional<Format> named;  // by its own lines; comments above a table may name any program
  for (const TextLine& line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) continue;
    if (first && (words[0].starts_with('{') || words[0] == "[" || words[0].starts_with("[{"))) return Format::json;
    const bool comment = words[0].starts_with('#');
    if (!named && comment && line.text.find("# gccl bench:") != line.text.npos)
      throw json::InputError(fmt::format(
          "{}:{}: found the table that gccl bench prints, expected what it writes with --json", file, line.number));
    if (!comment && first && is_rccl_tests_header(line)) return Format::rccl_table;
    if (!comment && first && is_table_header(line)) return Format::table;
    if (!comment) first = false;
    if (!named && (is_osu_title(words) || is_osu_header(words))) named = Format::osu;
    if (!named && is_imb_header(words)) named = Format::imb;
    if (!named && is_hccl_test_header(words)) named = Format::hccl_test;
    if (!named && is_ucc_header(words)) named = Format::ucc;
    if (!named && (comment ? is_nccl_tests_settings(words) || is_nccl_tests_header(words) : is_bare_nccl_tests(words)))
      named = Format::nccl_tests;
    if (named && !first) return named;
  }
  return named;
}

[[noreturn]] void no_measurements(const std::string& file) {
  throw json::InputError(
      fmt::format("{}: no measurements found; expected CSV with a first line that names its columns (\"collective\", "
                  "\"bytes\", \"time_us\"), what nccl-tests, rccl-tests, an OSU benchmark, IMB-MPI1, oneCCL's "
                  "benchmark, ucc_perftest or hccl_test prints, JSON of nccl-tests, rccl-tests or gccl bench, or JSON "
                  "of NCCL's Inspector",
                  file));
}

// Of those programs that write several below each other.
bool is_record(const std::string& text) try {
  const json::Node node = json::Node::parse(text, "");
  return node.is_object() && (is_inspector(node) || is_rccl_tests(node));
} catch (const json::InputError&) {
  return false;
}

// Nothing where there are several: JSON lines, each of which is whole, or objects of several lines.
std::optional<json::Node> one_document(std::string_view text, const std::string& file) {
  try {
    return json::Node::parse(text, file);
  } catch (const json::InputError&) {
    const std::vector<JsonText> texts = json_texts_of(text);
    if (texts.size() < 2) throw;
    const bool lines = texts[0].text.find('\n') == std::string::npos;
    if (!lines && std::ranges::none_of(texts, [](const JsonText& t) { return is_record(t.text); })) throw;
    return std::nullopt;
  }
}

}  // namespace

Measured read_measurements(const std::vector<std::filesystem::path>& files, const StatedOfRows& stated) {
  std::vector<MeasuredText> texts;
  for (const std::filesystem::path& path : files) texts.push_back({path.string(), json::read_text(path)});
  return read_measurements(texts, stated);
}

Measured read_measurements(const std::vector<MeasuredText>& texts, const StatedOfRows& stated) {
  Measured all;
  RowCollector to(all, stated);
  InspectorRecords inspector;
  for (const auto& [file, whole_text] : texts) {
    const bool marked = whole_text.starts_with(kByteOrderMark);
    const std::string plain = plain_text(std::string_view(whole_text).substr(marked ? kByteOrderMark.size() : 0));
    const std::string_view text = plain;
    const std::size_t skipped = all.skipped.size(), before = all.rows.size() + skipped;
    const auto format = format_of(text, file);
    if (!format) no_measurements(file);
    switch (*format) {
      case Format::table: read_table(text, file, to); break;
      case Format::rccl_table: read_rccl_tests_table(text, file, to); break;
      case Format::nccl_tests: read_nccl_tests(text, file, to); break;
      case Format::osu: read_osu(text, file, to); break;
      case Format::imb: read_imb(text, file, to); break;
      case Format::hccl_test: read_hccl_test(text, file, to); break;
      case Format::ucc: read_ucc(text, file, to); break;
      case Format::json:
        if (const auto whole = one_document(text, file); whole && is_bench(*whole))
          read_bench(*whole, text, file, to);
        else if (whole && is_nccl_tests(*whole))
          read_nccl_tests(*whole, text, file, to);
        else if (whole && is_rccl_tests(*whole))
          read_rccl_tests(*whole, text, file, to);
        else if (!whole && read_rccl_tests_lines(text, file, to))
          continue;
        else if (whole && !is_inspector(*whole))
          no_measurements(file);
        else if (!inspector.read(whole, text, file, to) && all.skipped.size() == skipped)
          to.remark(fmt::format("{}: looks like JSON lines of NCCL's Inspector, but none is of a call", file));
        continue;
    }
    to.remark_contradictions();
    if (all.rows.size() + all.skipped.size() == before)
      to.remark(fmt::format("{}: looks like {}, but holds no results", file, looks_like(*format)));
  }
  inspector.finish(to);
  return all;
}

}  // namespace gccl::sim
