// What compilers say about the C++ headers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

// What the compiler prints for a file that includes gccl.hpp, without its picture of the line.
std::string compile(const std::string& standard) {
  const std::string command =
      "echo '#include <gccl/gccl.hpp>' | '" GCCL_TEST_CXX "' -x c++ -fsyntax-only -std=" + standard +
      " -I '" GCCL_SOURCE_DIR "/libgccl/include' - 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  pclose(pipe);
  return text;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_CASE("before C++20 gccl.hpp is one error, which says what to do") {
  for (const char* standard : {"c++14", "c++17"}) {
    const std::string text = compile(standard);
    CHECK_MESSAGE(count(text, "error:") == 1, text);
    CHECK_MESSAGE(text.find("compile with -std=c++20") != text.npos, text);
  }
  CHECK(compile("c++20") == "");
}

}  // namespace
