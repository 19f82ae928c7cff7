#include "sim/scenario/run/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libgccl/json/reader.hpp"
#include "sim/scenario/description/digest.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHeader = "{\"schema\":\"gccl/journal/1\"}\n";

bool sound(const Json& entry) {
  if (!entry.is_object() || entry.size() != 3) return false;
  for (const char* part : {"check", "key"})
    if (!entry.contains(part) || !entry[part].is_string()) return false;
  return entry.contains("row") &&
         entry["check"] == digest(entry["key"].get<std::string>() + json::format_value(entry["row"]));
}

}  // namespace

Journal::Journal(const std::filesystem::path& file) : file_(file) {
  const auto fail = [&](std::string_view why) { throw json::InputError(fmt::format("{}: {}", file.string(), why)); };
  fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd_ < 0) fail(fmt::format("cannot be opened as a journal: {}", std::strerror(errno)));
  try {
    struct stat s {};
    if (fstat(fd_, &s) != 0 || !S_ISREG(s.st_mode)) fail("is no regular file, as a journal must be");
    struct flock lock {};  // of this process, not of its children: it ends with the process
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(fd_, F_SETLK, &lock) != 0) {
      if (errno == EACCES || errno == EAGAIN) fail("is in use by another gccl");
      fail(fmt::format("cannot be locked: {}", std::strerror(errno)));
    }
    read();
  } catch (...) {
    close(fd_);
    throw;
  }
}

Journal::~Journal() { close(fd_); }

void Journal::read() {
  std::string text;
  char chunk[1 << 16];
  for (ssize_t n; (n = ::read(fd_, chunk, sizeof chunk)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw json::InputError(fmt::format("{}: reading failed: {}", file_.string(), std::strerror(errno)));
    text.append(chunk, std::size_t(n));
  }
  if (!text.starts_with(kHeader)) {
    if (!kHeader.starts_with(text))
      throw json::InputError(fmt::format("{}: is no journal of gccl (its first line is not {}); it was left as it is",
                                         file_.string(), kHeader.substr(0, kHeader.size() - 1)));
    text.clear();
  }
  const std::size_t whole = text.empty() ? 0 : text.rfind('\n') + 1;
  if (ftruncate(fd_, off_t(whole)) != 0)
    throw json::InputError(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
  if (whole == 0) append(kHeader);
  for (std::size_t at = kHeader.size(), end; at < whole; at = end + 1) {
    end = text.find('\n', at);
    Json entry = Json::parse(text.begin() + std::ptrdiff_t(at), text.begin() + std::ptrdiff_t(end), nullptr, false);
    if (sound(entry)) {
      const std::string key = entry["key"];
      rows_[key] = std::move(entry["row"]);
      had_.insert(key);
    } else {
      ++damaged_;
    }
  }
}

const Json* Journal::find(const std::string& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? nullptr : &at->second;
}

void Journal::add(const std::string& key, const Json& row) {
  const std::string text = json::format_value(row);
  append(fmt::format("{{\"check\":\"{}\",\"key\":\"{}\",\"row\":{}}}\n", digest(key + text), key, text));
  if (error_.empty()) rows_[key] = row;
}

void Journal::append(std::string_view line) {
  if (!error_.empty()) return;
  const off_t before = lseek(fd_, 0, SEEK_END);
  while (!line.empty()) {
    const ssize_t n = write(fd_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = std::strerror(n < 0 ? errno : ENOSPC);
      if (ftruncate(fd_, before) != 0) error_ += ", and its last line is not whole";
      return;
    }
    line.remove_prefix(std::size_t(n));
  }
}

}  // namespace gccl::sim
