#include "cli/real/rank_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "cli/output.hpp"

namespace gccl::real {

// Processes that a rank starts write to it, too.
Fd rank_log() {
  Fd log(memfd_create("gccl rank's standard error", MFD_CLOEXEC));
  if (log) fcntl(log.get(), F_SETFL, O_APPEND);
  return log;
}

// A hole, as ranks go on writing at the end of what they know as one file.
void LogLimit::keep_the_end(const Fd& log) {
  struct stat about {};
  if (!log || fstat(log.get(), &about) != 0) return;
  const auto size = std::size_t(about.st_size);
  if (size < dropped_ + 2 * kLogKept) return;
  const std::size_t until = (size - kLogKept) / kLogKept * kLogKept;
  if (fallocate(log.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(dropped_), off_t(until - dropped_)) == 0)
    dropped_ = until;
}

std::string last_words(const Fd& log, const std::string& before, std::size_t bytes_max) {
  struct stat about {};
  if (!log || fstat(log.get(), &about) != 0) return {};
  const auto size = std::size_t(about.st_size), from = size - std::min(size, bytes_max);
  std::string text(size - from, '\0');
  const ssize_t n = pread(log.get(), text.data(), text.size(), off_t(from));
  text.resize(std::size_t(std::max<ssize_t>(n, 0)));
  std::size_t left_out = from;
  // Whole lines, but for one that is longer.
  if (const std::size_t line = text.find('\n') + 1; from > 0 && line < text.size()) {
    text.erase(0, line);
    left_out += line;
  }
  std::string words = left_out > 0 ? fmt::format("{}({} bytes before)\n", before, left_out) : "";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) words += before + printable_line(line) + "\n";
  return words;
}

}  // namespace gccl::real
