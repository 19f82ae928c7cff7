// The lines of benchmarks' logs, without what others put before and into them.
#include <algorithm>
#include <cctype>
#include <set>

#include "sim/measured/read/readers.hpp"

namespace gccl::sim {

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("\x1b[")) {
      const std::size_t end = text.find_first_not_of("0123456789;:?", at + 2);
      if (end != text.npos && std::isalpha(static_cast<unsigned char>(text[end]))) {
        at = end;
        continue;
      }
    }
    if (text[at] != '\r') {
      plain += text[at];
      continue;
    }
    const std::size_t next = std::min(text.find_first_not_of('\r', at), text.size());
    if (next == text.size() || text[next] != '\n') plain += '\n';
    at = next - 1;
  }
  return plain;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

namespace {

constexpr std::string_view kDigits = "0123456789", kDate = "Mon Jan  1 12:00:00 2026";

// "2026-11-28T07:22:10.123456789Z " of kubectl logs --timestamps and of CI systems, with "stdout F " behind it where
// the file is a container runtime's own; "2026-11-28 07:22:10,123 INFO " of Python's logging.
std::string_view without_time(std::string_view line) {
  constexpr std::string_view kForm = "dddd-dd-dd?dd:dd:dd";
  if (line.size() < kForm.size()) return line;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd'   ? kDigits.find(line[i]) == kDigits.npos
        : kForm[i] == '?' ? line[i] != 'T' && line[i] != ' '
                          : line[i] != kForm[i])
      return line;
  const std::size_t end = line.find(' ', kForm.size());
  if (end == line.npos ||
      line.substr(kForm.size(), end - kForm.size()).find_first_not_of("0123456789-:.,+Z") != line.npos)
    return line;
  line.remove_prefix(end + 1);
  for (const std::string_view word : {"stdout F ", "stderr F ", "DEBUG ", "INFO ", "WARNING ", "ERROR "})
    if (line.starts_with(word)) line.remove_prefix(word.size());
  return line;
}

// Behind "node7: " of pdsh and clush, "node7 0: " of PALS' mpiexec and "launcher-1  | " of docker compose: where the
// tag ends, 0: there is none.
std::size_t end_of_host(std::string_view line) {
  const std::size_t end = line.find_first_of(": |");
  if (end == 0 || end == line.npos || line.substr(0, end).find_first_of("#=\"[<") != line.npos) return 0;
  if (line[end] == ':') return end + 1;
  if (const std::size_t rank_end = line.find_first_not_of(kDigits, end + 1);
      line[end] == ' ' && rank_end > end + 1 && rank_end != line.npos && line[rank_end] == ':')
    return rank_end + 1;
  const std::size_t bar = line.find_first_not_of(' ', end);
  return bar != line.npos && line[bar] == '|' ? bar + 1 : 0;
}

// Of mpirun ("[1,0]<stdout>:", "[job@1,0]<stdout>: ", by PRRTE's tag-detailed "[1,0][host:4711]<stdout>: ", with
// --timestamp-output "Mon Jan  1 12:00:00 2026<stdout>:"),
// MPICH's mpiexec ("[0] "), torchrun ("[default0]:"), kubectl logs --prefix ("[pod/name/container] ") and srun ("0: ",
// " 0: ").
std::string_view without_tag(std::string_view line) {
  const auto trim = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  const std::string_view whole = line;
  trim();
  if (const std::size_t end = line.starts_with('[') ? line.find(']') : line.npos; end != line.npos) {
    const std::string_view behind = line.substr(end + 1);
    const bool detailed = behind.starts_with('[') && behind.find("]<std") == behind.find(']');
    if (const std::size_t tag = behind.find(">:"); (behind.starts_with("<std") || detailed) && tag != behind.npos)
      line = behind.substr(tag + 2);
    else if (behind.starts_with(": ") || behind.starts_with(":#") || behind.starts_with(' '))
      line = behind.substr(1);
    else
      return whole;
  } else if (const std::size_t stamped = line.find("<stdout>:"); stamped == kDate.size()) {
    line.remove_prefix(stamped + 9);
  } else {
    const std::size_t digits = line.find_first_not_of(kDigits);
    if (digits == 0 || digits == line.npos || line[digits] != ':') return whole;
    line.remove_prefix(digits + 1);
  }
  trim();
  return line;
}

// What any other log puts before each line: "Nov 28 07:22:10 node7 job[4711]: ", "[INFO] ", "> ".
struct WordsBefore {
  std::size_t number = 0;
  std::string form;  // of the first one
};

// A word with "0" for each number and "a" for each run of letters, which times and counters have in common.
std::string form_of(std::string_view word) {
  std::string form;
  for (const char c : word) {
    const auto letter = static_cast<unsigned char>(c);
    const char kind = std::isdigit(letter) ? '0' : std::isalpha(letter) ? 'a' : c;
    if (form.empty() || form.back() != kind || kind == c) form += kind;
  }
  return form;
}

// Those before the "#" of the first line by which a benchmark is recognised; none where such a line begins with it, as
// in most files.
WordsBefore words_before_comments(const std::vector<TextLine>& lines) {
  WordsBefore before;
  for (const TextLine& line : lines) {
    if (line.text.find('#') == line.text.npos) continue;
    std::vector<std::string_view> words = words_of(line.text);
    if (is_imb_header(words)) return {};  // also "Group #bytes ..."
    const auto comment =
        std::find_if(words.begin(), words.end(), [](std::string_view word) { return word.starts_with('#'); });
    const WordsBefore here{std::size_t(comment - words.begin()), form_of(words.empty() ? "" : words[0])};
    words.erase(words.begin(), comment);
    if (words.empty() ||
        !(is_nccl_tests_settings(words) || is_nccl_tests_header(words) || is_osu_title(words) || is_imb_header(words)))
      continue;
    if (here.number == 0) return here;
    if (before.number == 0) before = here;
  }
  return before;
}

std::string_view without_words(std::string_view line, const WordsBefore& before) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty() || form_of(words[0]) != before.form) return line;
  return words.size() == before.number  ? std::string_view()
         : words.size() < before.number ? line
                                        : line.substr(std::size_t(words[before.number].data() - line.data()));
}

}  // namespace

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  // Any word may stand before a colon: one that also stands before a comment is a host's name.
  std::set<std::string_view> hosts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_tag(without_time(text.substr(at, end - at)));
    const std::size_t tag = end_of_host(line), behind = line.find_first_not_of(" \t", tag);
    if (tag > 0 && behind != line.npos && line[behind] == '#') hosts.insert(line.substr(0, tag));
    lines.push_back({lines.size() + 1, line});
    at = end + 1;
  }
  if (!hosts.empty())
    for (TextLine& line : lines)
      if (const std::size_t tag = end_of_host(line.text); tag > 0 && hosts.contains(line.text.substr(0, tag))) {
        line.text.remove_prefix(tag);
        line.text.remove_prefix(std::min(line.text.find_first_not_of(" \t"), line.text.size()));
      }
  if (const WordsBefore before = words_before_comments(lines); before.number > 0)
    for (TextLine& line : lines) line.text = without_words(line.text, before);
  return lines;
}

std::vector<JsonText> json_texts_of(std::string_view text) {
  std::vector<JsonText> all;
  JsonDepth end;  // of the last one, where it goes on
  for (const TextLine& line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) continue;
    if (end.depth == 0) {
      all.push_back({line.number, std::string(line.text)});
      end = {.depth = words.size() == 1 && words[0] == "{"};
      continue;
    }
    all.back().text.append("\n").append(line.text);
    end = {.depth = end.depth};  // no string of JSON goes beyond its line
    for (std::size_t i = 0; i < line.text.size() && end.depth > 0; ++i) end.take(line.text[i]);
  }
  return all;
}

std::vector<std::size_t> lines_with(std::string_view text, std::string_view word) {
  std::vector<std::size_t> all;
  for (const TextLine& line : lines_of(text))
    if (line.text.find(word) != line.text.npos) all.push_back(line.number);
  return all;
}

}  // namespace gccl::sim
