// Texts of measurements, read in tests.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "libgccl/json/reader.hpp"
#include "sim/measured/read/read.hpp"
#include "tests/support/folder.hpp"

namespace gccl::test {

inline sim::Measured read(std::string_view text, const sim::StatedOfRows& stated = {}) {
  const Folder folder;
  return sim::read_measurements({folder.write("any-name", text)}, stated);
}

// What is said of a text that cannot be read.
inline std::string wrong(std::string_view text) {
  try {
    read(text);
  } catch (const json::InputError& e) {
    return e.what();
  }
  return "nothing";
}

inline bool has_reason(const sim::Measured& m, std::string_view part) {
  return std::any_of(m.skipped.begin(), m.skipped.end(),
                     [&](const sim::SkippedRow& s) { return s.reason.find(part) != s.reason.npos; });
}

}  // namespace gccl::test
