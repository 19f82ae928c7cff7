// What compilers say about the C++ headers.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kHeaders = GCCL_SOURCE_DIR "/libgccl/include/gccl";

// g++ and clang++ where they are here, else the build's own compiler.
std::vector<std::string> compilers() {
  std::vector<std::string> all;
  for (const std::string name : {"g++", "clang++"})
    if (std::system(("command -v " + name + " >/dev/null").c_str()) == 0) all.push_back(name);
  if (all.empty()) all.push_back(GCCL_TEST_CXX);
  return all;
}

// What a compiler prints for such a source.
std::string compile(const std::string& compiler, const std::string& standard, const std::string& source) {
  REQUIRE(source.find('\'') == source.npos);
  const std::string command = "printf '%s\\n' '" + source + "' | '" + compiler +
                              "' -x c++ -fsyntax-only -std=" + standard +
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

// One message, and the end: two errors, each with its picture, and the way to the header.
void check_refused(const std::string& text) {
  CHECK_MESSAGE(count(text, "error:") == 2, text);
  CHECK_MESSAGE(count(text, "fatal error:") == 1, text);
  CHECK_MESSAGE(text.find("gccl.hpp needs C++20: compile with -std=c++20, or include gccl/gccl.h") != text.npos, text);
  CHECK_MESSAGE(count(text, "\n") <= 10, text);
}

TEST_CASE("before C++20 each C++ header is one error, which says what to do") {
  std::size_t headers = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(kHeaders)) {
    if (file.path().extension() != ".hpp") continue;
    ++headers;
    const std::string include = "#include <gccl/" + file.path().filename().string() + ">";
    CAPTURE(include);
    for (const std::string& compiler : compilers()) {
      for (const char* standard : {"c++14", "c++17"}) check_refused(compile(compiler, standard, include));
    }
  }
  CHECK(headers >= 14);
}

TEST_CASE("before C++20 a program that uses the headers is the same error, whatever it uses") {
  std::ifstream in(GCCL_SOURCE_DIR "/examples/hello.cpp");
  const std::string example{std::istreambuf_iterator<char>(in), {}};
  const std::string spans =
      "#include <gccl/communicator.hpp>\n"
      "int main() { gccl::Communicator comm; std::span<float> s; comm.allreduce(s); }";
  for (const std::string& source : {example, spans}) {
    REQUIRE(count(source, "gccl::") > 0);
    CHECK(compile(GCCL_TEST_CXX, "c++20", source) == "");
    for (const std::string& compiler : compilers()) check_refused(compile(compiler, "c++17", source));
  }
}

}  // namespace
