#include "libgccl/communicator/recovery/recovery.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <system_error>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/base/machine.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/base/shortened.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/communicator/communicator_core.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kAttendNs = 20 * kNsPerMs;
constexpr std::int64_t kAskPauseNsMax = 320 * kNsPerMs;
constexpr fault::MembershipSettings kSettings = {.retry = 20 * kNsPerMs, .quorum_timeout = 5000 * kNsPerMs};

}  // namespace

std::int64_t Recovery::time_limit(std::int64_t timeout_ms) {
  return timeout_ms < 0 ? std::numeric_limits<std::int64_t>::max() : now_ns() + timeout_ms * kNsPerMs;
}

std::unique_ptr<Recovery> Recovery::open(const Bootstrap& bootstrap) {
  auto r = std::make_unique<Recovery>();
  r->usable_ = Datagrams::open(bootstrap.address, !bootstrap.secret.empty(), &r->datagrams_);
  r->detection_ms_ = bootstrap.detection_ms;
  return r;
}

Recovery::~Recovery() {
  try {
    await_decided();
  } catch (...) {  // out of memory: the others are on their own
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

Contact Recovery::contact() const {
  Contact c;
  c.process = OtherProcess::me();
  c.network = splitmix::hash(std::hash<std::string>()(file_identity("/proc/thread-self/ns/net")));
  c.detection_ms = detection_ms_;
  if (datagrams_)
    std::ranges::transform(datagrams_->addresses(), c.addresses, [](const SocketAddress& a) { return a.wire(); });
  put_shortened(c.none, usable_.text());
  if (datagrams_) c.family = datagrams_->family(), c.second_error = datagrams_->second_error();
  return c;
}

bool Recovery::needs_second(Rank from, const DatagramPaths& paths, Rank to) const {
  const auto& at = paths.addresses(to);
  const int family = contacts_[from].family;
  return from != to && family != 0 && !at.empty() &&
         std::ranges::none_of(at, [&](const SocketAddress& a) { return a.family() == family; });
}

// All ranks find the same, from what all have said.
Status Recovery::check_paths() const {
  bool of[2] = {};  // where nobody has an address of one family, nobody needs a socket for it
  for (const Contact& c : contacts_)
    for (const auto& wire : c.addresses)
      if (const SocketAddress a = SocketAddress::from_wire(wire); a.valid()) of[a.family() == AF_INET6] = true;
  for (Rank from = 0; from < contacts_.size() && of[0] && of[1]; ++from) {
    if (contacts_[from].second_error == 0) continue;
    const DatagramPaths paths(from, contacts_);
    for (Rank to = 0; to < contacts_.size(); ++to)
      if (needs_second(from, paths, to))
        return Status::error(
            fmt::format("ranks cannot go on without others: rank {} can send no datagrams to rank {} ({})", from, to,
                        system_error("a datagram socket", contacts_[from].second_error).text()),
            GCCL_ERR_NOT_SUPPORTED);
  }
  return {};
}

void Recovery::meet(Rank rank, std::vector<Contact> contacts, std::uint64_t job, const std::string& secret) {
  assert(rank < contacts.size() && groups_.empty() && !thread_.joinable());
  rank_ = rank;
  contacts_ = std::move(contacts);
  gone_.assign(contacts_.size(), false);
  usable_ = {};
  for (Rank r = 0; r < contacts_.size() && usable_.ok(); ++r) {
    contacts_[r].none[sizeof contacts_[r].none - 1] = 0;
    if (contacts_[r].none[0])
      usable_ = Status::error(
          fmt::format("ranks cannot go on without others: rank {} could receive no datagrams when the job started ({})",
                      r, contacts_[r].none),
          GCCL_ERR_NOT_SUPPORTED);
  }
  if (usable_.ok()) usable_ = check_paths();
  if (!usable_.ok()) return datagrams_.reset();
  // The job's number is drawn by its first rank, and only its ranks know it.
  BytesOut material;
  material.raw("gccl datagrams").u64(job).raw(secret);
  Digest key{};
  if (sha256(material.bytes(), &key)) datagrams_->use_key(key);
  job_ = job;
  paths_ = DatagramPaths(rank_, contacts_);
  bool needs = false;
  for (Rank r = 0; r < contacts_.size(); ++r) needs = needs || needs_second(rank_, paths_, r);
  if (!needs) datagrams_->close_second();
  start_detector();
}

// ---- Failures ----

void Recovery::learn(Group& g, const std::vector<Rank>& lost) {
  fault::Failures f;
  for (Rank r = 0; r < g.members.size(); ++r)
    if (gone_[g.members.world_rank[r]] && g.membership->members().contains(r))
      f.insert_gone(r);
    else if (silent_.failed.contains(g.members.world_rank[r]) && g.membership->members().contains(r))
      f.failed.insert(r);
  for (const Rank r : lost) {
    const Rank world = g.members.world_rank[r];
    // What a transport says of a process that the system shows here, that knows better.
    if (r != g.members.rank && !seen(world) && g.membership->members().contains(r)) f.failed.insert(r);
  }
  g.membership->learn(now_ns(), f);
  flush(g);
}

std::vector<Rank> Recovery::failed(const Members& members, const std::vector<Rank>& lost) {
  std::lock_guard lock(mutex_);
  Group& g = group_of(members);
  const Whole whole(*this);
  check_processes();
  learn(g, lost);
  // Also those that earlier shrinking has left behind.
  std::vector<Rank> all;
  for (Rank r = 0; r < members.size(); ++r)
    if (!g.membership->members().contains(r) || g.membership->failures().failed.contains(r)) all.push_back(r);
  return all;
}

void Recovery::acknowledge(const Members& members) {
  std::lock_guard lock(mutex_);
  Group& g = group_of(members);
  g.membership->acknowledge(g.membership->failures().failed);
}

// ---- The thread ----

void Recovery::wake() {
  const std::uint64_t one = 1;
  if (wake_) (void)!::write(wake_.get(), &one, sizeof one);
}

void Recovery::start_thread() {
  if (thread_.joinable()) return;
  if (!wake_) wake_ = not_for_children([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  all_watched_ = bool(wake_);  // a thread that nobody can wake looks more often
  watches_.clear();
  for (Rank r = 0; r < contacts_.size(); ++r) {
    if (r == rank_ || gone_[r] || !seen(r) || contacts_[r].process.pid == ::getpid()) continue;
    Fd fd = not_for_children([&] { return contacts_[r].process.open_watch(); });
    if (fd)
      watches_.emplace_back(r, std::move(fd));
    else if (contacts_[r].process.state() == OtherProcess::State::ended)
      note_gone(r);
    else
      all_watched_ = false;
  }
  try {
    thread_ = own_thread([this] { serve(); });
  } catch (const std::system_error& e) {
    throw std::system_error(e.code(), "a thread that answers ranks which agree or shrink (see ulimit -u and -v)");
  }
}

// The program of a rank whose calls go on no more need not end with them. Others are refused what they send here, as by
// one that has left, and so they go on without it. Not where a detector asks: it would take the process for ended, and
// all calls of the job would end with it.
void Recovery::resign() {
  if (datagrams_ && !rules_.recovery) datagrams_->close();
}

std::vector<Rank> Recovery::lost_of(CommunicatorCore& c) try {
  return c.lost();
} catch (...) {  // its lock comes before this one
  std::lock_guard lock(mutex_);
  end_calls();
  throw;
}

void Recovery::end_calls() {
  ended_ = Status::error_or_code("an earlier call ran out of memory or threads", GCCL_ERR_SYSTEM);
  if (thread_.joinable())
    wake();
  else
    resign();
}

// What runs short of memory half way is not known any more: then no call goes on, and none waits.
void Recovery::serve() noexcept {
  std::unique_lock lock(mutex_);
  try {
    while (!stop_ && ended_.ok()) serve_once(lock);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    ended_ = caught();
  }
  if (!ended_.ok()) resign();
  changed_.notify_all();
}

void Recovery::serve_once(std::unique_lock<std::mutex>& lock) {
  std::int64_t due = now_ns() + (all_watched_ ? 1000 * kNsPerMs : kRetryNs);
  for (auto& [id, g] : groups_) {
    due = std::min(due, reports(g) ? g.report_at_ns : g.membership->deadline());
    if (g.wanted != 0) due = std::min(due, g.want_at_ns);
  }
  if (detector_) due = std::min(due, detector_->deadline());
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {datagrams_->fd(), POLLIN, 0}, {datagrams_->second_fd(), 0, 0}};
  const std::size_t others = fds.size();
  for (auto& [r, fd] : watches_) fds.push_back({fd.get(), POLLIN, 0});
  const std::int64_t wait_ns = std::max<std::int64_t>(due - now_ns(), 0);
  lock.unlock();
  ::poll(fds.data(), fds.size(), int(std::min<std::int64_t>((wait_ns + kNsPerMs - 1) / kNsPerMs, 1000)));
  lock.lock();
  std::uint64_t ignored;
  if (fds[0].revents) (void)!::read(wake_.get(), &ignored, sizeof ignored);
  read_some();  // what those have said that have ended since
  for (std::size_t i = others; i < fds.size(); ++i) {
    if (fds[i].revents & POLLIN) {
      note_gone(watches_[i - others].first);
    } else if (fds[i].revents) {  // the program has closed what is not its own: that says nothing of the other rank
      watches_[i - others].second.release();
      all_watched_ = false;
    }
  }
  std::erase_if(watches_, [this](const auto& w) { return gone_[w.first] || !w.second; });
  if (!all_watched_ && now_ns() - looked_ns_ >= kRetryNs) {
    looked_ns_ = now_ns();
    check_processes();
  }
  drive_detector();
  for (auto& [id, g] : groups_) {
    const std::int64_t now = now_ns();
    if (reports(g)) {
      report(g);
      continue;
    }
    if (g.wanted != 0 && now >= g.want_at_ns) ask_again(g);
    if (now < g.membership->deadline()) continue;  // what others say of it is dealt with as it comes
    g.membership->time_passed(now);
    flush(g);
  }
  changed_.notify_all();
}

// A flood on the port does not keep the lock.
void Recovery::read_some() {
  std::vector<std::byte> bytes;
  SocketAddress from;
  for (int i = 0; i < 256; ++i) {
    if (datagrams_->receive(&bytes, &from)) {
      dispatch(bytes, from);
      continue;
    }
    // A rank that has left has said all: what came before its port was closed has been read.
    for (SocketAddress left = datagrams_->refused(); left.valid(); left = datagrams_->refused())
      for (Rank r = 0; r < contacts_.size(); ++r)
        if (r != rank_ && seen(r) && paths_.owns(r, left)) note_gone(r);
    return;
  }
}

// ---- Datagrams ----

void Recovery::send(std::uint64_t id, Rank from, Rank to_world, Kind kind, std::span<const std::byte> bytes) {
  BytesOut out;
  DatagramHeader{id, from, to_world, kind}.write(out);
  out.raw(bytes);
  if (out.bytes().size() <= Datagrams::kBytesMax) return paths_.send(*datagrams_, to_world, out.bytes());
  if (std::exchange(too_long_, true)) return;
  log_line(kLogWarnings,
           fmt::format("rank {} has {} bytes to say to rank {} of how ranks go on without others, and a datagram takes "
                       "{}: that rank does not hear it, and calls that need it do not end",
                       rank_, out.bytes().size(), to_world, Datagrams::kBytesMax));
}

void Recovery::flush(Group& g) {
  for (const fault::Packet& p : g.membership->take_packets())
    if (!reports(g)) send(g, p.to, Kind::membership, p.bytes);
  for (fault::Decision& d : g.membership->take_decisions()) {
    ++g.decided;
    if (g.broken.ok()) g.decisions.push_back(std::move(d));
  }
}

void Recovery::want_from(Group& g, std::uint64_t number, std::int64_t pause_ns) {
  g.wanted = number;
  g.want_pause_ns = kRetryNs;
  g.want_at_ns = now_ns() + pause_ns;
}

void Recovery::ask_again(Group& g) {
  BytesOut out;
  out.u64(g.wanted);
  for (const Rank r : g.membership->members())
    if (r != g.members.rank && !g.heard[g.wanted].contains(r)) send(g, r, Kind::want, out.bytes());
  g.want_at_ns = now_ns() + g.want_pause_ns;
  g.want_pause_ns = std::min(2 * g.want_pause_ns, kAskPauseNsMax);
}

// A rank that has made none of the calls on the communicator yet is asked again. One of the addresses that another rank
// is sent to may be this rank's.
void Recovery::dispatch(std::span<const std::byte> bytes, const SocketAddress& at) {
  BytesIn in(bytes);
  const auto [id, from, to_world, kind] = DatagramHeader::read(in);
  if (!in.ok() || to_world != rank_) return;
  if (kind == Kind::detector && detector_ && id == job_ && from < contacts_.size()) {
    paths_.heard(from, at);
    if (const auto m = fault::DetectorMessage::decoded(in.rest())) detector_->received(now_ns(), from, *m);
    return;
  }
  const auto found = groups_.find(id);
  if (found == groups_.end() || from >= found->second.members.size()) return;
  Group& g = found->second;
  paths_.heard(g.members.world_rank[from], at);
  if (kind == Kind::broken) return hear_broken(g, from, in);
  if (kind == Kind::broken_known) {
    g.uninformed = g.uninformed - fault::RankSet{from};
    return;
  }
  if (reports(g)) return say_broken(g, from);
  if (kind == Kind::decided) return hear_decided(g, from, in);
  if (kind == Kind::membership) {
    if (const auto m = fault::MembershipMessage::decoded(in.rest())) g.membership->received(now_ns(), from, *m);
    return flush(g);
  }
  const std::uint64_t number = in.u64();
  if (!in.ok()) return;
  if (kind == Kind::said) g.heard[number][from].assign(in.rest().begin(), in.rest().end());
  if (kind != Kind::want) return;
  const auto mine = g.said.find(number);
  const bool comes_to_it = g.membership->out() == fault::Membership::Out::no && number >> 32 != g.abandoned;
  if (mine == g.said.end() && comes_to_it) return;
  BytesOut out;
  out.u64(number);
  if (mine != g.said.end()) out.raw(mine->second);
  send(g, from, Kind::said, out.bytes());
}

// ---- Calls ----

Recovery::Group& Recovery::group_of(const Members& members) {
  start_thread();
  if (const auto found = groups_.find(members.id); found != groups_.end()) {
    assert(found->second.members.world_rank == members.world_rank);
    return found->second;
  }
  Group g;
  g.members = members;
  g.membership =
      std::make_unique<fault::Membership>(now_ns(), kSettings, members.rank, fault::RankSet::below(members.size()));
  if (isolated_) g.membership->isolated();
  return groups_.emplace(members.id, std::move(g)).first->second;
}

// What others have sent again meanwhile is for a group that is not known, and so for nobody.
void Recovery::forget(const Members& members) {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(members.id);
  if (found != groups_.end() && !found->second.in_call) groups_.erase(found);
}

Status Recovery::out_of(const Group& g) const {
  const auto& m = *g.membership;
  const std::string failed = g.members.names(m.failures().failed);
  if (m.out() != fault::Membership::Out::expelled && failed.empty())
    return Status::error(fmt::format("{} hears no other rank: they may go on without it, so it cannot without them",
                                     g.members.name(g.members.rank)),
                         GCCL_ERR_PEER_LOST);
  return Status::error(
      m.out() == fault::Membership::Out::expelled
          ? fmt::format("the other ranks have gone on without {}", g.members.name(g.members.rank))
          : fmt::format("{} of {} ranks are not heard ({}), and nobody knows that they have ended: they "
                        "may go on without this rank, so it cannot without them",
                        m.failures().failed.size(), m.members().size(), failed),
      GCCL_ERR_PEER_LOST);
}

// Whom it waits for. Where nobody has failed the ranks have said what they are in; else a coordinator may stand for one
// that has not come.
std::string Recovery::missing(const Group& g, const Waiter& waiter) {
  if (g.membership->failures().failed.empty() && waiter.call) {
    const Team& team = waiter.c.team();
    return team.world->watch->report(*team.record, now_ns());
  }
  const fault::RankSet awaited = g.membership->awaited();
  return awaited.empty() ? "" : fmt::format(", waiting for {}", g.members.names(awaited));
}

// What the thread of a call does while it waits. Other ranks learn that it does as long as nobody is known to have
// failed: one that waits for it in another call then finds that the calls differ. Not ok: it need not wait any longer.
Status Recovery::attend(std::unique_lock<std::mutex>& lock, const Group& g, const Waiter& waiter,
                        std::int64_t since_ns) {
  if (!waiter.call) return waiter.c.asked_to_abort();
  const bool stalls = now_ns() - since_ns >= kStallNs && g.membership->failures().failed.empty();
  lock.unlock();
  Status s = waiter.c.agrees(stalls ? *waiter.call : Watch::In::nothing);
  lock.lock();
  return s.code() == GCCL_ERR_ABORTED && waiter.aborted ? Status() : std::move(s);
}

Status Recovery::await_decision(std::unique_lock<std::mutex>& lock, Group& g, std::int64_t until_ns,
                                fault::Decision* out, const Waiter& waiter) {
  const std::int64_t since_ns = now_ns();
  flush(g);
  wake();
  const auto over = [&] {
    return !g.decisions.empty() || g.membership->out() != fault::Membership::Out::no || !ended_.ok() || !g.broken.ok();
  };
  Status given_up;  // before its time
  while (!over() && now_ns() < until_ns && given_up.ok()) {
    changed_.wait_for(lock, std::chrono::nanoseconds(kAttendNs));
    if (!over()) given_up = attend(lock, g, waiter, since_ns);
  }
  if (!g.decisions.empty()) {
    *out = g.decisions.front();
    g.decisions.erase(g.decisions.begin());
    return {};
  }
  if (const Status& s = this->over(g); !s.ok()) return s.copy_or_code();
  if (over()) return g.broken = out_of(g);
  Status why = !given_up.ok() ? std::move(given_up)
                              : Status::error(fmt::format("{}: agreement took too long{}",
                                                          g.members.name(g.members.rank), missing(g, waiter)),
                                              GCCL_ERR_TIMEOUT);
  give_up(g, why, g.members.rank);
  return why;
}

Status Recovery::prepare_call(Group& g, const std::vector<Rank>& lost) {
  if (const Status& s = over(g); !s.ok()) return s.copy_or_code();
  check_processes();
  learn(g, lost);
  if (!g.in_call) return {};
  return Status::error("another thread agrees on this communicator, or shrinks it", GCCL_ERR_INVALID_USAGE);
}

Status Recovery::agree(CommunicatorCore& c, std::uint64_t* flags) {
  const std::int64_t until_ns = time_limit(c.timeout_ms());
  const std::vector<Rank> lost = lost_of(c);
  const bool was_aborted = c.why().code() == GCCL_ERR_ABORTED;
  std::unique_lock lock(mutex_);
  const Whole whole(*this);
  Group& g = group_of(c.members());
  if (Status s = prepare_call(g, lost); !s.ok()) return s;
  const CallScope call(g, lock);
  if (g.membership->out() != fault::Membership::Out::no) return out_of(g);
  g.membership->agree(now_ns(), *flags);
  fault::Decision d;
  if (Status s = await_decision(lock, g, until_ns, &d, {c, Watch::In::agree, was_aborted}); !s.ok()) return s;
  if (d.mixed) return Status::error("some ranks agree, others shrink or grow", GCCL_ERR_MISMATCH);
  *flags = d.flags;
  if (d.acknowledged) return {};
  return Status::error(fmt::format("lost {}; GCCL_Comm_ack_failed acknowledges it", g.members.names(d.failed)),
                       GCCL_ERR_PEER_LOST);
}

}  // namespace gccl
