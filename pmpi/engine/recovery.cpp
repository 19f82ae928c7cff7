#include "pmpi/engine/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "pmpi/engine/own_world.hpp"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

constexpr auto kExchangeLimit = std::chrono::seconds(10);

struct Said {
  std::int64_t call = 0;     // its number on the communicator
  std::int64_t refused = 0;  // calls before it that MPI refused
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
  std::vector<MPI_Request> requests;
};

bool hear_all(Communicator& k, Exchange& x) {
  const std::vector<int> places = places_in_world(k.mpi, k.me.size);
  x.requests.reserve(2 * places.size());
  for (std::size_t r = 0; r < places.size(); ++r) {
    const auto next = [&] { return &x.requests.emplace_back(MPI_REQUEST_NULL); };
    if (PMPI_Irecv(&x.all[r], sizeof x.mine, MPI_BYTE, places[r], k.tag, own_world(), next()) != MPI_SUCCESS ||
        PMPI_Isend(&x.mine, sizeof x.mine, MPI_BYTE, places[r], k.tag, own_world(), next()) != MPI_SUCCESS)
      return false;
  }
  const auto until = std::chrono::steady_clock::now() + kExchangeLimit;
  IdleWait wait;
  for (;;) {
    int flag = 0;
    progress();
    if (PMPI_Testall(int(x.requests.size()), x.requests.data(), &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      return false;
    if (flag) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    wait.pause();
  }
}

using Number = std::int64_t (*)(const Said&);
// As GCCL counts. A call that MPI refused on a rank which made it alone changes nothing.
std::int64_t counted(const Said& s) { return s.call; }
// Where the others made that call too, and GCCL carried it out on them.
std::int64_t with_refused(const Said& s) { return s.call + s.refused; }

// Where the ranks are, by one way to number their calls.
class Calls {
 public:
  Calls(const std::vector<Said>& all, Number number) : all_(all), number_(number) {
    for (const Said& s : all) last_ = std::max(last_, number(s));
  }
  bool together() const {
    return every([this](const Said& s) { return last(s); });
  }
  // Those that are there make the same call.
  bool last_is_one() const {
    return one_call([this](const Said& s) { return last(s); });
  }
  // Some are in the call before, all of them in the same one, which is one of `before`.
  bool one_behind(bool (*before)(Function)) const {
    return !together() &&
           every([&](const Said& s) { return last(s) || (number_(s) == last_ - 1 && before(Function(s.function))); }) &&
           one_call([this](const Said& s) { return !last(s); });
  }
  bool same_ranks_last(const Calls& other) const {
    return every([&](const Said& s) { return last(s) == other.last(s); });
  }
  Recovery by_mpi(const Said& mine) const {
    // MPI would work on what GCCL has left of the input.
    if (!every([this](const Said& s) { return !last(s) || s.spoiled == 0; })) return Recovery::none;
    return last(mine) ? Recovery::mpi : Recovery::truncate;
  }

 private:
  bool last(const Said& s) const { return number_(s) == last_; }
  template <class Test>
  bool every(Test test) const {
    return std::all_of(all_.begin(), all_.end(), test);
  }

  // The ranks for which `which` holds make the same call.
  template <class Which>
  bool one_call(Which which) const {
    const auto one = std::find_if(all_.begin(), all_.end(), which);
    return every([&](const Said& s) { return !which(s) || (s.function == one->function && s.root == one->root); });
  }

  const std::vector<Said>& all_;
  const Number number_;
  std::int64_t last_ = 0;
};

Recovery decide(const std::vector<Said>& all, const Said& mine) {
  const Calls calls(all, counted), with(all, with_refused);
  const bool victims = std::any_of(all.begin(), all.end(), [](const Said& s) { return s.after_another != 0; });
  const bool refused = std::any_of(all.begin(), all.end(), [](const Said& s) { return s.refused != 0; });
  if (refused && with.together() && with.last_is_one()) return with.by_mpi(mine);
  const auto ends = [](Function f) { return movement(f) || f == Function::reduce; };
  const bool as_counted = calls.together() ? victims || (calls.last_is_one() && movement(Function(mine.function)))
                                           : calls.one_behind(movement);
  const bool as_with_refused = refused && with.one_behind(ends) && with.last_is_one();
  // A call could meet another one's data.
  if (as_counted && as_with_refused && !calls.same_ranks_last(with)) return Recovery::none;
  if (as_counted) return calls.by_mpi(mine);
  return as_with_refused ? with.by_mpi(mine) : Recovery::none;
}

}  // namespace

Recovery recover(Communicator& k, Function function, int root, bool spoiled) {
  if (k.me.size == 1 || k.gave_up) return Recovery::none;
  auto exchange = std::make_unique<Exchange>();
  exchange->mine = {k.calls, k.refused, int(function), root, k.failed_before, spoiled};
  exchange->all.resize(std::size_t(k.me.size));
  if (!hear_all(k, *exchange)) {
    exchange.release();  // the others' answers may still arrive in it
    k.gave_up = true;
    return Recovery::none;
  }
  const Recovery what = decide(exchange->all, exchange->mine);
  if (what == Recovery::none) k.gave_up = true;
  return what;
}

}  // namespace gccl::pmpi
