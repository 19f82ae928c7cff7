// A larger communicator: of the ranks that are left, and of processes that want to join.
//
// One member, the first that can listen at the job's store, admits processes and speaks for them: it passes on what
// they say to the other members, and to them what all say. So the members agree among themselves alone, as when they
// shrink, and a process that fails while it joins does not keep them: they try again without it.
//
//   member          admitting member                 process
//        <- list ->           <- introduction --
//                             -- admitted ->
//        <- each all-gather of a start, of all ranks ->
//        <- agreement: all have it ->
//                             -- member ->
//        -- admitted, where the admitting member has failed before it said so ->
//
// What they make is a world of its own, as GCCL_Init makes it: with transports, watch and recovery of its own.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/bootstrap/admission.hpp"
#include "libgccl/bootstrap/applicant.hpp"
#include "libgccl/communicator/joining.hpp"
#include "libgccl/communicator/recovery/remaking.hpp"

namespace gccl {
namespace {

// Of what a member may say in an exchange, which others ask for until they have it.
constexpr std::uint64_t kAdmitted = ~std::uint64_t(0);
// After the admitting member has failed, the others need so long, and the detection time, to decide without it.
constexpr std::int64_t kDecideMs = 5000;
constexpr std::size_t kPieceBytes = 16384;  // of what is passed on for those that join
// After so many tries that processes which joined did not see to their end, the next ones would not either.
constexpr int kTriesMost = 3;

// Who is which rank of the larger communicator.
struct Places {
  std::vector<Rank> members, joined, was, started_as;  // the last: of rejoin
  Rank size() const { return Rank(was.size()); }

  // `wishes`: of those that join, the ranks that they were started as. Those that are left over get the lowest places
  // that are, and then come after all others. Where they are fewer, the others close up.
  static Places of(Rank before, const std::vector<Rank>& left, const std::vector<Rank>& wishes) {
    constexpr std::size_t kNone = ~std::size_t(0);
    std::vector<std::size_t> at(before, kNone);  // by place: who joins there
    std::vector<bool> is_left(before), placed(wishes.size());
    for (const Rank r : left) is_left[r] = true;
    for (std::size_t j = 0; j < wishes.size(); ++j)
      if (wishes[j] < before && !is_left[wishes[j]] && at[wishes[j]] == kNone) {
        at[wishes[j]] = j;
        placed[j] = true;
      }
    std::size_t next = 0;
    const auto next_one = [&] {
      while (next < wishes.size() && placed[next]) ++next;
      return next < wishes.size() ? next++ : kNone;
    };
    for (Rank r = 0; r < before; ++r)
      if (!is_left[r] && at[r] == kNone) at[r] = next_one();
    for (std::size_t j = next_one(); j != kNone; j = next_one()) at.push_back(j);
    Places p;
    p.joined.resize(wishes.size());
    for (Rank r = 0; r < at.size(); ++r) {
      if (at[r] != kNone)
        p.joined[at[r]] = p.size();
      else if (r < before && is_left[r])
        p.members.push_back(p.size());
      else
        continue;
      p.was.push_back(at[r] != kNone ? kNobody : r);
    }
    return p;
  }

  // Of those that are to be in the order of the ranks that they were started as, and all say which.
  static Places by_start(const std::vector<Rank>& started_as, const std::vector<Rank>& left,
                         const std::vector<Rank>& wishes) {
    std::map<Rank, std::pair<bool, Rank>> all;  // whether it joins, and which of those that do, or of the members
    for (const Rank r : left) all[started_as[r]] = {false, r};
    for (Rank j = 0; j < wishes.size(); ++j) all[wishes[j]] = {true, j};
    Places p;
    p.joined.resize(wishes.size());
    for (const auto& [number, who] : all) {
      if (who.first)
        p.joined[who.second] = p.size();
      else
        p.members.push_back(p.size());
      p.was.push_back(who.first ? kNobody : who.second);
      p.started_as.push_back(number);
    }
    return p;
  }
};

// What a member says before it grows.
struct Asked {
  bool listens = false;  // at the place where processes that join are met
  Growth growth;

  std::vector<std::byte> encoded() const {
    return BytesOut()
        .u8(listens)
        .u8(std::uint8_t(growth.policy))
        .u32(growth.most)
        .u64(std::uint64_t(growth.wait_ms))
        .take();
  }
  static Asked parse(std::span<const std::byte> bytes) {
    BytesIn in(bytes);
    Asked a;
    a.listens = in.u8() != 0;
    a.growth.policy = GCCL_Failure_policy(in.u8());
    a.growth.most = in.u32();
    a.growth.wait_ms = std::int64_t(in.u64());
    return a;
  }
  std::string call() const {
    constexpr const char* kNames[] = {"GCCL_Comm_grow", "a recovery by shrinking", "a recovery by the policy spare",
                                      "a recovery by the policy rejoin"};
    return growth.policy <= GCCL_REJOIN ? kNames[growth.policy] : "?";
  }
};

// Not ok on all of them where they did not ask for the same.
Status same_growth(const Members& group, const std::map<Rank, Asked>& asked) {
  const auto differs = [&](const char* field, auto value) -> Status {
    std::map<std::string, std::vector<Rank>> who;
    for (const auto& [r, a] : asked) who[value(a)].push_back(r);
    if (who.size() == 1) return {};
    std::string parts;
    for (const auto& [text, ranks] : who)
      parts += (parts.empty() ? "" : "; ") + fmt::format("{} on {}", text, group.names(ranks));
    return Status::error(fmt::format("{} differs: {}; expected the same on every rank", field, parts),
                         GCCL_ERR_MISMATCH);
  };
  if (Status s = differs("what grows the communicator", [](const Asked& a) { return a.call(); }); !s.ok()) return s;
  if (asked.begin()->second.growth.policy != GCCL_FAIL) return {};
  return differs("most", [](const Asked& a) { return std::to_string(a.growth.most); });
}

// Callers who wait for what is left of a time limit name lengths that differ by what they took to come: none waits
// longer than it says. How long a recovery waits is the admitting member's.
std::int64_t shortest_wait_ms(const std::map<Rank, Asked>& asked) {
  std::int64_t shortest = asked.begin()->second.growth.wait_ms;
  for (const auto& [r, a] : asked) shortest = std::min(shortest, a.growth.wait_ms);
  return shortest;
}

Rank wish_of(std::span<const std::byte> introduction) { return BytesIn(introduction).u32(); }

}  // namespace

class Recovery::Growing : public Making {
 public:
  Growing(const CommunicatorCore& parent, const Growth& growth)
      : parent_(parent), growth_(growth), wait_ms_(growth.wait_ms) {}
  fault::Call call() const override { return fault::Call::grow; }
  Watch::In in() const override { return Watch::In::grow; }
  Status make(const Members& group, Members m, Over& over, std::unique_ptr<CommunicatorCore>* out) override;
  bool again() const override { return admission_ && admission_->lost() && vain_ + 1 < kTriesMost; }
  void all_have(CommunicatorCore& made, std::uint64_t flags) override;
  void none_has() override {
    if (!admission_) return;
    vain_ += admission_->lost();
    admission_->dismiss();
    admission_.reset();
  }
  // Where ranks that have failed were to be replaced.
  bool makes_do(const Status& why) override {
    if (growth_.policy == GCCL_FAIL || std::exchange(alone_, true)) return false;
    log_line(kLogWarnings,
             fmt::format("{}: nobody takes the places of ranks that have failed",
                         why.ok() ? "another rank could not be connected to those that join" : why.text()));
    return true;
  }

 private:
  class Together;
  Rank most(const std::vector<Rank>& left) const {
    if (alone_) return 0;
    if (growth_.policy == GCCL_FAIL) return growth_.most;
    return growth_.size - std::min<Rank>(growth_.size, Rank(left.size()));
  }
  Status admit(const Members& group, const std::vector<Rank>& left, Over& over, std::vector<Rank>* wishes);
  Status admit_there(const Members& group, const JoinPlace& place, const std::vector<Rank>& left, Over& over,
                     std::vector<Rank>* wishes);
  Status meet_them(const JoinPlace& place, const std::vector<Rank>& left, Over& over);
  Status look_at(std::span<const std::byte> introduction, const std::vector<Rank>& left) const;

  const CommunicatorCore& parent_;
  const Growth& growth_;
  const std::int64_t began_ns_ = now_ns();
  std::int64_t wait_ms_;                  // for processes, from then on
  Rank leader_ = 0;                       // who admits, in the group
  std::unique_ptr<Admission> admission_;  // there
  int vain_ = 0;                          // tries that a process which joined did not see to their end
  bool alone_ = false;                    // nobody is admitted any more
};

// Exchanges among members and those that join, in the order of the new ranks.
class Recovery::Growing::Together : public Exchange {
 public:
  Together(Over& over, const Places& places, Rank leader, Admission* admission)
      : over_(over), places_(places), leader_(leader), admission_(admission) {}

  Status all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) override {
    const std::size_t each = mine.size();
    std::vector<std::byte> theirs(each * places_.joined.size());
    if (admission_)
      if (Status s = admission_->gather(
              each, timeout_ms, [this] { return over_.goes_on(); }, &theirs);
          !s.ok())
        return s;
    std::map<Rank, std::vector<std::byte>> said;
    if (Status s = over_.gather(mine, &said, timeout_ms); !s.ok()) return s;
    all->assign(each * places_.size(), std::byte());
    auto place = places_.members.begin();
    for (const auto& [r, bytes] : said) {
      if (bytes.size() != each) return Status::error("ranks exchange different lengths", GCCL_ERR_MISMATCH);
      std::ranges::copy(bytes, all->begin() + std::ptrdiff_t(*place++ * each));
    }
    for (std::size_t at = 0; at < theirs.size(); at += kPieceBytes) {
      const std::span<std::byte> piece = std::span(theirs).subspan(at, std::min(kPieceBytes, theirs.size() - at));
      const std::byte nothing{};
      const std::span<const std::byte> passed = admission_ ? std::span<const std::byte>(piece) : std::span(&nothing, 1);
      if (Status s = over_.gather(passed, &said, timeout_ms); !s.ok()) return s;
      if (said[leader_].size() != piece.size())
        return Status::error("ranks exchange different lengths", GCCL_ERR_MISMATCH);
      std::ranges::copy(said[leader_], piece.begin());
    }
    for (std::size_t i = 0; i < places_.joined.size(); ++i)
      std::memcpy(all->data() + places_.joined[i] * each, theirs.data() + i * each, each);
    return admission_ ? admission_->answer(*all) : Status();
  }

 private:
  Over& over_;
  const Places& places_;
  const Rank leader_;
  Admission* const admission_;
};

Status Recovery::Growing::look_at(std::span<const std::byte> introduction, const std::vector<Rank>& left) const {
  const auto wrong = [](const char* text) { return Status::error(text, GCCL_ERR_INVALID_USAGE); };
  Introduction joins;
  constexpr std::size_t kWish = sizeof(std::uint32_t);
  if (introduction.size() != kWish + sizeof joins)
    return wrong("its library is another build: install one on all machines");
  std::memcpy(static_cast<void*>(&joins), introduction.data() + kWish, sizeof joins);
  joins.end_texts();
  if (Status s = misfit(joins, at_the_door(parent_.world())); !s.ok() || growth_.policy != GCCL_REJOIN) return s;
  const Rank wish = wish_of(introduction);
  if (wish == kNobody)
    return wrong(
        "the job admits processes in the place of ranks that have failed alone (the policy rejoin): set "
        "GCCL_RANK to that of one");
  const auto alive = [&](Rank r) { return growth_.started_as[r] == wish; };
  if (wish >= growth_.size || std::ranges::any_of(left, alive))
    return Status::error("that rank has not failed, as far as is known", GCCL_IN_PROGRESS);
  for (const auto& other : admission_->introductions())
    if (wish_of(other) == wish) return Status::error("another process has taken that rank's place", GCCL_IN_PROGRESS);
  return {};
}

// The admitting member's.
Status Recovery::Growing::meet_them(const JoinPlace& place, const std::vector<Rank>& left, Over& over) {
  if (Status s = Admission::open(place, GCCL_VERSION_CODE, &admission_); !s.ok()) {
    if (growth_.policy == GCCL_FAIL) return s;
    log_line(kLogWarnings, fmt::format("{}: nobody takes the places of ranks that have failed", s.text()));
    return {};
  }
  return admission_->collect(
      most(left), std::max<std::int64_t>(0, wait_ms_ - (now_ns() - began_ns_) / kNsPerMs),
      [&](std::span<const std::byte> introduction) { return look_at(introduction, left); },
      [&] { return over.goes_on(); });
}

// The first member that can listen waits for processes; all learn who they are.
Status Recovery::Growing::admit(const Members& group, const std::vector<Rank>& left, Over& over,
                                std::vector<Rank>* wishes) {
  const RankSettings& settings = parent_.world().bootstrap;
  JoinPlace place;
  const Status known = JoinPlace::parse(settings.store, settings.secret, settings.address, &place);
  std::map<Rank, std::vector<std::byte>> said;
  if (Status s = over.gather(Asked{known.ok() && place.is_here(), growth_}.encoded(), &said, kConnectMs); !s.ok())
    return s;
  std::map<Rank, Asked> asked;
  for (const auto& [r, bytes] : said) asked.emplace(r, Asked::parse(bytes));
  if (Status s = same_growth(group, asked); !s.ok()) return s;
  if (most(left) == 0) return {};
  if (growth_.policy == GCCL_FAIL) wait_ms_ = shortest_wait_ms(asked);
  const auto first = std::ranges::find_if(asked, [](const auto& x) { return x.second.listens; });
  if (first == asked.end()) {
    if (growth_.policy != GCCL_FAIL) return {};
    return Status::error(
        settings.store.empty()
            ? "there is no store where processes that join could be met: set GCCL_STORE"
            : fmt::format("no rank that is left is on the machine of the store {}, where processes that join are met: "
                          "use a file store (file:///PATH) in a folder that all see",
                          settings.store),
        GCCL_ERR_NOT_SUPPORTED);
  }
  leader_ = first->first;
  return admit_there(group, place, left, over, wishes);
}

Status Recovery::Growing::admit_there(const Members& group, const JoinPlace& place, const std::vector<Rank>& left,
                                      Over& over, std::vector<Rank>* wishes) {
  BytesOut out;
  if (leader_ != group.rank) {
    out.u8(0);
  } else if (const Status s = meet_them(place, left, over); !s.ok()) {
    constexpr std::size_t kTextMax = 2000;
    out.u32(std::uint32_t(s.code())).raw(std::string_view(s.text()).substr(0, kTextMax));
  } else {
    out.u32(0);
    if (admission_)
      for (const auto& introduction : admission_->introductions()) out.u32(wish_of(introduction));
  }
  std::map<Rank, std::vector<std::byte>> said;
  if (Status s = over.gather(out.bytes(), &said, -1); !s.ok()) return s;
  BytesIn in(said[leader_]);
  const int code = int(in.u32());
  if (code != 0 || !in.ok())
    return Status::error(fmt::format("{}: {}", group.name(leader_), to_text(in.rest())),
                         is_error(code) ? code : GCCL_ERR_REMOTE);
  while (in.ok() && !in.rest().empty()) wishes->push_back(in.u32());
  return {};
}

Status Recovery::Growing::make(const Members& group, Members m, Over& over, std::unique_ptr<CommunicatorCore>* out) {
  std::vector<Rank> left, wishes;
  for (Rank r = 0; r < group.size(); ++r)
    if (std::ranges::count(m.world_rank, group.world_rank[r]) > 0) left.push_back(r);
  if (Status s = admit(group, left, over, &wishes); !s.ok()) return s;
  if (wishes.empty()) return CommunicatorCore::create(parent_.team().world, std::move(m), over, out);
  const Places places = growth_.policy == GCCL_REJOIN ? Places::by_start(growth_.started_as, left, wishes)
                                                      : Places::of(group.size(), left, wishes);
  if (admission_)
    if (Status s = admission_->admit(places.joined, places.size()); !s.ok()) return s;
  const std::shared_ptr<World> world = world_like(parent_.world(), places.members[m.rank], places.size());
  world->joined = places.joined;
  std::ranges::sort(world->joined);
  world->was = places.was;
  world->started_as = places.started_as;
  Together exchange(over, places, leader_, admission_.get());
  if (Status s = connect_world(world, exchange, kConnectMs, out); !s.ok()) return s;
  return admission_ ? admission_->all_there() : Status();
}

void Recovery::Growing::all_have(CommunicatorCore& made, std::uint64_t flags) {
  if (&made.world() == &parent_.world()) return;  // nobody joined
  const std::vector<std::byte> word =
      growth_.word ? growth_.word(flags, made.world()) : std::vector<std::byte>{std::byte(0)};
  made.world().recovery->say_admitted(made.members(), word);
  if (admission_) admission_->confirm(word);
}

Status Recovery::grow(CommunicatorCore& parent, const Growth& growth, std::unique_ptr<CommunicatorCore>* out,
                      std::uint64_t* flags) {
  Growing growing(parent, growth);
  // A limit is for what ranks do; that of waiting for processes comes on top.
  const std::int64_t timeout_ms = parent.timeout_ms(), waits_ms = std::max(growth.wait_ms, Admission::kHearMs);
  return remake(parent, growing, time_limit(timeout_ms < 0 ? timeout_ms : timeout_ms + waits_ms), out, flags);
}

// ---- In the new world ----

void Recovery::say_admitted(const Members& members, std::span<const std::byte> word) {
  std::lock_guard lock(mutex_);
  group_of(members).said[kAdmitted].assign(word.begin(), word.end());
}

Status Recovery::await_admission(const Members& members, std::span<const Rank> joined, Applicant& applicant,
                                 std::vector<std::byte>* word) {
  std::unique_lock lock(mutex_);
  Group& g = group_of(members);
  fault::RankSet others = fault::RankSet::below(members.size());
  for (const Rank r : joined) others = others - fault::RankSet{r};
  // All members are about to agree: one that has confirmed nothing for so long is stopped, or cut off.
  const std::int64_t silent_ns = time_limit(detection_ms_ + kDecideMs);
  std::int64_t until_ns = time_limit(-1);
  Status s;
  for (;; changed_.wait_for(lock, std::chrono::milliseconds(20))) {
    if (const auto& heard = g.heard[kAdmitted]; !heard.empty()) *word = heard.begin()->second;
    if (!word->empty() || !ended_.ok()) break;
    lock.unlock();
    const Applicant::Verdict verdict = applicant.verdict();
    lock.lock();
    if (verdict == Applicant::Verdict::member) *word = applicant.word();
    if (verdict == Applicant::Verdict::member) break;
    if (verdict == Applicant::Verdict::again) s = Status::error("the members begin anew", GCCL_ERR_PEER_LOST);
    if ((verdict == Applicant::Verdict::gone || now_ns() >= silent_ns) && g.wanted == 0) {
      want_from(g, kAdmitted, 0);
      until_ns = time_limit(detection_ms_ + kDecideMs);
      wake();
    }
    if (g.membership->failures().failed.includes(others) || now_ns() >= until_ns)
      s = Status::error("the member that admits others has failed, and the others do not say that this process is one",
                        GCCL_ERR_PEER_LOST);
    if (!s.ok()) break;
  }
  g.wanted = 0;
  g.heard.erase(kAdmitted);
  return s.ok() ? ended_.copy_or_code() : std::move(s);
}

}  // namespace gccl
