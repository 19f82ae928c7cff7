#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/whole_file.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int error) {
  throw json::InputError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(error)));
}

bool is_special(const std::filesystem::path& file) {
  struct stat s {};
  return stat(file.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

}  // namespace

void reserve_standard_streams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void check_writable(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  if (file.filename().empty() || std::filesystem::is_directory(file, error)) fail(file, EISDIR);
  if (!std::filesystem::exists(folder, error)) fail(file, ENOENT);
  if (!std::filesystem::is_directory(folder, error)) fail(file, ENOTDIR);
  if (access((is_special(file) ? file : folder).c_str(), W_OK) != 0) fail(file, errno);
}

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::filesystem::path>& inputs) {
  namespace fs = std::filesystem;
  const auto real = [](const fs::path& file) {
    std::error_code error;
    const fs::path whole = fs::absolute(file, error);  // fails where the current folder was removed
    return error ? file.lexically_normal() : fs::weakly_canonical(whole, error);
  };
  const auto same = [&](const fs::path& a, const fs::path& b) {
    std::error_code error;
    return (fs::equivalent(a, b, error) || real(a) == real(b)) && !is_special(a);
  };
  for (auto file = outputs.begin(); file != outputs.end(); ++file) {
    if (file->empty() || *file == "-") continue;
    check_writable(*file);
    for (auto other = outputs.begin(); other != file; ++other)
      if (!other->empty() && *other != "-" && same(*other, *file))
        throw json::InputError(fmt::format("{}: named for two outputs", *file));
    for (const fs::path& input : inputs)
      if (same(input, *file)) throw json::InputError(fmt::format("{}: is read, and cannot be an output too", *file));
  }
}

void write_output(const std::filesystem::path& file, std::string_view text) {
  if (file == "-") return write_stdout(text);
  if (!is_special(file)) {
    try {
      return write_whole(file, text);
    } catch (const std::runtime_error& e) {
      throw json::InputError(e.what());
    }
  }
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(file, errno);
  int error = write_all(fd, text);
  if (close(fd) != 0 && !error) error = errno;
  if (error) fail(file, error);
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0; };
    if ((at(i) < 0x20 && text[i] != '\n' && text[i] != '\t') || at(i) == 0x7f) text[i] = '?';
    if (at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) < 0xa0) text.replace(i, 2, "?");  // C1, in UTF-8
  }
  return text;
}

int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(std::size_t(n));
    } else if (errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      poll(&p, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void write_stderr(std::string_view text) noexcept { write_all(STDERR_FILENO, text); }

void write_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, printable(std::string(text)));
  if (error && error != EPIPE) fail("standard output", error);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 && errno != EPIPE) fail("standard output", errno);
}

}  // namespace gccl
