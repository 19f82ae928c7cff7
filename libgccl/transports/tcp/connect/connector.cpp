#include "libgccl/transports/tcp/connect/connector.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <utility>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/net/digest.hpp"
#include "libgccl/transports/tcp/connect/binomial_graph.hpp"

namespace gccl::tcp {
namespace {

// Deadlines are checked no more often than this.
constexpr std::chrono::milliseconds kCheck{10}, kCheckMax{60000};
// A thread that checks a deadline so much later than it meant to has not run (it was stopped, or got no processor):
// deadlines move by that and a little more, in which what has arrived meanwhile is read.
constexpr std::chrono::milliseconds kLate{250}, kChance{1000};

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t(device()) << 32 | device();
}

// Those that exit() has to finish.
std::mutex& living_mutex() {
  static NoDestructor<std::mutex> mutex;
  return *mutex;
}
std::list<Connector*>& living() {
  static NoDestructor<std::list<Connector*>> list;
  return *list;
}

}  // namespace

Connector::Connector(const GCCL_Backend_environment& environment)
    : environment_(environment),
      refusals_(fmt::format("rank {}, tcp", environment.rank),
                [log = environment.log](const std::string& line) {
                  if (log) log(1, line.c_str());
                }),
      farewells_(fmt::format("rank {}, tcp", environment.rank), [log = environment.log](const std::string& line) {
        if (log) log(2, line.c_str());
      }) {}

void Connector::finish_all() {
  if (in_forked_child()) return;  // the threads are the parent's
  {
    const std::lock_guard lock(living_mutex());
    for (Connector* c : living()) c->ask_to_stop();
    for (Connector* c : living()) c->finish();
  }
  end_without_jump();
}

Status Connector::listen() {
  const bool have_secret = environment_.secret[0] != 0;
  ListeningPlace place;
  if (Status s = listening_place(environment_.address, have_secret, &place); !s.ok())
    return Status::error(fmt::format("GCCL_ADDRESS={}", s.text()), s.code());
  if (Status s = listen_on(place, &listener_); !s.ok()) return s;
  address_.addresses = place.published(listener_.get());
  address_.left_out = std::uint32_t(place.left_out);
  address_.loopback_only = std::all_of(address_.addresses.begin(), address_.addresses.end(),
                                       [](const SocketAddress& a) { return a.is_loopback(); });
  address_.world_rank = environment_.rank;
  address_.nonce = random_number();
  address_.host = host_number(environment_.host);
  return {};
}

Status Connector::start() {
  assert(!thread_.joinable() && !listener_);  // once
  if (Status s = read_settings(process_environment(), &accept_context_.settings); !s.ok()) return s;
  if (Status s = listen(); !s.ok()) return s;
  accept_context_.secret = environment_.secret;
  accept_context_.nonce = address_.nonce;
  accept_context_.find = [this](std::uint64_t communicator) {
    const std::lock_guard lock(mutex_);
    const auto i = ports_.find(communicator);
    return i == ports_.end() ? nullptr : i->second;
  };
  accept_context_.dial = [this](std::vector<Dial::Target> targets) { dial(std::move(targets)); };
  accept_context_.refused = [this](const SocketAddress& who, const std::string& why) { refusals_.refused(who, why); };
  accept_context_.turned_away = [this](const SocketAddress& who, const std::string& why) {
    farewells_.refused(who, why);
  };
  allow_descriptors(environment_.size + kUnauthenticatedMax + 256);
  epoll_ = not_for_children([] { return epoll_create1(EPOLL_CLOEXEC); });
  wakeup_ = not_for_children([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!epoll_ || !wakeup_ || !reserve_.hold()) return system_error("tcp: epoll", errno);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = &wakeup_;
  epoll_event l = e;
  l.data.ptr = &listener_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &e) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &l) != 0)
    return system_error("tcp: epoll", errno);
  prepare_digests();  // so that exit() ends the thread before there are none any more
  [[maybe_unused]] static const int once = std::atexit(finish_all);
  const std::lock_guard lock(living_mutex());
  try {
    thread_ = own_thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Status::error(fmt::format("tcp: cannot start a thread: {}", error.what()), GCCL_ERR_SYSTEM);
  }
  living().push_back(this);
  return {};
}

Connector::~Connector() {
  {
    const std::lock_guard lock(living_mutex());
    living().remove(this);
  }
  finish();
}

void Connector::finish() {
  ask_to_stop();
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void Connector::ask_to_stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (wakeup_) wake();
}

void Connector::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t n = write(wakeup_.get(), &one, sizeof one);
}

bool Connector::open(const std::shared_ptr<PortInbox>& inbox) {
  assert(inbox->peers.size() == inbox->identity().size);
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) put_broken(*inbox);
  return ports_.emplace(inbox->identity().communicator, inbox).second;
}

void Connector::close(const std::shared_ptr<PortInbox>& inbox, std::vector<std::unique_ptr<Link>> links,
                      std::list<Arrival> arrivals) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto i = ports_.find(inbox->identity().communicator);
    if (i != ports_.end() && i->second == inbox) ports_.erase(i);
    assert(!inbox->commands.close);  // once
    inbox->commands.links = std::move(links);
    inbox->commands.arrivals = std::move(arrivals);
    inbox->commands.close = true;
    note_command(inbox);
  }
  wake();
}

void Connector::abort(const std::shared_ptr<PortInbox>& inbox, const GCCL_Fault& fault, bool passes_on) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(inbox->commands.abort, true)) return;
    inbox->commands.fault = fault;
    inbox->commands.passes_on = passes_on;
    note_command(inbox);
  }
  wake();
}

// With mutex_ held.
void Connector::note_command(const std::shared_ptr<PortInbox>& inbox) noexcept {
  if (!std::exchange(inbox->listed, true)) with_commands_.push(inbox);
}

void Connector::dial(std::vector<Dial::Target> targets) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& t : targets) dials_.push_back(std::move(t));
    if (ended_) return drop_dials();
  }
  wake();
}

bool Connector::read_all_dialled(Clock::time_point then) {
  if (quiet_.load(std::memory_order_acquire) >= then) return true;
  if (Clock::now() >= then && !asked_.exchange(true)) wake();
  return false;
}

void Connector::drop_dials() {
  for (; !dials_.empty(); dials_.pop_back()) Dial::dropped(dials_.back());
}

void Connector::run() {
  try {
    serve();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    broken_ = caught();
  }
  end();
}

void Connector::serve() {
  epoll_event events[64];
  while (!over()) {
    const Clock::time_point begin = Clock::now(), due = std::max(begin, std::min(next_check_, begin + kCheckMax));
    const std::int64_t wait_ms = std::chrono::ceil<std::chrono::milliseconds>(due - begin).count();
    const int n = epoll_wait(epoll_.get(), events, 64, int(wait_ms));
    if (const auto late = Clock::now() - due; late > kLate) postpone(late + kChance);
    bool commands = false, dialled = false;
    for (int i = 0; i < n; ++i) {
      if (events[i].data.ptr == &wakeup_) {
        commands = true;
      } else if (events[i].data.ptr == &listener_) {
        dialled = true;
      } else {
        advance(static_cast<PendingConnection*>(events[i].data.ptr), &PendingConnection::ready);
      }
    }
    // These may end other pending connections than the one at hand: only once no event points to any.
    if (commands || commands_left_) take_commands();
    const Clock::time_point looked = Clock::now();
    if (dialled || (asked_.exchange(false) && listen_again_ == Clock::time_point::max())) {
      if (accept_pending()) queue_empty_ = looked;
    }
    if (unauthenticated_.empty()) quiet_.store(queue_empty_, std::memory_order_release);
    if (Clock::now() >= next_check_) expire();
    end_left();
  }
}

// Ports that wait for a connection learn that none will come.
void Connector::end() noexcept {
  listener_.reset();
  const std::lock_guard lock(mutex_);
  if (!broken_.ok())
    for (const auto& [communicator, inbox] : ports_) put_broken(*inbox);
  unauthenticated_.clear();
  for (; !pending_.empty(); pending_.erase(pending_.begin()))
    if (!pending_.begin()->first->held()) pending_.begin()->first->dropped();
  ended_ = true;
  drop_dials();
}

void Connector::put_broken(PortInbox& inbox) const {
  GCCL_Fault fault{};
  fault.result = broken_.code();
  fault.peer = inbox.identity().rank;
  std::snprintf(fault.text, sizeof fault.text, "rank %u makes no TCP connections any more: %.110s", fault.peer,
                broken_.text().c_str());
  inbox.put(fault, false);
}

bool Connector::over() const {
  return stopping_ && ((aborts_ == 0 && !commands_left_) || Clock::now() >= stop_deadline_);
}

void Connector::add(std::unique_ptr<PendingConnection> c) {
  PendingConnection* const p = c.get();
  p->epoll = epoll_.get();
  pending_.emplace(p, std::move(c));
  if (p->outlives_port()) ++aborts_, ++p->inbox()->aborts;
  note_unauthenticated(p);
  watch(p);
}

Connector::PendingConnections::iterator Connector::drop(PendingConnections::iterator i) {
  assert(i != pending_.end());
  if (i->first->among_unauthenticated) unauthenticated_.erase(i->first->unauthenticated_place);
  if (i->first->outlives_port()) {
    const auto& inbox = i->first->inbox();
    assert(aborts_ > 0 && inbox->aborts > 0);
    --aborts_;
    --inbox->aborts;
    if (inbox->over()) left_.push(inbox);
  }
  const auto next = std::next(i);
  reserve_.take_back([&] { pending_.erase(i); });
  return next;
}

void Connector::advance(PendingConnection* c, PendingConnection::Next (PendingConnection::*how)()) {
  auto next = PendingConnection::Next::over;
  try {
    next = c->held() ? PendingConnection::Next::over : (c->*how)();
  } catch (const std::bad_alloc&) {
    next = c->starved();
  }
  if (next == PendingConnection::Next::over) {
    drop(pending_.find(c));
    return;
  }
  note_unauthenticated(c);
  watch(c);
}

// Registers with epoll and the clock what the pending connection waits for now.
void Connector::watch(PendingConnection* c) {
  if (c->fd() >= 0 && (c->registered_fd != c->fd() || c->registered_events != c->events())) {
    epoll_event e{};
    e.events = c->events();
    e.data.ptr = c;
    epoll_ctl(epoll_.get(), c->registered_fd == c->fd() ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd(), &e);
    c->registered_events = c->events();
  }
  c->registered_fd = c->fd();
  next_check_ = std::min(next_check_, c->deadline());
}

void Connector::take_commands() {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t n = read(wakeup_.get(), &count, sizeof count);
  std::vector<Dial::Target> dials;
  {
    const std::lock_guard lock(mutex_);
    dials.swap(dials_);
    if (stop_ && !stopping_) {
      stopping_ = true;
      stop_deadline_ = Clock::now() + kAbortLimit;
      next_check_ = std::min(next_check_, stop_deadline_);
    }
  }
  for (auto& t : dials) {
    const auto kind = t.request.kind;
    const auto inbox = t.inbox;
    try {
      add_dial(std::move(t));
    } catch (const std::bad_alloc&) {
      Dial::starved(kind, *inbox);
    }
  }
  commands_left_ = false;
  while (const auto inbox = next_with_commands()) {
    if (!begin_aborts(inbox)) {
      const std::lock_guard lock(mutex_);
      note_command(inbox);
      commands_left_ = true;
      next_check_ = std::min(next_check_, Clock::now() + kCheck);
      break;
    }
    if (inbox->over()) left_.push(inbox);
  }
}

void Connector::add_dial(Dial::Target target) {
  add(std::make_unique<Dial>(std::move(target), &accept_context_.secret, &accept_context_.settings, &reserve_,
                             &answers_));
}

std::shared_ptr<PortInbox> Connector::next_with_commands() {
  const std::lock_guard lock(mutex_);
  auto inbox = with_commands_.pop();
  if (inbox) {
    assert(inbox->listed);
    inbox->listed = false;
    inbox->aborting = inbox->commands.abort;
    inbox->closed = inbox->commands.close;
  }
  return inbox;
}

// False: memory is short, and some peers are left.
bool Connector::begin_aborts(const std::shared_ptr<PortInbox>& inbox) try {
  for (std::uint32_t& to = inbox->next_to_abort; inbox->aborting && to < inbox->identity().size; ++to) {
    if (inbox->peers[to].addresses.empty()) continue;
    const PortInbox::Commands& commands = inbox->commands;
    if (commands.passes_on && !binomial_neighbours(inbox->identity(), to)) continue;
    const bool subject = to == commands.fault.peer;
    // A rank that is called lost may live, and be out of reach of the one that said so alone: else it would wait on.
    if (commands.passes_on && subject && commands.fault.result != GCCL_ERR_PEER_LOST) continue;
    Dial::Target t(ConnectionRequest::Kind::abort, inbox, to, settings().peer_timeout);
    t.ends_with_port = commands.passes_on && subject;
    t.request.fault = inbox->commands.fault;
    add_dial(std::move(t));
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// What peers see end, now that they know why.
void Connector::end_left() {
  while (const auto inbox = left_.pop()) {
    auto& links = inbox->commands.links;
    for (auto i = pending_.begin(); i != pending_.end();)
      i = i->first->inbox() == inbox && !i->first->outlives_links(&links) ? drop(i) : std::next(i);
    links.clear();
    inbox->commands.arrivals.clear();
  }
}

void Connector::postpone(Clock::duration by) {
  for (const auto& [c, owned] : pending_) c->postpone(by);
  stop_deadline_ += by;
}

void Connector::expire() {
  const Clock::time_point now = Clock::now();
  std::vector<PendingConnection*> late;
  try {
    for (const auto& [c, owned] : pending_)
      if (c->deadline() <= now) late.push_back(c);
  } catch (const std::bad_alloc&) {  // these now, and the others next time
  }
  for (PendingConnection* c : late) advance(c, &PendingConnection::expired);
  if (listen_again_ <= now) {
    listen_again_ = Clock::time_point::max();
    listen_for(EPOLLIN);
  }
  next_check_ = std::min(listen_again_, now + kCheckMax);
  if (stopping_) next_check_ = std::min(next_check_, stop_deadline_);
  if (commands_left_) next_check_ = now;
  for (const auto& [c, owned] : pending_) next_check_ = std::min(next_check_, c->deadline());
  next_check_ = std::max(next_check_, now + kCheck);
}

}  // namespace gccl::tcp
