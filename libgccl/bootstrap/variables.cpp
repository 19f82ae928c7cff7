#include "libgccl/bootstrap/variables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "gccl/gccl.h"
#include "libgccl/base/nearest.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kYearMs = std::int64_t(1000) * 86400 * 365;

constexpr Variable kVariables[] = {
    {"GCCL_RANK", "a launcher's"},
    {"GCCL_SIZE", "a launcher's"},
    {"GCCL_LOCAL_RANK", "a launcher's"},
    {"GCCL_LOCAL_SIZE", "a launcher's"},
    {"GCCL_STORE", "see above"},
    {"GCCL_SECRET", "none"},
    {"GCCL_SECRET_FILE", "none"},
    {"GCCL_BACKENDS", "`shm,tcp`"},
    {"GCCL_ADDRESS", "found out"},
    {"GCCL_HOST", "found out"},
    {"GCCL_TIMEOUT_MS", "-1"},
    {"GCCL_START_TIMEOUT_MS", "60000", 1, kYearMs},
    {"GCCL_JOIN", "0", 0, 1},
    {"GCCL_JOIN_REPORT", "a launcher's"},
    {"GCCL_JOIN_TIMEOUT_MS", "-1", -1, kYearMs},
    {"GCCL_DETECTION_MS", "5000", 0, kYearMs},
    {"GCCL_LINK_LOST_MS", "0", 0, 86400000},
    {"GCCL_LINK_CHECK", "0", 0, 1},
    {"GCCL_LINK_SLOW", "0", 0, 1000},
    {"GCCL_LINK_AVOID", "1", 0, 1},
    {"GCCL_ON_FAILURE", "fail", 0, 0, "fail|shrink|spare|rejoin"},
    {"GCCL_REPLACE_WAIT_MS", "0, with `rejoin` 30000", 0, kYearMs},
    {"GCCL_PROGRESS_THREAD", "0", 0, 1},
    {"GCCL_ALGORITHM", "chosen"},
    {"GCCL_ALGO", "any"},
    {"GCCL_TUNING_FILE", "none"},
    {"GCCL_PARAMETERS", "compiled in"},
    {"GCCL_CLUSTER", "none"},
    {"GCCL_CHECK", "0", 0, 2},
    {"GCCL_DUMP", "none"},
    {"GCCL_DUMP_FORMAT", "torch", 0, 0, "torch|json"},
    {"GCCL_DUMP_SIGNAL", "none", 0, 0, "USR1|USR2"},
    {"GCCL_OVERSUBSCRIBED", "found out", 0, 1},
    {"GCCL_SHM_ZERO_COPY", "1", 0, 1},
    {"GCCL_TCP_STREAMS", "1", 1, 16},
    {"GCCL_TCP_PEER_TIMEOUT_MS", "60000", 2000, 86400000},
    {"GCCL_TCP_CONGESTION", "the system's between machines, cubic within one"},
    {"GCCL_TCP_ZEROCOPY", "auto", 0, 0, "0|1|auto"},
    {"GCCL_BACKEND_PATH", "none"},
    {"GCCL_LOG", "1", 0, 2},
    {"GCCL_DEBUG", "none", 0, 0, "VERSION|WARN|INFO|TRACE", true},  // as NCCL's
    {"GCCL_PMPI_STATS", "0", 0, 1},
    {"GCCL_LAUNCH_SSH", "ssh"},
};

// The test suite's own, which a test's ranks inherit.
bool of_tests(std::string_view name) { return name.starts_with("GCCL_RANDOM_") || name.starts_with("GCCL_TEST_"); }

// The variable that was most likely meant; empty where none is close. GCCL_ counts for nothing, as all begin with it,
// and a last part that says how a value is given may be missing: GCCL_TIMOUT is close to GCCL_TIMEOUT_MS.
std::string_view meant(std::string_view name) {
  constexpr std::size_t kPrefix = std::string_view("GCCL_").size();
  std::vector<std::string_view> parts, names;  // parts[i] is of names[i]
  for (const std::string_view last : {"", "_MS", "_FILE", "_THREAD"})
    for (const Variable& v : kVariables)
      if (v.name.ends_with(last)) {
        parts.push_back(v.name.substr(kPrefix, v.name.size() - kPrefix - last.size()));
        names.push_back(v.name);
      }
  const std::string_view typed = name.substr(kPrefix);
  std::string_view near = nearest(typed, parts, 1);
  if (near.empty()) {  // two letters of a short word: DMUP may be DUMP, but FOO is not LOG
    near = nearest(typed, parts);
    if (near.empty() || near[0] != typed[0]) return {};
  }
  return names[std::size_t(std::find(parts.begin(), parts.end(), near) - parts.begin())];
}

std::string expected_words(std::string_view words) {
  std::string text;
  for (std::string_view rest = words; !rest.empty();) {
    const std::size_t bar = rest.find('|');
    const bool last = bar == rest.npos;
    text.append(text.empty() ? "" : last ? " or " : ", ").append(rest.substr(0, bar));
    rest = last ? std::string_view() : rest.substr(bar + 1);
  }
  return text;
}

bool is_word(std::string_view words, std::string_view value) {
  return fmt::format("|{}|", words).find(fmt::format("|{}|", value)) != std::string::npos;
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

Status check_values(const Environment& environment) {
  for (const Variable& v : kVariables) {
    const std::string name(v.name);
    const char* const value = environment(name.c_str());
    if (!value || !*value) continue;
    std::int64_t number = 0;
    if (v.min != v.max)
      if (Status s = parse_number(name, value, v.min, v.max, &number); !s.ok()) return s;
    std::string word = value;
    if (v.any_case) std::ranges::transform(word, word.begin(), ::toupper);
    if (!v.words.empty() && !is_word(v.words, word))
      return Status::error(fmt::format("{} is \"{}\", expected {}", name, value, expected_words(v.words)),
                           GCCL_ERR_INVALID_ARGUMENT);
  }
  return {};
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string_view> names;
  for (const Variable& v : kVariables) names.push_back(v.name);
  std::vector<std::string> all;
  for (; environment && *environment; ++environment) {  // clearenv() leaves none at all
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("GCCL_") || of_tests(name) || std::count(names.begin(), names.end(), name)) continue;
    const std::string_view near = meant(name);
    std::string shown(name.substr(0, 100));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    all.push_back(fmt::format("{} is no variable of GCCL{}", shown,
                              near.empty() ? " (docs/start.md lists them)" : fmt::format(": did you mean {}?", near)));
  }
  return all;
}

}  // namespace gccl
