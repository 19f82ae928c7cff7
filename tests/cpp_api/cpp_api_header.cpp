// What compilers say about the C++ headers.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"
#include "tests/support/shell.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kHeaders = gccl::test::kRoot / "libgccl/include/gccl";

// g++ and clang++ where they are here, else the build's own compiler.
std::vector<std::string> compilers() {
  std::vector<std::string> all;
  for (const std::string name : {"g++", "clang++"})
    if (gccl::test::installed(name)) all.push_back(name);
  if (all.empty()) all.push_back(GCCL_TEST_CXX);
  return all;
}

// What a compiler prints for such a source.
std::string compile(const std::string& compiler, const std::string& standard, const std::string& source) {
  const gccl::test::Folder folder;
  folder.write("source.cpp", source + "\n");
  gccl::test::shell("'" + compiler + "' -fsyntax-only -std=" + standard + " -I '" GCCL_SOURCE_DIR "' -I '" +
                        kHeaders.parent_path().string() + "' source.cpp >said 2>&1",
                    folder.path);
  return gccl::test::read_text(folder.path / "said");
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
  const std::string example = gccl::test::read_text(gccl::test::kRoot / "examples/hello.cpp");
  const std::string spans =
      "#include <gccl/communicator.hpp>\n"
      "int main() { gccl::Communicator comm; std::span<float> s; comm.allreduce(s); }";
  for (const std::string& source : {example, spans}) {
    REQUIRE(count(source, "gccl::") > 0);
    CHECK(compile(GCCL_TEST_CXX, "c++20", source) == "");
    for (const std::string& compiler : compilers()) check_refused(compile(compiler, "c++17", source));
  }
}

TEST_CASE("names of the interface are no names inside the library, so a file may include both") {
  CHECK(compile(GCCL_TEST_CXX, "c++20",
                "#include <gccl/gccl.hpp>\n"
                "#include \"libgccl/communicator/communicator_core.hpp\"\n"
                "#include \"libgccl/verify/oracle.hpp\"\n"
                "using namespace gccl;\n"
                "Communicator* handle; CommunicatorCore* inner;\n"
                "static_assert(Element<float>); OracleElement hash;") == "");
}

}  // namespace
