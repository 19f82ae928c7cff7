#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "libgccl/base/control_characters.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int error) {
  throw json::InputError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(error)));
}

// What an output's name leads to. A device, a pipe or an open descriptor (/dev/stdout, /proc/self/fd/N) is written as
// it is, and never replaced; every other file is replaced as a whole, where the links to it end.
struct Target {
  std::filesystem::path file;
  bool replaced = true;
  int descriptor = -1;  // of this process, where the name stands for one: its position in the file is shared
};

Target target_of(const std::filesystem::path& name) {
  namespace fs = std::filesystem;
  Target t{name};
  std::error_code error;
  for (int links = 0;; ++links) {
    const fs::path folder = fs::canonical(t.file.has_parent_path() ? t.file.parent_path() : ".", error);
    if (error) return t;  // what is missing is said when it is written
    if ((folder / "").string().starts_with("/proc/")) {
      t.replaced = false;
      const std::string number = t.file.filename();
      if (folder == fmt::format("/proc/{}/fd", getpid()) && number.find_first_not_of("0123456789") == number.npos)
        std::from_chars(number.data(), number.data() + number.size(), t.descriptor);
      return t;
    }
    if (!fs::is_symlink(t.file, error)) break;
    if (links == 40) fail(name, ELOOP);
    t.file = folder / fs::read_symlink(t.file, error);
  }
  const fs::file_status status = fs::status(t.file, error);
  t.replaced = !fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status);
  return t;
}

std::filesystem::path draft_of(std::filesystem::path file) { return file += ".part" + std::to_string(getpid()); }

// Writes beside the file under a temporary name, then renames: the file is there whole or as it was before, with the
// mode that it had. Returns errno or 0.
int replace(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path draft = draft_of(file);
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  struct stat before {};
  int error = stat(file.c_str(), &before) == 0 && fchmod(fd, before.st_mode & 07777) != 0 ? errno : 0;
  if (!error) error = write_all(fd, text);
  if (close(fd) != 0 && !error) error = errno;
  if (!error && rename(draft.c_str(), file.c_str()) != 0) error = errno;
  if (error) unlink(draft.c_str());
  return error;
}

int write_through(const Target& target, std::string_view text) {
  const int fd = target.descriptor >= 0 ? fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
                                        : open(target.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = write_all(fd, text);
  if (close(fd) != 0 && !error) error = errno;
  return error;
}

}  // namespace

void reserve_standard_streams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void check_writable(const std::filesystem::path& file) {
  const Target target = target_of(file);
  const std::filesystem::path folder = target.file.has_parent_path() ? target.file.parent_path() : ".";
  std::error_code error;
  if (file.filename().empty() || std::filesystem::is_directory(file, error)) fail(file, EISDIR);
  if (!std::filesystem::exists(folder, error)) fail(file, ENOENT);
  if (!std::filesystem::is_directory(folder, error)) fail(file, ENOTDIR);
  if (target.descriptor >= 0) {
    const int flags = fcntl(target.descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail(file, EBADF);
  } else if (access((target.replaced ? folder : target.file).c_str(), W_OK) != 0) {
    fail(file, errno);
  } else if (target.replaced) {  // permissions alone do not say it: names may be too long, folders the kernel's own
    const std::filesystem::path draft = draft_of(target.file);
    const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) fail(file, errno);
    close(fd);
    unlink(draft.c_str());
  }
}

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::filesystem::path>& inputs) {
  namespace fs = std::filesystem;
  const auto real = [](const fs::path& name) {
    const fs::path file = target_of(name).file;  // a link may lead to a file that is not there yet
    std::error_code error;
    const fs::path whole = fs::absolute(file, error);  // fails where the current folder was removed
    return error ? file.lexically_normal() : fs::weakly_canonical(whole, error);
  };
  const auto same = [&](const fs::path& a, const fs::path& b) {
    std::error_code error;
    return (fs::equivalent(a, b, error) || real(a) == real(b)) && (target_of(a).replaced || target_of(b).replaced);
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
  const Target target = target_of(file);
  const int error = target.replaced ? replace(target.file, text) : write_through(target, text);
  if (error) fail(file, error);
}

bool output_written(const std::filesystem::path& file, std::string_view text, std::string_view program) try {
  write_output(file, text);
  return true;
} catch (const json::InputError& e) {
  write_stderr(fmt::format("{}: {}\n", program, printable_line(e.what())));
  return false;
}

namespace {

// A JSON document that says the same: all but its line ends and tabs are in strings, and the first 32 are escaped.
std::string printable_json(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(1)) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) & 0x3fu; };
    const std::size_t n = text[0] == '\n' || text[0] == '\t' ? 0 : control_bytes(text);
    if (n == 0) {
      out += text[0];
      continue;
    }
    out += fmt::format("\\u{:04x}", n == 3   ? 0x2000u | at(1) << 6 | at(2)
                                    : n == 2 ? 0x80u | at(1)
                                             : static_cast<unsigned char>(text[0]));
    text.remove_prefix(n - 1);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return without_control(text, '?', "\n\t"); }
std::string printable_line(std::string_view text) { return without_control(text, '?'); }

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
  const int error = write_all(STDOUT_FILENO, text.starts_with('{') ? printable_json(text) : printable(text));
  if (error && error != EPIPE) fail("standard output", error);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 && errno != EPIPE) fail("standard output", errno);
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kBare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/.:=@%+,-";
  return !text.empty() && text.find_first_not_of(kBare) == text.npos ? text : shell_quoted(text);
}

}  // namespace gccl
