#include "cli/whole_file.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace gccl {

void write_whole(const std::filesystem::path& file, std::string_view text) {
  auto draft = file;
  draft += ".part" + std::to_string(::getpid());
  std::error_code error;
  {
    errno = 0;
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    out.write(text.data(), std::streamsize(text.size()));
    out.close();
    if (!out) {
      const std::string why = errno ? std::string(": ") + std::strerror(errno) : "";
      std::filesystem::remove(draft, error);
      throw std::runtime_error(fmt::format("{}: cannot be written{}", file.string(), why));
    }
  }
  std::filesystem::rename(draft, file, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(draft, ignored);
  throw std::runtime_error(fmt::format("{}: cannot be written: {}", file.string(), error.message()));
}

}  // namespace gccl
