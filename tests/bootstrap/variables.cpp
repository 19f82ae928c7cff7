// The table of environment variables: complete, checked, and the one that docs/start.md prints.
#include "libgccl/bootstrap/variables.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/log.hpp"

using namespace gccl;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in, path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const std::size_t first = cell.find_first_not_of(' ');
    all.push_back(first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return all;
}

// Names and defaults of the tables in docs/start.md whose first column is called "variable".
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> all;
  std::istringstream in(read(std::filesystem::path(GCCL_SOURCE_DIR) / "docs/start.md"));
  std::size_t column = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("|")) {
      column = 0;
      continue;
    }
    const std::vector<std::string> row = cells(line);
    if (row[0] == "variable") {
      column = std::size_t(std::find(row.begin(), row.end(), "default") - row.begin());
    } else if (column > 0 && row[0].starts_with("`")) {
      REQUIRE(column < row.size());
      static const std::regex name("`(GCCL_[A-Z_]+)`");
      for (std::sregex_iterator i(row[0].begin(), row[0].end(), name), end; i != end; ++i)
        CHECK_MESSAGE(all.emplace((*i)[1], row[column]).second, (*i)[1].str() << " stands twice in docs/start.md");
    }
  }
  return all;
}

TEST_CASE("docs/start.md lists every variable, with its default, and no other") {
  const auto docs = documented();
  CHECK(docs.size() == variables().size());
  for (const Variable& v : variables()) {
    const auto i = docs.find(std::string(v.name));
    CHECK_MESSAGE(i != docs.end(), v.name << " is missing in docs/start.md");
    if (i != docs.end()) CHECK_MESSAGE(i->second == v.fallback, v.name);
  }
}

TEST_CASE("every variable that the sources read is in the table") {
  // A name in quotation marks that is no code of gccl.h and no test's.
  const std::regex quoted("\"(GCCL_[A-Z_]*[A-Z])\"");
  const std::string header = read(std::filesystem::path(GCCL_SOURCE_DIR) / "libgccl/include/gccl/gccl.h");
  std::set<std::string> known, seen;
  for (const Variable& v : variables()) known.insert(std::string(v.name));
  for (const char* folder : {"libgccl", "pmpi", "cli", "nccl_tuner"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(GCCL_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      const std::string text = read(entry.path());
      for (std::sregex_iterator i(text.begin(), text.end(), quoted), end; i != end; ++i) {
        const std::string name = (*i)[1];
        seen.insert(name);
        if (header.find(name) == header.npos || known.count(name))
          CHECK_MESSAGE(known.count(name) == 1,
                        name << " in " << entry.path().string() << " is not in libgccl/bootstrap/variables.cpp");
      }
    }
  for (const std::string& name : known) CHECK_MESSAGE(seen.count(name) == 1, name << " is read nowhere");
}

TEST_CASE("values that cannot be right are errors that say what was expected") {
  const auto checked = [](const std::string& name, const char* value) {
    return check_values([&](const char* asked) { return asked == name ? value : nullptr; });
  };
  for (const auto& [name, value, expected] : std::vector<std::tuple<std::string, const char*, std::string>>{
           {"GCCL_CHECK", "yes", "expected a whole number from 0 to 2"},
           {"GCCL_OVERSUBSCRIBED", "2", "expected a whole number from 0 to 1"},
           {"GCCL_SHM_ZERO_COPY", "off", "expected a whole number from 0 to 1"},
           {"GCCL_PROGRESS_THREAD", "-1", "expected a whole number from 0 to 1"},
           {"GCCL_PMPI_STATS", "true", "expected a whole number from 0 to 1"},
           {"GCCL_LOG", "debug", "expected a whole number from 0 to 2"},
           {"GCCL_DEBUG", "loud", "expected VERSION, WARN, INFO or TRACE"},
           {"GCCL_START_TIMEOUT_MS", "1.5", "expected a whole number from 1 to"},
           {"GCCL_TCP_STREAMS", "17", "expected a whole number from 1 to 16"},
           {"GCCL_TCP_ZEROCOPY", "automatic", "expected 0, 1 or auto"}}) {
    const Status s = checked(name, value);
    CHECK(!s.ok());
    CHECK(s.code() == GCCL_ERR_INVALID_ARGUMENT);
    CHECK_MESSAGE(s.text().find(name + " is \"" + value + "\", " + expected) == 0, s.text());
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, const char*>>{{"GCCL_CHECK", "1"},
                                                                                    {"GCCL_CHECK", "0"},
                                                                                    {"GCCL_CHECK", ""},
                                                                                    {"GCCL_TCP_ZEROCOPY", "auto"},
                                                                                    {"GCCL_TCP_ZEROCOPY", "0"},
                                                                                    {"GCCL_TCP_STREAMS", "16"},
                                                                                    {"GCCL_DEBUG", "info"},
                                                                                    {"GCCL_DEBUG", "WARN"},
                                                                                    {"GCCL_LOG", "2"}})
    CHECK(checked(name, value).ok());
  ::setenv("GCCL_DEBUG", "Info", 1);
  CHECK(log_level() == kLogInfo);
  ::unsetenv("GCCL_DEBUG");
}

TEST_CASE("unknown variables are named, with the nearest one") {
  const char* const environment[] = {"PATH=/bin",      "GCCL_ALGORITM=x",    "GCCL_CHECK=1",
                                     "GCCL_TIMEOUT=5", "GCCL_RANDOM_SEED=1", "GCCL_SOMETHING_ELSE_ENTIRELY=1",
                                     "OTHER_GCCL_X=1", "GCCL_STOR\x1b=1",    nullptr};
  const std::vector<std::string> found = unknown_variables(environment);
  REQUIRE(found.size() == 4);
  CHECK(unknown_variables(nullptr).empty());  // after clearenv()
  CHECK(found[0] == "GCCL_ALGORITM is no variable of GCCL: did you mean GCCL_ALGORITHM?");
  CHECK(found[1] == "GCCL_TIMEOUT is no variable of GCCL: did you mean GCCL_TIMEOUT_MS?");
  CHECK(found[2] == "GCCL_SOMETHING_ELSE_ENTIRELY is no variable of GCCL (docs/start.md lists them)");
  CHECK(found[3] == "GCCL_STOR? is no variable of GCCL: did you mean GCCL_STORE?");
  // Without the beginning that all have, and without a last part that was left out; none rather than a wild guess.
  for (const auto& [typed, meant] :
       std::vector<std::pair<std::string, std::string>>{{"GCCL_TIMOUT", "GCCL_TIMEOUT_MS"},
                                                        {"GCCL_TIMEOUT_S", "GCCL_TIMEOUT_MS"},
                                                        {"GCCL_START_TIMOUT", "GCCL_START_TIMEOUT_MS"},
                                                        {"GCCL_PROGRES", "GCCL_PROGRESS_THREAD"},
                                                        {"GCCL_DETECTION", "GCCL_DETECTION_MS"},
                                                        {"GCCL_TUNING", "GCCL_TUNING_FILE"},
                                                        {"GCCL_BACKEND", "GCCL_BACKENDS"},
                                                        {"GCCL_RNAK", "GCCL_RANK"},
                                                        {"GCCL_DMUP", "GCCL_DUMP"},
                                                        {"GCCL_log", "GCCL_LOG"},
                                                        {"GCCL_FOO", ""},
                                                        {"GCCL_BAR", ""},
                                                        {"GCCL_X", ""},
                                                        {"GCCL_", ""}}) {
    const std::string entry = typed + "=5";
    const char* const one[] = {entry.c_str(), nullptr};
    CHECK(unknown_variables(one) ==
          std::vector<std::string>{typed + " is no variable of GCCL" +
                                   (meant.empty() ? " (docs/start.md lists them)" : ": did you mean " + meant + "?")});
  }
  for (const Variable& v : variables()) {
    const std::string entry = std::string(v.name) + "=1";
    const char* const one[] = {entry.c_str(), nullptr};
    CHECK(unknown_variables(one).empty());
  }
}

}  // namespace
