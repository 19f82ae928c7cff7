#include "cli/real/link_news.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "cli/real/rank_log.hpp"

namespace gccl::real {
namespace {

// Reads a text from its begin to its end.
class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}
  // Goes on behind it. False: it does not come any more.
  bool after(std::string_view word) {
    const std::size_t at = left_.find(word);
    if (at == std::string_view::npos) return false;
    left_.remove_prefix(at + word.size());
    return true;
  }
  template <class Number>
  bool number(Number* x) {
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), *x);
    if (error != std::errc()) return false;
    left_.remove_prefix(std::size_t(end - left_.data()));
    return true;
  }

 private:
  std::string_view left_;
};

constexpr double kMB = 1e6;

}  // namespace

std::optional<LinkNews> link_news(std::string_view line) {
  LinkNews news;
  if (Words w(line); w.after(": the link is slow from rank ") && w.number(&news.from) && w.after(" to rank ") &&
                     w.number(&news.to) && w.after(", ") && w.number(&news.rate) && w.after(" MB/s where ") &&
                     w.number(&news.expected)) {
    news.what = LinkNews::What::slow;
    news.rate *= kMB, news.expected *= kMB;
    return news;
  }
  if (Words w(line); w.after(": the link from rank ") && w.number(&news.from) && w.after(" to rank ") &&
                     w.number(&news.to) && w.after(" is no longer slow")) {
    news.what = LinkNews::What::recovered;
    return news;
  }
  Words w(line);
  if (!w.after(": calls are planned ")) return std::nullopt;
  news.what = LinkNews::What::planned;
  for (std::pair<Rank, Rank> p;
       w.after("between rank ") && w.number(&p.first) && w.after(" and rank ") && w.number(&p.second);)
    news.pairs.push_back(p);
  return news;
}

std::vector<LinkNews> OwnLog::take() {
  std::vector<LinkNews> all;
  // What the coordinator keeps no longer is zeros.
  struct stat about {};
  if (fstat(STDERR_FILENO, &about) == 0 && std::size_t(about.st_size) > read_ + kLogKept) {
    read_ = std::size_t(about.st_size) - kLogKept;
    rest_.clear();
  }
  char part[4096];
  for (ssize_t n; (n = pread(STDERR_FILENO, part, sizeof part, off_t(read_))) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    read_ += std::size_t(n);
    rest_.append(part, std::size_t(n));
  }
  for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1))
    if (const auto news = link_news(std::string_view(rest_).substr(0, end))) all.push_back(*news);
  if (rest_.size() > kLogKept) rest_.clear();  // a line without an end is none of the library's
  return all;
}

}  // namespace gccl::real
