// GCCL_Init ... GCCL_Finalize, and communicators made from communicators.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <thread>

#include "libgccl/api/guard.hpp"
#include "libgccl/api/private_communicators.hpp"
#include "libgccl/base/environment.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/bootstrap/identity.hpp"
#include "libgccl/communicator/completions.hpp"
#include "libgccl/communicator/joining.hpp"
#include "libgccl/communicator/splitting.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl {
namespace {

// Functions of GCCL_On_complete must not wait, and their operations must not end under them.
Status not_inside(const char* function) {
  if (!completions::inside()) return {};
  return Status::error(fmt::format("{} was called from inside a function of GCCL_On_complete", function),
                       GCCL_ERR_INVALID_USAGE);
}

Status checked(const GCCL_Config* config, GCCL_Config* out) {
  const GCCL_Config defaults = GCCL_CONFIG_INIT;
  *out = defaults;
  if (!config) return {};
  if (config->struct_bytes < offsetof(GCCL_Config, store) || config->struct_bytes > 4096)
    return invalid(fmt::format("config.struct_bytes is {}: expected sizeof(GCCL_Config); begin with GCCL_CONFIG_INIT",
                               config->struct_bytes));
  std::memcpy(out, config,
              std::min(config->struct_bytes, sizeof *out));  // a caller built with an older header has fewer fields
  out->struct_bytes = sizeof *out;
  return {};
}

// This process was started to join a job that runs.
bool joins_by_environment() { return read_flag(process_environment(), "GCCL_JOIN", false); }

// Each rank waits for the others: so they start concurrently, once there is a thread for each.
Status create_worlds(const GCCL_Config& config, std::span<const int> ranks, GCCL_Comm* worlds) {
  std::vector<std::unique_ptr<CommunicatorCore>> made(ranks.size());
  std::vector<Status> status(ranks.size());
  const std::string no_threads = fmt::format("cannot start a thread for each of {} ranks: ", ranks.size());
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  std::promise<bool> all_here;
  const std::shared_future<bool> go = all_here.get_future().share();
  Status short_of;
  try {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      threads.emplace_back([&, i] {
        if (!go.get()) return;
        try {
          status[i] = create_world(&config, ranks[i], &made[i]);
        } catch (...) {
          status[i] = caught();
        }
      });
  } catch (...) {
    short_of = caught();  // nothing here may throw before the threads that did start have ended
  }
  all_here.set_value(short_of.ok());
  for (std::thread& t : threads) t.join();
  if (!short_of.ok()) return Status::error(no_threads + short_of.text(), GCCL_ERR_SYSTEM);
  for (const Status& s : status)
    if (!s.ok()) return s;
  Status kept;
  try {
    for (std::size_t i = 0; i < made.size() && kept.ok(); ++i) kept = keep(std::move(made[i]), &worlds[i]);
  } catch (...) {
    kept = caught();
  }
  if (kept.ok()) return {};
  for (GCCL_Comm& w : std::span(worlds, made.size()))  // all ranks or none
    if (w) destroy(release(communicator_of(std::exchange(w, GCCL_COMM_NULL))));
  return kept;
}

// Frees it, whatever its function of GCCL_On_failure does: what a call that has ended so returns.
template <class F>
Status freed(GCCL_Comm* comm, const Status& ended, F close) {
  CommunicatorCore* const c = communicator_of(*comm);
  Status s = ended.copy_or_code();
  try {
    if (!s.ok()) c->survival().notice(s);
  } catch (...) {
    s = caught();
  }
  close();
  destroy(release(c));
  *comm = GCCL_COMM_NULL;
  return s;
}

}  // namespace

GCCL_Result failed_on(CommunicatorCore& c, const Status& s) {
  if (!s.ok()) c.survival().notice(s);
  return failed(s);
}

GCCL_Result failed_in_child() noexcept { return failed(Status::error(kForkedChildText, GCCL_ERR_INVALID_USAGE)); }

}  // namespace gccl

using namespace gccl;

extern "C" {

GCCL_Result GCCL_Init(GCCL_Comm* world, const GCCL_Config* config) {
  if (world) *world = GCCL_COMM_NULL;
  return guarded([&] {
    if (!world) return failed(invalid("world is null: expected where to store the communicator"));
    GCCL_Config c;
    if (const Status s = checked(config, &c); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    const Status s = joins_by_environment() ? join_world(&c, &made) : create_world(&c, -1, &made);
    return failed(s.ok() ? keep(std::move(made), world) : s);
  });
}

GCCL_Result GCCL_Join(GCCL_Comm* comm, const GCCL_Config* config) {
  if (comm) *comm = GCCL_COMM_NULL;
  return guarded([&] {
    if (!comm) return failed(invalid("comm is null: expected where to store the communicator"));
    GCCL_Config c;
    if (const Status s = checked(config, &c); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    if (const Status s = join_world(&c, &made); !s.ok()) return failed(s);
    return failed(keep(std::move(made), comm));
  });
}

GCCL_Result GCCL_Init_ranks(GCCL_Comm* worlds, const int* ranks, int n, const GCCL_Config* config) {
  if (worlds) std::fill_n(worlds, std::max(n, 0), GCCL_COMM_NULL);
  return guarded([&] {
    if (n < 1) return failed(invalid(fmt::format("n is {}: expected at least 1", n)));
    if (!worlds || !ranks) return failed(invalid(fmt::format("{} is null", worlds ? "ranks" : "worlds")));
    for (int i = 0; i < n; ++i)
      if (ranks[i] < 0) return failed(invalid(fmt::format("ranks[{}] is {}: expected 0 or more", i, ranks[i])));
    std::vector<int> in_order(ranks, ranks + n);
    std::ranges::sort(in_order);
    if (const auto twice = std::ranges::adjacent_find(in_order); twice != in_order.end())
      return failed(invalid(fmt::format("ranks names rank {} twice: expected each rank once", *twice)));
    GCCL_Config c;
    if (const Status s = checked(config, &c); !s.ok()) return failed(s);
    if (c.allgather) return failed(invalid("config.allgather serves one rank: use a store to be several"));
    // Before any starts: the others would wait for the one that cannot.
    Identity identity;
    for (const int rank : in_order)
      if (const Status s = identify(process_environment(), rank, c.size, &identity); !s.ok()) return failed(s);
    return failed(create_worlds(c, std::span(ranks, std::size_t(n)), worlds));
  });
}

GCCL_Result GCCL_Finalize(void) {
  return guarded([] {
    if (const Status s = not_inside("GCCL_Finalize"); !s.ok()) return failed(s);
    if (inside_failure_function())
      return failed(
          Status::error("GCCL_Finalize: a function of GCCL_On_failure must not call it", GCCL_ERR_INVALID_USAGE));
    completions::OnlyHere functions;  // until all are gone
    std::vector<std::unique_ptr<CommunicatorCore>> all;
    if (const Status s = release_all(&all, &functions); !s.ok())
      return failed(Status::error("GCCL_Finalize: " + s.text(), s.code()));
    Status first;
    FirstThrown thrown;  // by functions of GCCL_On_failure: what there is must be freed
    const auto ended = [&](CommunicatorCore& c, const Status& s) {
      if (!s.ok()) thrown.by([&] { c.survival().notice(s); });
      if (first.ok()) first = s.copy_or_code();
    };
    for (auto& c : all)
      if (first.ok() && c->pending())
        first = Status::error("GCCL_Finalize: operations are in flight: wait for them first", GCCL_ERR_INVALID_USAGE);
    for (auto& c : all)
      if (!c->members().world) c->leaving().announce();
    // The worlds' ranks wait for each other, so that no rank's last messages are lost. Ranks that have failed are not
    // waited for.
    std::vector<Operation*> leaving;
    std::vector<const World*> compared;
    leaving.reserve(all.size());
    for (auto& c : all) {
      if (!c->members().world) continue;
      Others others = c->leaving().failed_before();
      for (auto& made : all)
        if (!made->members().world && &made->world() == &c->world()) made->leaving().sum_up(&others);
      Operation* op = nullptr;
      const Status s = c->leaving().begin(&op, &others);
      if (op) leaving.push_back(op);
      if (op) compared.push_back(&c->world());
      ended(*c, s);
    }
    thrown.by([&] {
      const Status left = wait_in_turns(std::move(leaving));
      if (left.ok())
        for (const World* w : compared) w->recovery->all_have_left();
      if (first.ok()) first = left;
    });
    for (auto& c : all)
      if (!c->members().world) ended(*c, c->leaving().found());
    CommunicatorCore::close(all);
    for (auto& c : all) c->take_leave();
    for (auto it = all.rbegin(); it != all.rend(); ++it) destroy(std::move(*it));
    thrown.rethrow();
    return failed(first);
  });
}

GCCL_Result GCCL_Comm_rank(GCCL_Comm comm, int* rank) {
  return guarded([&] {
    const CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!rank) return failed(invalid("rank is null"));
    *rank = int(c->rank());
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_size(GCCL_Comm comm, int* size) {
  return guarded([&] {
    const CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!size) return failed(invalid("size is null"));
    *size = int(c->size());
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_split(GCCL_Comm comm, int color, int key, GCCL_Comm* out) {
  if (out) *out = GCCL_COMM_NULL;
  return guarded(comm, [&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!out) return failed(invalid("out is null"));
    if (color < GCCL_UNDEFINED)
      return failed(invalid(fmt::format("color is {}: expected 0 or more, or GCCL_UNDEFINED (-1)", color)));
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_split"); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    if (const Status s = split_communicator(*c, color, key, &made); !s.ok()) return failed_on(*c, s);
    return made ? failed(keep(std::move(made), out)) : GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_create(GCCL_Comm comm, const int* ranks, int n, GCCL_Comm* out) {
  if (out) *out = GCCL_COMM_NULL;
  return guarded(comm, [&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!out) return failed(invalid("out is null"));
    if (n < 0 || (n > 0 && !ranks))
      return failed(invalid(n < 0 ? fmt::format("n is {}: expected 0 or more", n) : "ranks is null"));
    const Inside inside(*c);
    if (const Status s = others_can_call(*c, "GCCL_Comm_create"); !s.ok()) return failed(s);
    std::unique_ptr<CommunicatorCore> made;
    if (const Status s = create_from(*c, std::span<const int>(ranks, std::size_t(n)), &made); !s.ok())
      return failed_on(*c, s);
    return made ? failed(keep(std::move(made), out)) : GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_connections(GCCL_Comm comm, const int* ranks, int n, int* connections) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (n < 0 || !ranks || !connections)
      return failed(invalid("expected a list of ranks, and where to store a number"));
    Rank count = 0;
    if (const Status s = c->connections({ranks, std::size_t(n)}, &count); !s.ok()) return failed(s);
    *connections = int(count);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_create_apart(GCCL_Comm comm, const int* ranks, int n, uint64_t id,
                                   GCCL_Allgather_function allgather, void* context, GCCL_Comm* out) {
  if (out) *out = GCCL_COMM_NULL;
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (n < 1 || !ranks || !allgather || !out)
      return failed(invalid(n < 1 ? fmt::format("n is {}: expected 1 or more", n) : "an argument is null"));
    const Inside inside(*c);
    CallersExchange exchange(allgather, context, Rank(n));
    std::unique_ptr<CommunicatorCore> made;
    if (const Status s = create_apart(*c, std::span(ranks, std::size_t(n)), id, exchange, &made); !s.ok())
      return failed(s);
    return failed(keep(std::move(made), out));
  });
}

GCCL_Result GCCL_Comm_free(GCCL_Comm* comm) {
  if (!comm) return guarded([&] { return failed(invalid("comm is null")); });
  return guarded(*comm, [&] {
    CommunicatorCore* const c = communicator_of(*comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (const Status s = not_inside("GCCL_Comm_free"); !s.ok()) return failed(s);
    if (const Status s = c->survival().not_notifying(); !s.ok()) return failed(s);
    if (c->why().ok())  // else it waits for nobody
      if (const Status s = others_can_call(*c, "GCCL_Comm_free"); !s.ok()) return failed(s);
    if (const Status s = c->await_others(); !s.ok()) return failed(s);
    const Status s = c->leaving().leave();
    if (s.code() == GCCL_ERR_INVALID_USAGE && c->pending()) return failed(s);  // else it is how the calls ended
    return failed(freed(comm, s, [] {}));
  });
}

GCCL_Result GCCL_Comm_release(GCCL_Comm* comm) {
  if (!comm) return guarded([&] { return failed(invalid("comm is null")); });
  return guarded(*comm, [&] {
    CommunicatorCore* const c = communicator_of(*comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (const Status s = not_inside("GCCL_Comm_release"); !s.ok()) return failed(s);
    if (const Status s = c->survival().not_notifying(); !s.ok()) return failed(s);
    if (const Status s = c->await_others(); !s.ok()) return failed(s);
    if (c->pending())
      return failed(Status::error("operations are in flight: wait for them first", GCCL_ERR_INVALID_USAGE));
    const Status s = c->unsaid();
    return failed(freed(comm, s, [c] { c->close_alone(); }));
  });
}

GCCL_Result GCCL_Comm_set_timeout(GCCL_Comm comm, int64_t timeout_ms) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (timeout_ms < 1 && timeout_ms != GCCL_TIMEOUT_NONE)
      return failed(
          invalid(fmt::format("timeout_ms is {}: expected 1 or more, or GCCL_TIMEOUT_NONE (-1)", timeout_ms)));
    c->set_timeout(timeout_ms);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Comm_nodes(GCCL_Comm comm, int* nodes) {
  return guarded([&] {
    const CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!nodes) return failed(invalid(fmt::format("nodes is null: expected room for {} integers", c->size())));
    for (std::size_t r = 0; r < c->size(); ++r) nodes[r] = int(c->members().node[r]);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Abort(GCCL_Comm comm, int code) {
  return guarded(comm, [&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    const Inside inside(*c);
    c->abort(code);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Get_performance_metrics(GCCL_Comm comm, GCCL_Metrics* metrics) {
  return guarded([&] {
    CommunicatorCore* const c = communicator_of(comm);
    if (!c) return GCCL_ERR_INVALID_ARGUMENT;
    if (!metrics || metrics->struct_bytes < offsetof(GCCL_Metrics, messages_sent))
      return failed(invalid(
          metrics ? fmt::format("metrics->struct_bytes is {}: set it to sizeof(GCCL_Metrics)", metrics->struct_bytes)
                  : "metrics is null"));
    c->metrics(metrics);
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Progress(void) {
  return guarded([] {
    progress_all_but(nullptr);
    return GCCL_SUCCESS;
  });
}

}  // extern "C"
