#include "pmpi/engine/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

constexpr auto kExchangeLimit = std::chrono::seconds(10);

struct Said {
  std::int64_t call = 0;  // its number on the communicator
  std::int32_t function = 0, root = 0;
  std::int32_t after_another = 0;  // an earlier call failed on this rank
  std::int32_t spoiled = 0;
};

// MPI ends these by itself when only the lengths differ.
bool movement(Function f) {
  return f == Function::gather || f == Function::scatter || f == Function::bcast || f == Function::allgather ||
         f == Function::alltoall;
}

// Where the exchange happens: it outlives a rank that gives up.
struct Exchange {
  Said mine;
  std::vector<Said> all;
};

bool hear_all(Communicator& k, Exchange& x) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Iallgather(&x.mine, sizeof x.mine, MPI_BYTE, x.all.data(), sizeof x.mine, MPI_BYTE, k.apart, &request) !=
      MPI_SUCCESS)
    return false;
  const auto until = std::chrono::steady_clock::now() + kExchangeLimit;
  IdleWait wait;
  for (;;) {
    int flag = 0;
    progress();
    if (PMPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (flag) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    wait.pause();
  }
}

}  // namespace

Recovery recover(Communicator& k, Function function, int root, bool spoiled) {
  if (k.apart == MPI_COMM_NULL || k.gave_up) return Recovery::none;
  auto exchange = std::make_unique<Exchange>();
  exchange->mine = {k.calls, int(function), root, k.failed_before, spoiled};
  exchange->all.resize(std::size_t(k.me.size));
  if (!hear_all(k, *exchange)) {
    exchange.release();  // the others' answers may still arrive in it
    k.gave_up = true;
    return Recovery::none;
  }
  const std::vector<Said>& all = exchange->all;
  const auto is = [&](auto test) { return std::all_of(all.begin(), all.end(), test); };
  const std::int64_t last =
      std::max_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.call < b.call; })->call;
  const bool together = is([&](const Said& s) { return s.call == last; });
  const bool victims = std::any_of(all.begin(), all.end(), [](const Said& s) { return s.after_another != 0; });
  const bool alike =
      movement(function) && is([&](const Said& s) { return s.function == int(function) && s.root == root; });
  Recovery what = Recovery::none;
  if (!is([&](const Said& s) { return s.call < last || s.spoiled == 0; })) {
    // MPI would work on what GCCL has left of the input.
  } else if (together) {
    if (victims || alike) what = Recovery::mpi;
  } else if (is([&](const Said& s) {
               return s.call == last || (s.call == last - 1 && movement(Function(s.function)));
             })) {
    what = k.calls == last ? Recovery::mpi : Recovery::truncate;
  }
  if (what == Recovery::none) k.gave_up = true;
  return what;
}

}  // namespace gccl::pmpi
