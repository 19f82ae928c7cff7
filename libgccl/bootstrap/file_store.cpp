#include "libgccl/bootstrap/file_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/store_file.hpp"
#include "libgccl/net/digest.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

namespace fs = std::filesystem;

using Token = std::array<std::byte, 16>;
constexpr std::string_view kHello = "gccl-file-hello/2", kJob = "gccl-file-job/2", kProof = "gccl file store";
constexpr std::size_t kHelloBytes = kHello.size() + 4 + sizeof(Token);
// How long rank 0 waits for ranks that have not read the last answer yet. They read at once, or do not run just now, or
// are dead: then the answer stays, and the last one that reads it removes it.
constexpr std::int64_t kLeaveMs = 2000;
// A start that cannot succeed ends once all have come, so that all learn why, or after so long.
constexpr std::int64_t kDoomedMs = 1000;

Token new_token() {
  Token t;
  const ssize_t got = getrandom(t.data(), t.size(), 0);
  assert(got == ssize_t(t.size()));
  return t;
}

std::string hex(const Token& t) {
  std::string text;
  for (const std::byte b : t) text += {"0123456789abcdef"[unsigned(b) >> 4], "0123456789abcdef"[unsigned(b) & 15]};
  return text;
}

// Pauses that begin short, for ranks that come together, and grow, for those that wait long.
class Pause {
 public:
  explicit Pause(std::int64_t us_max) : us_max_(us_max) {}
  void wait() {
    std::this_thread::sleep_for(std::chrono::microseconds(us_));
    us_ = std::min(us_ + us_ / 4, us_max_);
  }

 private:
  std::int64_t us_ = 200, us_max_;
};

class Files : public Exchange {
 public:
  explicit Files(const FileStore& store) : store_(store), folder_(fs::path(store.prefix).parent_path()) {}

  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) final {
    if (broken_.ok()) broken_ = round(mine, all, timeout_ms);
    ++round_;
    return broken_;
  }

 protected:
  virtual Status round(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) = 0;

  std::string path(const std::string& name) const { return fmt::format("{}.{}", store_.prefix, name); }
  std::string hello_name(Rank r) const { return fmt::format("hello.{}", r); }
  std::string round_name(const std::string& last) const { return fmt::format("{}.{}.{}", job_, round_, last); }

  // What shows that rank r of this job knows the secret.
  Status prove(Rank r, Digest* mac) const {
    Digest key;
    const auto said = BytesOut().raw(kProof).raw(job_).u32(r).take();
    if (sha256(std::as_bytes(std::span(store_.secret)), &key) && hmac_sha256(key, said, mac)) return {};
    return Status::error("SHA-256 cannot be computed: this process is ending, or OpenSSL's settings forbid it",
                         GCCL_ERR_SYSTEM);
  }

  // The names of the store's files, without "PREFIX.", drafts among them.
  std::set<std::string> names() const {
    std::set<std::string> found;
    const std::string begin = fs::path(store_.prefix).filename().string() + ".";
    // Not by fs::directory_iterator: libstdc++'s ends the process where increment() finds no memory.
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_.c_str()), ::closedir);
    if (!folder) return found;
    while (const dirent* const entry = ::readdir(folder.get()))
      if (const std::string_view name = entry->d_name; name.starts_with(begin))
        found.emplace(name.substr(begin.size()));
    return found;
  }

  // A contribution goes once its rank has read the answer.
  bool all_have_read() const {
    const auto there = names();
    return std::none_of(there.begin(), there.end(),
                        [&](const std::string& name) { return name.starts_with(job_) && !name.ends_with(".all"); });
  }
  void remove_answers() const {
    for (const std::string& name : names())
      if (name.starts_with(job_)) remove_store_file(path(name));
  }

  const FileStore store_;
  const fs::path folder_;
  std::string job_;  // the id in hexadecimal digits; empty before it is known
  unsigned round_ = 0;
  Status broken_;
};

class FileServer final : public Files {
 public:
  explicit FileServer(const FileStore& store) : Files(store), tokens_(store.size) {
    job_ = hex(id_);
    // Only one job at a time uses this place, so that what has another id is left over.
    for (const std::string& name : names())
      if (is_of_a_job(name)) remove_store_file(path(name));
  }

  ~FileServer() override {
    try {
      const Deadline deadline = Deadline::in_ms(kLeaveMs);
      for (Pause pause(5000); !all_have_read() && !deadline.passed();) pause.wait();
      remove_store_file(path("job"));  // before the last look: a rank that reads later sees that nobody else clears up
      if (all_have_read()) remove_answers();
    } catch (const std::bad_alloc&) {
      // The files stay, as those of a killed job do.
    }
  }

 private:
  static bool is_of_a_job(const std::string& name) {
    const std::size_t digits = 2 * sizeof(Token);
    return name.size() > digits && name[digits] == '.' &&
           std::all_of(name.begin(), name.begin() + std::ptrdiff_t(digits),
                       [](unsigned char c) { return std::isxdigit(c); });
  }

  Status round(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    all->assign(mine.size() * store_.size, std::byte());
    std::copy(mine.begin(), mine.end(), all->begin());
    arrived_.assign(store_.size, false);
    arrived_[0] = true;
    left_ = store_.size - 1;
    limit_ms_ = timeout_ms;
    Deadline deadline = Deadline::in_ms(timeout_ms);
    for (Pause pause(20000); left_ > 0; pause.wait()) {
      const std::set<std::string> there = names();
      Status s;
      if (round_ == 0) s = greet(there);
      if (s.ok()) s = collect(there, all, mine.size(), &deadline);
      if (s.ok() && (left_ == 0 || deadline.passed())) s = doomed_;
      if (s.ok() && left_ > 0 && deadline.passed()) s = Status::error(missing(), GCCL_ERR_TIMEOUT);
      if (s.ok()) continue;
      // The reason for failure is news to the others; failing to report it is not news to the caller.
      (void)write_store_file(path(round_name("all")), error_answer(s));
      return s;
    }
    if (round_ > 0) remove_store_file(path(fmt::format("{}.{}.all", job_, round_ - 1)));  // all have read it
    const auto answer = BytesOut().raw(Answer{0, all->size()}.head()).raw(*all).take();
    return write_store_file(path(round_name("all")), answer);
  }

  // Learns tokens, and says so.
  Status greet(const std::set<std::string>& there) {
    bool news = !published_;
    for (Rank r = 1; r < store_.size; ++r) {
      if (arrived_[r] || !there.contains(hello_name(r))) continue;
      std::vector<std::byte> bytes;
      bool found = false;
      if (Status s = read_store_file(path(hello_name(r)), 4096, &bytes, &found); !s.ok()) return s;
      if (!found || bytes.size() != kHelloBytes || !starts_with(bytes, kHello)) continue;
      BytesIn in(std::span<const std::byte>(bytes).subspan(kHello.size()));
      if (const Rank size = in.u32(); size != store_.size) {  // left over, or mistaken: it will be missing
        other_sizes_[r] = size;
        continue;
      }
      other_sizes_.erase(r);
      const auto token = in.raw(sizeof(Token));
      if (std::equal(token.begin(), token.end(), tokens_[r].begin())) continue;
      std::copy(token.begin(), token.end(), tokens_[r].begin());
      news = true;
    }
    if (!news) return {};
    published_ = true;
    BytesOut job;
    job.raw(kJob).u32(store_.size).raw(id_);
    for (const Token& t : tokens_) job.raw(t);
    return write_store_file(path("job"), job.bytes());
  }

  Status collect(const std::set<std::string>& there, std::vector<std::byte>* all, std::size_t each,
                 Deadline* deadline) {
    for (Rank r = 1; r < store_.size; ++r) {
      const std::string name = round_name(std::to_string(r));
      if (arrived_[r] || !there.contains(name)) continue;
      std::vector<std::byte> bytes;
      bool found = false;
      if (Status s = read_store_file(path(name), std::size_t(1) << 30, &bytes, &found); !s.ok()) return s;
      if (!found) continue;
      arrived_[r] = true;
      --left_;
      Contribution c;
      std::span<const std::byte> data;
      if (Status s = check(r, bytes, each, &c, &data); !s.ok()) {
        if (doomed_.ok()) doomed_ = s;
        *deadline = deadline->earlier(Deadline::in_ms(kDoomedMs));
        continue;
      }
      std::copy(data.begin(), data.end(), all->begin() + std::ptrdiff_t(r * each));
      if (c.remaining_ms < deadline->left_ms()) {
        *deadline = Deadline::in_ms(c.remaining_ms);
        limit_ms_ = c.limit_ms;
      }
    }
    return {};
  }

  Status check(Rank r, std::span<const std::byte> frame, std::size_t each, Contribution* c,
               std::span<const std::byte>* data) const {
    BytesIn in(frame);
    const bool sound = Contribution::parse(in.raw(Contribution::kHeadBytes), c);
    Digest expected;
    const auto mac = in.raw(expected.size());
    if (sound && in.ok()) {
      if (Status s = prove(r, &expected); !s.ok()) return s;
      if (CRYPTO_memcmp(expected.data(), mac.data(), mac.size()) != 0)
        return Status::error(fmt::format("rank {} has another secret than rank 0 (store file://{}): set the same "
                                         "GCCL_SECRET or GCCL_SECRET_FILE for every rank",
                                         r, store_.prefix),
                             GCCL_ERR_AUTHENTICATION);
    }
    *data = in.rest();
    if (sound && in.ok() && c->bytes == each && data->size() == each) return {};
    return Status::error(
        fmt::format("rank {} contributed {} bytes while rank 0 contributes {} ({}): is it the same release?", r,
                    c->bytes, each, path(round_name(std::to_string(r)))),
        GCCL_ERR_MISMATCH);
  }

  std::string missing() const {
    std::vector<Rank> ranks;
    for (Rank r = 1; r < store_.size; ++r)
      if (!arrived_[r]) ranks.push_back(r);
    std::string text = fmt::format("{} (store file://{})", missing_text(ranks, store_.size, limit_ms_), store_.prefix);
    if (!other_sizes_.empty())
      text += fmt::format("; rank {} there belongs to a job of {} ranks: all must give the same size",
                          other_sizes_.begin()->first, other_sizes_.begin()->second);
    return text;
  }

  const Token id_ = new_token();
  std::vector<Token> tokens_;  // [r]: of the hello of rank r that the job file knows; zero for none
  bool published_ = false;
  Status doomed_;                     // why the ranks cannot start
  std::map<Rank, Rank> other_sizes_;  // ranks whose hellos give another size
  // Of the current round.
  std::vector<bool> arrived_;
  Rank left_ = 0;
  std::int64_t limit_ms_ = 0;
};

class FileClient final : public Files {
 public:
  explicit FileClient(const FileStore& store) : Files(store) {}
  ~FileClient() override {
    if (!hello_.empty()) remove_store_file(hello_);
    if (!contribution_.empty()) remove_store_file(contribution_);
    try {
      std::error_code error;
      if (!job_.empty() && !fs::exists(path("job"), error) && all_have_read()) remove_answers();
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  Status round(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    const Deadline deadline = Deadline::in_ms(timeout_ms);
    if (job_.empty())
      if (Status s = meet(deadline, timeout_ms); !s.ok()) return s;
    contribution_ = path(round_name(std::to_string(store_.rank)));
    const Contribution contribution{timeout_ms, deadline.left_ms(), mine.size()};
    Digest mac;
    if (Status s = prove(store_.rank, &mac); !s.ok()) return s;
    if (Status s = write_store_file(contribution_, BytesOut().raw(contribution.head()).raw(mac).raw(mine).take());
        !s.ok())
      return s;
    const std::uint64_t data_bytes = std::uint64_t(mine.size()) * store_.size;
    std::vector<std::byte> bytes;
    if (Status s =
            await(round_name("all"), Answer::kHeadBytes + std::max<std::size_t>(data_bytes, Answer::kTextBytesMax),
                  Deadline::in_ms(deadline.left_ms() + kGraceMs), timeout_ms, &bytes, [](auto&) { return true; });
        !s.ok())
      return s;
    remove_store_file(contribution_);
    contribution_.clear();
    const std::span<const std::byte> frame = bytes;
    Answer answer;
    if (frame.size() < Answer::kHeadBytes || !Answer::parse(frame.first(Answer::kHeadBytes), data_bytes, &answer) ||
        frame.size() != Answer::kHeadBytes + answer.bytes)
      return Status::error(
          fmt::format("rank 0's answer in {} makes no sense: is it the same release?", path(round_name("all"))),
          GCCL_ERR_REMOTE);
    const auto data = frame.subspan(Answer::kHeadBytes);
    if (answer.code != 0) return answer.status(data);
    all->assign(data.begin(), data.end());
    return {};
  }

  // Waits for a job file that knows this rank's token.
  Status meet(Deadline deadline, std::int64_t timeout_ms) {
    const Token token = new_token();
    hello_ = path(hello_name(store_.rank));
    if (Status s = write_store_file(hello_, BytesOut().raw(kHello).u32(store_.size).raw(token).take()); !s.ok())
      return s;
    const std::size_t job_bytes = kJob.size() + 4 + sizeof(Token) * (1 + std::size_t(store_.size));
    const auto knows_me = [&](const std::vector<std::byte>& bytes) {
      if (bytes.size() != job_bytes || !starts_with(bytes, kJob)) return false;  // of a job before this one
      BytesIn in(std::span<const std::byte>(bytes).subspan(kJob.size()));
      if (in.u32() != store_.size) return false;
      in.raw(sizeof(Token) * (1 + std::size_t(store_.rank)));
      const auto mine = in.raw(sizeof(Token));
      return std::equal(mine.begin(), mine.end(), token.begin());
    };
    std::vector<std::byte> bytes;
    const std::size_t bytes_max = kJob.size() + 4 + sizeof(Token) * ((std::size_t(1) << 20) + 1);
    if (Status s = await("job", bytes_max, deadline, timeout_ms, &bytes, knows_me); !s.ok()) return s;
    Token id;
    BytesIn in(std::span<const std::byte>(bytes).subspan(kJob.size() + 4));
    const auto found = in.raw(sizeof id);
    std::copy(found.begin(), found.end(), id.begin());
    job_ = hex(id);
    return {};
  }

  Status await(const std::string& name, std::size_t bytes_max, Deadline deadline, std::int64_t timeout_ms,
               std::vector<std::byte>* bytes, const std::function<bool(const std::vector<std::byte>&)>& wanted) {
    for (Pause pause(20000);; pause.wait()) {
      bool found = false;
      if (Status s = read_store_file(path(name), bytes_max, bytes, &found); !s.ok()) return s;
      if (found && wanted(*bytes)) return {};
      if (deadline.passed()) return late(timeout_ms);
      const Fd look(
          open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // makes network file systems look again
    }
  }

  // Rank 0 itself is silent: says whom this rank has seen.
  Status late(std::int64_t timeout_ms) const {
    const std::set<std::string> there = names();
    std::vector<Rank> absent{0};
    for (Rank r = 1; job_.empty() && r < store_.size; ++r)
      if (r != store_.rank && !there.contains(hello_name(r))) absent.push_back(r);
    return Status::error(fmt::format("rank {}: {} (store file://{}): does every rank see this folder?", store_.rank,
                                     missing_text(absent, store_.size, timeout_ms), store_.prefix),
                         GCCL_ERR_TIMEOUT);
  }

  std::string hello_, contribution_;  // paths of its files that are not yet removed
};

}  // namespace

Status open_file_store(const FileStore& store, std::unique_ptr<Exchange>* out) {
  assert(store.rank < store.size);
  const fs::path folder = fs::path(store.prefix).parent_path();
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    const Status why =
        system_error(fmt::format("store file://{}: the folder {}", store.prefix, folder.string()), errno);
    return Status::error(fmt::format("{}: expected one in which all ranks can make files", why.text()),
                         GCCL_ERR_INVALID_ARGUMENT);
  }
  if (store.rank == 0)
    *out = std::make_unique<FileServer>(store);
  else
    *out = std::make_unique<FileClient>(store);
  return {};
}

}  // namespace gccl
