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
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

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
constexpr std::string_view kHello = "hello.", kJob = "gccl-file-job/2", kProof = "gccl file store";
constexpr std::size_t kFileBytesMax = std::size_t(1) << 30;
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

// A process that has come: several may say that they are the same rank.
struct FileMember {
  Rank rank = 0;
  Token token{};

  std::string name() const { return fmt::format("{}.{}", rank, hex(token)); }
  static bool parse(std::string_view name, FileMember* out) {
    const std::size_t dot = name.find('.');
    if (dot == name.npos || name.size() != dot + 1 + 2 * sizeof(Token)) return false;
    const auto digits = [](std::string_view text, auto* number, int base) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
      return error == std::errc() && end == text.data() + text.size();
    };
    bool sound = digits(name.substr(0, dot), &out->rank, 10);
    for (std::size_t i = 0; sound && i < sizeof(Token); ++i) {
      std::uint8_t byte = 0;
      sound = digits(name.substr(dot + 1 + 2 * i, 2), &byte, 16);
      out->token[i] = std::byte(byte);
    }
    return sound;
  }
};

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
  explicit Files(const FileStore& store) : store_(store), folder_(fs::path(store.prefix).parent_path()) {
    me_ = {store.rank, new_token()};
  }

  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) final {
    if (broken_.ok()) broken_ = round(mine, all, timeout_ms);
    ++round_;
    return broken_;
  }

 protected:
  virtual Status round(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) = 0;

  std::string path(const std::string& name) const { return fmt::format("{}.{}", store_.prefix, name); }
  std::string round_name(const std::string& last) const { return fmt::format("{}.{}.{}", job_, round_, last); }

  // What shows that a member of the job with this id knows the secret.
  Status prove(const std::string& job, const FileMember& m, Rank size, Digest* mac) const {
    Digest key;
    const auto said = BytesOut().raw(kProof).raw(job).u32(size).raw(m.name()).take();
    if (sha256(std::as_bytes(std::span(store_.secret)), &key) && hmac_sha256(key, said, mac)) return {};
    return Status::error("SHA-256 cannot be computed: this process is ending, or OpenSSL's settings forbid it",
                         GCCL_ERR_SYSTEM);
  }

  Status contribute(const std::string& to, const std::string& job, const Contribution& contribution,
                    std::span<const std::byte> mine) const {
    Digest mac;
    if (Status s = prove(job, me_, store_.size, &mac); !s.ok()) return s;
    return write_store_file(to, BytesOut().raw(contribution.head()).u32(store_.size).raw(mac).raw(mine).take());
  }

  // The id in the job file; empty where there is none.
  Status read_job(std::string* job, std::vector<Token>* members) const {
    job->clear();
    members->clear();
    std::vector<std::byte> bytes;
    bool found = false;
    if (Status s = read_store_file(path("job"), kFileBytesMax, &bytes, &found); !s.ok()) return s;
    if (!found || !starts_with(bytes, kJob)) return {};
    BytesIn in(std::span<const std::byte>(bytes).subspan(kJob.size()));
    Token id;
    std::ranges::copy(in.raw(sizeof id), id.begin());
    for (Token t; in.ok() && !in.rest().empty(); members->push_back(t)) std::ranges::copy(in.raw(sizeof t), t.begin());
    if (in.ok()) *job = hex(id);
    return {};
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
  FileMember me_;
  std::string job_;  // the id in hexadecimal digits; empty before it is known
  unsigned round_ = 0;
  Status broken_;
};

class FileServer final : public Files {
 public:
  explicit FileServer(const FileStore& store) : Files(store), members_(store.size) {
    job_ = hex(me_.token);
    members_[0] = me_.token;
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
  bool is_of_another_job(const std::string& name) const {
    const std::size_t digits = 2 * sizeof(Token);
    return name.size() > digits && name[digits] == '.' && !name.starts_with(job_) &&
           std::all_of(name.begin(), name.begin() + std::ptrdiff_t(digits),
                       [](unsigned char c) { return std::isxdigit(c); });
  }

  Status round(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    all->assign(mine.size() * store_.size, std::byte());
    std::copy(mine.begin(), mine.end(), all->begin());
    arrived_.assign(store_.size, false);
    arrived_[0] = true;
    collected_.clear();
    left_ = store_.size - 1;
    limit_ms_ = timeout_ms;
    Deadline deadline = Deadline::in_ms(timeout_ms);
    std::set<std::string> there;
    for (Pause pause(20000); left_ > 0; pause.wait()) {
      there = names();
      Status s;
      if (round_ == 0) s = greet(there, &deadline);
      if (s.ok()) s = collect(there, all, mine.size(), &deadline);
      if (s.ok() && (left_ == 0 || deadline.passed())) s = doomed_;
      if (s.ok() && left_ > 0 && deadline.passed()) s = Status::error(missing(), GCCL_ERR_TIMEOUT);
      if (s.ok()) continue;
      // The reason for failure is news to the others; failing to report it is not news to the caller.
      (void)answer(error_answer(s));
      return s;
    }
    if (round_ > 0) remove_store_file(path(fmt::format("{}.{}.all", job_, round_ - 1)));  // all have read it
    if (Status s = answer(BytesOut().raw(Answer{0, all->size()}.head()).raw(*all).take()); !s.ok()) return s;
    // All have come, and so have read what the job before this one had left for them: what else is there is left over.
    for (const std::string& name : there)
      if (round_ == 0 && (name.starts_with(kHello) || is_of_another_job(name))) remove_store_file(path(name));
    return {};
  }

  // Begins with who the job's members are: another process that has read the job file learns that it is none.
  Status answer(std::span<const std::byte> bytes) const {
    BytesOut out;
    out.u32(store_.size);
    for (const Token& t : members_) out.raw(t);
    return write_store_file(path(round_name("all")), out.raw(bytes).bytes());
  }

  void doom(Status why, Deadline* deadline) {
    if (doomed_.ok()) doomed_ = std::move(why);
    *deadline = deadline->earlier(Deadline::in_ms(kDoomedMs));
  }
  Status twice(Rank r) const {
    return invalid(
        fmt::format("rank {} has come twice (store file://{}): expected one process for each rank, and one "
                    "job at a time at this place",
                    r, store_.prefix));
  }

  // Lists who has come, whatever they say of themselves: which of them live is known when they contribute.
  Status greet(const std::set<std::string>& there, Deadline* deadline) {
    if (published_) {
      std::string job;
      std::vector<Token> members;
      if (Status s = read_job(&job, &members); !s.ok()) return s;
      if (!job.empty() && job != job_) {
        // Another rank 0 is here, which is to hear of it.
        if (doomed_.ok()) (void)contribute(path(fmt::format("{}.0.{}", job, me_.name())), job, {}, {});
        doom(twice(0), deadline);
        return {};
      }
    }
    bool news = !published_;
    for (const std::string& name : there)
      if (FileMember m; name.starts_with(kHello) && FileMember::parse(std::string_view(name).substr(kHello.size()), &m))
        news |= hellos_.insert(m.token).second;
    if (!news) return {};
    published_ = true;
    BytesOut job;
    job.raw(kJob).raw(me_.token);
    for (const Token& t : hellos_) job.raw(t);
    return write_store_file(path("job"), job.bytes(), path(fmt::format("job.{}~", job_)));
  }

  Status collect(const std::set<std::string>& there, std::vector<std::byte>* all, std::size_t each,
                 Deadline* deadline) {
    const std::string begin = round_name("");
    for (const std::string& name : there) {
      FileMember m;
      if (!name.starts_with(begin) || collected_.contains(name) ||
          !FileMember::parse(std::string_view(name).substr(begin.size()), &m))
        continue;
      std::vector<std::byte> bytes;
      bool found = false;
      if (Status s = read_store_file(path(name), kFileBytesMax, &bytes, &found); !s.ok()) return s;
      if (!found) continue;
      collected_.insert(name);
      if (m.rank == 0) remove_store_file(path(name));  // another rank 0's, which waits for no answer
      Contribution c;
      std::span<const std::byte> data;
      const Status s = check(m, bytes, each, &c, &data);
      if (!s.ok()) doom(s, deadline);
      if (m.rank >= store_.size || arrived_[m.rank]) continue;
      arrived_[m.rank] = true;
      members_[m.rank] = m.token;
      --left_;
      if (!s.ok()) continue;
      std::copy(data.begin(), data.end(), all->begin() + std::ptrdiff_t(m.rank * each));
      if (c.remaining_ms < deadline->left_ms()) {
        *deadline = Deadline::in_ms(c.remaining_ms);
        limit_ms_ = c.limit_ms;
      }
    }
    return {};
  }

  Status check(const FileMember& m, std::span<const std::byte> frame, std::size_t each, Contribution* c,
               std::span<const std::byte>* data) const {
    BytesIn in(frame);
    const bool sound = Contribution::parse(in.raw(Contribution::kHeadBytes), c);
    const Rank size = in.u32();
    Digest expected;
    const auto mac = in.raw(expected.size());
    *data = in.rest();
    if (!sound || !in.ok()) return mismatch(m, data->size(), each);
    if (Status s = prove(job_, m, size, &expected); !s.ok()) return s;
    if (CRYPTO_memcmp(expected.data(), mac.data(), mac.size()) != 0)
      return Status::error(fmt::format("rank {} has another secret than rank 0 (store file://{}): set the same "
                                       "GCCL_SECRET or GCCL_SECRET_FILE for every rank",
                                       m.rank, store_.prefix),
                           GCCL_ERR_AUTHENTICATION);
    if (size != store_.size)
      return invalid(
          fmt::format("rank {} of a job of {} ranks came to the store file://{} of a job of {}: all ranks "
                      "must give the same size",
                      m.rank, size, store_.prefix, store_.size));
    if (m.rank >= store_.size || (arrived_[m.rank] && members_[m.rank] != m.token)) return twice(m.rank);
    return c->bytes == each && data->size() == each ? Status() : mismatch(m, c->bytes, each);
  }

  Status mismatch(const FileMember& m, std::uint64_t bytes, std::size_t each) const {
    return Status::error(
        fmt::format("rank {} contributed {} bytes while rank 0 contributes {} ({}): is it the same release?", m.rank,
                    bytes, each, path(round_name(m.name()))),
        GCCL_ERR_MISMATCH);
  }

  std::string missing() const {
    std::vector<Rank> ranks;
    for (Rank r = 1; r < store_.size; ++r)
      if (!arrived_[r]) ranks.push_back(r);
    return fmt::format("{} (store file://{})", missing_text(ranks, store_.size, limit_ms_), store_.prefix);
  }

  std::vector<Token> members_;  // [r]: of rank r
  std::set<Token> hellos_;      // those that the job file lists
  bool published_ = false;
  Status doomed_;  // why the ranks cannot start
  // Of the current round.
  std::vector<bool> arrived_;
  std::set<std::string> collected_;
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
    contribution_ = path(round_name(me_.name()));
    if (Status s = contribute(contribution_, job_, {timeout_ms, deadline.left_ms(), mine.size()}, mine); !s.ok())
      return s;
    std::vector<std::byte> bytes;
    const Deadline limit = Deadline::in_ms(deadline.left_ms() + kGraceMs);
    const auto answered = [&](bool* yes) {
      return read_store_file(path(round_name("all")), kFileBytesMax, &bytes, yes);
    };
    if (Status s = await(answered, limit, timeout_ms); !s.ok()) return s;
    remove_store_file(contribution_);
    contribution_.clear();
    BytesIn in(bytes);
    const Rank size = in.u32();
    const auto members = in.raw(sizeof(Token) * size), head = in.raw(Answer::kHeadBytes), data = in.rest();
    Answer answer;
    if (!in.ok() || !Answer::parse(head, std::uint64_t(mine.size()) * size, &answer) || data.size() != answer.bytes)
      return Status::error(
          fmt::format("rank 0's answer in {} makes no sense: is it the same release?", path(round_name("all"))),
          GCCL_ERR_REMOTE);
    if (answer.code != 0) return answer.status(data);
    if (size != store_.size)
      return invalid(
          fmt::format("rank {} of a job of {} ranks came to the store file://{} of a job of {}: all ranks "
                      "must give the same size",
                      me_.rank, store_.size, store_.prefix, size));
    if (!std::ranges::equal(members.subspan(sizeof(Token) * me_.rank, sizeof(Token)), me_.token))
      return invalid(fmt::format("rank {} has come twice (store file://{}): expected one process for each rank",
                                 me_.rank, store_.prefix));
    all->assign(data.begin(), data.end());
    return {};
  }

  // Waits for a job file that knows this rank's token: one that does not is of a job before this one.
  Status meet(Deadline deadline, std::int64_t timeout_ms) {
    hello_ = path(std::string(kHello) + me_.name());
    if (Status s = write_store_file(hello_, {}); !s.ok()) return s;
    std::string job;
    const auto knows_me = [&](bool* yes) {
      std::vector<Token> members;
      const Status s = read_job(&job, &members);
      *yes = std::ranges::find(members, me_.token) != members.end();
      return s;
    };
    if (Status s = await(knows_me, deadline, timeout_ms); !s.ok()) return s;
    job_ = job;
    return {};
  }

  Status await(const std::function<Status(bool* yes)>& look, Deadline deadline, std::int64_t timeout_ms) {
    for (Pause pause(20000);; pause.wait()) {
      bool yes = false;
      if (Status s = look(&yes); !s.ok() || yes) return s;
      if (deadline.passed()) return late(timeout_ms);
      const Fd again(
          open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // makes network file systems look again
    }
  }

  // Rank 0 itself is silent: says whom this rank has seen.
  Status late(std::int64_t timeout_ms) const {
    const std::set<std::string> there = names();
    std::set<Rank> seen;
    for (const std::string& name : there)
      if (FileMember m; name.starts_with(kHello) && FileMember::parse(std::string_view(name).substr(kHello.size()), &m))
        seen.insert(m.rank);
    std::vector<Rank> absent{0};
    for (Rank r = 1; job_.empty() && r < store_.size; ++r)
      if (r != store_.rank && !seen.contains(r)) absent.push_back(r);
    return Status::error(fmt::format("rank {}: {} (store file://{}): does every rank see this folder, or has rank 0 "
                                     "failed, whose own messages say why?",
                                     store_.rank, missing_text(absent, store_.size, timeout_ms), store_.prefix),
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
