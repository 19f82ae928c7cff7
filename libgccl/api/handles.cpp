#include "libgccl/api/handles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <system_error>
#include <thread>

#include "libgccl/api/guard.hpp"
#include "libgccl/api/private_communicators.hpp"
#include "libgccl/base/clock.hpp"
#include "libgccl/base/no_destructor.hpp"

namespace gccl {
namespace {

using Communicators = std::vector<std::unique_ptr<CommunicatorCore>>;

std::mutex owned_mutex;
Communicators& owned() {
  static NoDestructor<Communicators> list;
  return *list;
}
// Those of private_communicators.hpp.
Communicators& owned_privately() {
  static NoDestructor<Communicators> list;
  return *list;
}

// Makes progress for communicators that ask for it, while there are any.
class ProgressThread {
 public:
  // Throws where there is no thread to be had.
  void need(bool more) {
    std::lock_guard lock(mutex_);
    assert(more || users_ > 0);
    if (more && users_ == 0) {
      stop_ = false;
      thread_ = own_thread([this] {
        Backoff backoff(true);
        while (!stop_.load(std::memory_order_relaxed)) backoff.after(progress_all_but(nullptr));
      });
    } else if (!more && users_ == 1) {
      stop_ = true;
      thread_.join();
    }
    users_ += more ? 1 : -1;
  }

 private:
  std::mutex mutex_;
  int users_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};
ProgressThread& progress_thread() {
  static NoDestructor<ProgressThread> thread;
  return *thread;
}

}  // namespace

Status keep(std::unique_ptr<CommunicatorCore> c, GCCL_Comm* out) {
  assert(c && out);
  try {
    std::lock_guard lock(owned_mutex);
    owned().reserve(owned().size() + 1);
    if (c->world().bootstrap.progress_thread) progress_thread().need(true);
    owned().push_back(std::move(c));
    *out = handle_of(owned().back().get());
    return {};
  } catch (const std::system_error& e) {
    const Status s = Status::error(std::string("cannot start the progress thread: ") + e.what(), GCCL_ERR_SYSTEM);
    c->fail(s);
    return s;
  } catch (...) {
    c->fail(caught());
    throw;
  }
}

std::unique_ptr<CommunicatorCore> release(CommunicatorCore* c) {
  std::lock_guard lock(owned_mutex);
  for (Communicators* list : {&owned(), &owned_privately()})
    for (auto it = list->begin(); it != list->end(); ++it) {
      if (it->get() != c) continue;
      auto found = std::move(*it);
      list->erase(it);
      return found;
    }
  return nullptr;
}

Status release_all(std::vector<std::unique_ptr<CommunicatorCore>>* all, completions::OnlyHere* functions) {
  std::int64_t until_ns = 0;
  bool entered = false, functions_run = false;
  for (Backoff backoff(true);; backoff.pause()) {
    const bool taken = functions->take();
    if (taken) completions::run();
    if (functions_run) progress_all_but(nullptr);  // they may wait for what nobody else moves on
    std::lock_guard lock(owned_mutex);
    if (owned().empty()) return {};
    const bool alone = taken && functions->alone();
    functions_run = !alone;
    if (!entered) until_ns = now_ns() + CommunicatorCore::kLeaveNs;
    entered = false;
    for (const auto& c : owned()) {
      if (Status s = c->survival().not_notifying(); !s.ok()) return s;
      // A function is in short calls now and then.
      if (c->holds_thread() || (c->entered() && ((alone && c->goes_on()) || now_ns() >= until_ns)))
        return CommunicatorCore::thread_inside();
      entered = entered || c->entered();
    }
    if (entered || !alone) continue;
    *all = std::exchange(owned(), {});
    return {};
  }
}

Status others_can_call(CommunicatorCore& c, const char* function) {
  const std::uint64_t id = c.id();
  const auto is_other = [&](const auto& o) { return o.get() != &c && o->id() == id; };
  {
    std::lock_guard lock(owned_mutex);
    if (std::ranges::none_of(owned(), is_other)) return {};
  }
  if (!current_group() && !one_thread()) return {};
  return Status::error(
      fmt::format("{} was called {}, by a process that is several ranks of the communicator: it waits for the other "
                  "ranks' calls right away; expected it outside of groups, in a thread for each rank "
                  "(gccl::CommunicationGroup::in_parallel)",
                  function, current_group() ? "in a group" : "in the only thread"),
      GCCL_ERR_INVALID_USAGE);
}

void destroy(std::unique_ptr<CommunicatorCore> c) {
  if (!c) return;
  const bool threaded = c->world().bootstrap.progress_thread;
  c.reset();
  if (threaded) progress_thread().need(false);
}

void break_after(GCCL_Comm comm, Status why) noexcept {
  auto* const c = reinterpret_cast<CommunicatorCore*>(comm);
  if (c && c->magic == CommunicatorCore::kMagic) c->fail(std::move(why));
}

}  // namespace gccl

using namespace gccl;

extern "C" GCCL_Result GCCL_Comm_set_private(GCCL_Comm comm) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    std::lock_guard lock(owned_mutex);
    const auto it = std::ranges::find(owned(), c, &std::unique_ptr<CommunicatorCore>::get);
    if (it == owned().end()) return GCCL_SUCCESS;
    owned_privately().push_back(std::move(*it));
    owned().erase(it);
    return GCCL_SUCCESS;
  });
}
