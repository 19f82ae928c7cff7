// What the program writes is explained: every kind of document in the table of formats, and every field of those that
// have a schema there or in the schema itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/support/project.hpp"

namespace fs = std::filesystem;
using namespace gccl::test;

namespace {

using Schema = nlohmann::json;

// What stands between backquotes, in text and in blocks.
std::string quoted_in(const std::string& page) {
  std::string all;
  for (std::size_t at = 0, end; (at = page.find('`', at)) != std::string::npos; at = end + 1) {
    end = std::min(page.find('`', at + 1), page.size());
    all += page.substr(at + 1, end - at - 1) + '\n';
  }
  return all;
}

bool stands_in(const std::string& text, const std::string& word) {
  const auto part_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !part_of_word(text[at - 1])) && (end == text.size() || !part_of_word(text[end]))) return true;
  }
  return false;
}

// The schema's properties that neither say what they are nor stand in the text.
void add_unexplained(const Schema& part, const std::string& text, std::set<std::string>& to) {
  if (!part.is_structured()) return;
  if (part.is_object() && part.contains("properties"))
    for (const auto& [field, value] : part["properties"].items())
      if (value.is_object() && !value.contains("description") && !stands_in(text, field)) to.insert(field);
  for (const Schema& below : part) add_unexplained(below, text, to);
}

std::vector<fs::path> project_files() {
  std::vector<fs::path> all;
  for (const char* folder : {"libgccl", "sim", "cli"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file()) all.push_back(entry.path());
  return all;
}

}  // namespace

TEST_CASE("each field of a document that has a schema is explained there or in the documentation") {
  const std::string text =
      quoted_in(read_text(kRoot / "docs/formats.md")) + quoted_in(read_text(kRoot / "docs/parallelism.md"));
  std::size_t schemas = 0;
  for (const fs::path& file : project_files()) {
    if (!file.filename().string().ends_with(".schema.json")) continue;
    CAPTURE(file);
    const Schema schema = Schema::parse(read_text(file));
    CHECK(schema["$id"] == schema["properties"]["schema"]["const"]);
    CHECK(stands_in(text, file.filename()));
    std::set<std::string> unexplained;
    add_unexplained(schema, text, unexplained);
    unexplained.erase("$schema");
    CHECK_MESSAGE(unexplained.empty(), Schema(unexplained).dump());
    ++schemas;
  }
  CHECK(schemas >= 16);
}

TEST_CASE("each kind of document has a row in the table of formats") {
  const std::string page = read_text(kRoot / "docs/formats.md");
  const std::size_t begin = page.find("\n| kind |"), end = page.find("\n\n", begin);
  REQUIRE(end < page.size());
  const std::string table = quoted_in(page.substr(begin, end - begin));
  const std::regex schema_of("gccl/([a-z-]+)/1");
  std::set<std::string> kinds;
  for (const fs::path& file : project_files()) {
    const std::string text = read_text(file);
    for (std::sregex_iterator it(text.begin(), text.end(), schema_of), none; it != none; ++it) kinds.insert((*it)[1]);
  }
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    CHECK(("\n" + table).find("\n" + kind + "\n") != std::string::npos);
  }
  CHECK(kinds.size() >= 24);
}
