// The folder for a test's files: a new one, which goes with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gccl::test {

struct Folder {
  std::filesystem::path path;
  bool kept = false;  // stays, for somebody to look at

  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gccl-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder like " + name);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!kept) std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path write(const std::string& name, std::string_view text,
                              std::filesystem::perms mode = std::filesystem::perms(0644)) const {
    std::ofstream(path / name, std::ios::binary) << text;
    std::filesystem::permissions(path / name, mode);
    return path / name;
  }
  std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& e : std::filesystem::directory_iterator(path)) all.insert(e.path().filename().string());
    return all;
  }
  bool empty() const { return std::filesystem::is_empty(path); }
};

}  // namespace gccl::test
