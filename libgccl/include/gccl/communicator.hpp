// A group of ranks, and every operation among them.
#pragma once

#include "gccl/cpp20.hpp"

#include <exception>
#include <initializer_list>
#include <string>
#include <vector>

#include "gccl/buffer.hpp"
#include "gccl/config.hpp"
#include "gccl/request.hpp"

namespace gccl {
inline namespace api {

// Owns a communicator of the C interface, whose rules (gccl.h) hold here: every rank makes the same collective calls in
// the same order; any thread may use it. Buffers are anything contiguous, such as std::vector or std::span; counts come
// from their sizes, and sizes that do not fit are an Error (GCCL_ERR_INVALID_ARGUMENT) before anything is sent, unless
// the call is handed back (GCCL_ERR_RANKS_CHANGED). Below, n is size(), r is rank(). Every call that fails throws
// Error.
//
// The destructor frees the communicator, which is collective. Where an exception leaves its scope, or operations are
// still pending, it aborts the communicator first: the other ranks then get GCCL_ERR_ABORTED and do not wait for this
// one. So do Request and grouped(). Requests are best destroyed before it.
class Communicator {
 public:
  // Empty: only to be assigned to.
  Communicator() = default;
  // Takes over a communicator of the C interface.
  explicit Communicator(GCCL_Comm comm) noexcept : comm_(comm) {}
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, GCCL_COMM_NULL)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    const Communicator old(std::exchange(comm_, std::exchange(other.comm_, GCCL_COMM_NULL)));
    return *this;
  }
  ~Communicator() {
    if (!comm_) return;
    GCCL_On_failure(comm_, nullptr, nullptr);  // what on_failure() was given may be gone
    if (std::uncaught_exceptions() > exceptions_) GCCL_Abort(comm_, 1);
    if (GCCL_Comm_free(&comm_) == GCCL_ERR_INVALID_USAGE) {
      GCCL_Abort(comm_, 1);
      GCCL_Comm_free(&comm_);
    }
  }

  // Makes this process one rank of the job; the communicator of all ranks. Collective over all of them.
  static Communicator init(const Config& config = {}) {
    const GCCL_Config c = config.c();
    GCCL_Comm world = GCCL_COMM_NULL;
    check(GCCL_Init(&world, &c));
    return Communicator(world);
  }
  // Waits until the ranks of a job that runs admit this process with grow(), and makes it one of them: GCCL_Join.
  static Communicator join(const Config& config = {}) {
    const GCCL_Config c = config.c();
    GCCL_Comm comm = GCCL_COMM_NULL;
    check(GCCL_Join(&comm, &c));
    return Communicator(comm);
  }

  explicit operator bool() const noexcept { return comm_ != GCCL_COMM_NULL; }
  GCCL_Comm get() const noexcept { return comm_; }
  // Gives it up: it is the caller's to free with GCCL_Comm_free.
  GCCL_Comm release() noexcept { return std::exchange(comm_, GCCL_COMM_NULL); }
  // Frees it now, and throws what the destructor keeps to itself. Collective.
  void free() { check(GCCL_Comm_free(&comm_)); }

  int rank() const {
    int rank;
    check(GCCL_Comm_rank(comm_, &rank));
    return rank;
  }
  int size() const {
    int size;
    check(GCCL_Comm_size(comm_, &size));
    return size;
  }
  // nodes()[i] is the node of rank i; nodes are numbered from 0 in the order of their lowest ranks.
  std::vector<int> nodes() const {
    std::vector<int> nodes(n());
    check(GCCL_Comm_nodes(comm_, nodes.data()));
    return nodes;
  }
  // Ranks of one color (>= 0) make a communicator, ordered by key, then by rank; empty with GCCL_UNDEFINED. Collective.
  Communicator split(int color, int key = 0) const {
    GCCL_Comm out = GCCL_COMM_NULL;
    check(GCCL_Comm_split(comm_, color, key, &out));
    return Communicator(out);
  }
  // A communicator of these ranks, in this order; empty on the others. Collective over all ranks of this one.
  Communicator create(std::span<const int> ranks) const {
    GCCL_Comm out = GCCL_COMM_NULL;
    check(GCCL_Comm_create(comm_, ranks.data(), int(ranks.size()), &out));
    return Communicator(out);
  }
  Communicator create(std::initializer_list<int> ranks) const { return create(std::span(ranks.begin(), ranks.size())); }
  // The time that every later call may take; negative: no limit.
  void set_timeout(std::chrono::milliseconds time) const {
    check(GCCL_Comm_set_timeout(comm_, time.count() < 0 ? GCCL_TIMEOUT_NONE : time.count()));
  }
  // Ends all operations on every rank with GCCL_ERR_ABORTED. From any thread, while others wait.
  void abort(int code = 1) const { check(GCCL_Abort(comm_, code)); }

  // ---- Going on without ranks that have failed (gccl.h) ----

  // Ends all operations on every rank with GCCL_ERR_REVOKED.
  void revoke() const { check(GCCL_Comm_revoke(comm_)); }
  // Ranks that are known here to have failed.
  std::vector<int> failed() const { return ranks_from(GCCL_Comm_get_failed); }
  void acknowledge_failed() const { check(GCCL_Comm_ack_failed(comm_)); }
  // The AND of all flags; throws GCCL_ERR_PEER_LOST where a rank has failed that not all had acknowledged.
  std::uint64_t agree(std::uint64_t flags) const {
    check(GCCL_Comm_agree(comm_, &flags));
    return flags;
  }
  // A communicator of the ranks that have not failed, in this one's order.
  Communicator shrink() const {
    GCCL_Comm out = GCCL_COMM_NULL;
    check(GCCL_Comm_shrink(comm_, &out));
    return Communicator(out);
  }
  // The same with at most so many processes that join, which take the numbers of ranks that have failed, or come after
  // all others: GCCL_Comm_grow.
  Communicator grow(int most, std::chrono::milliseconds wait = std::chrono::milliseconds(0)) const {
    GCCL_Comm out = GCCL_COMM_NULL;
    check(GCCL_Comm_grow(comm_, most, wait.count(), &out));
    return Communicator(out);
  }
  // The ranks that are new: GCCL_Comm_get_joined.
  std::vector<int> joined() const { return ranks_from(GCCL_Comm_get_joined); }

  // What a call does that finds ranks failed: nothing, or the others make this communicator smaller
  // (GCCL_Comm_set_on_failure). Collective.
  void set_on_failure(GCCL_Failure_policy policy) const { check(GCCL_Comm_set_on_failure(comm_, policy)); }
  // Calls f(const GCCL_Failure&) when ranks have failed, and when this communicator has become smaller:
  // GCCL_On_failure. f stays the caller's, and is used as long as calls are made, free() among them; not by the
  // destructor.
  template <class F>
  void on_failure(F& f) const {
    check(GCCL_On_failure(
        comm_,
        [](GCCL_Comm, const GCCL_Failure* failure, void* context) { (*reinterpret_cast<F*>(context))(*failure); },
        (void*)&f));  // of something const, or of a function, too
  }

  GCCL_Metrics metrics() const {
    GCCL_Metrics m{};
    m.struct_bytes = sizeof m;
    check(GCCL_Get_performance_metrics(comm_, &m));
    return m;
  }

  // What a collective of so many elements of T would take, and how it would be carried out, without making it:
  // GCCL_Estimate. "allreduce", ...
  template <Element T>
  GCCL_Prediction estimate(const std::string& collective, std::size_t count) const {
    GCCL_Prediction p{};
    p.struct_bytes = sizeof p;
    check(GCCL_Estimate(comm_, collective.c_str(), count, dtype_of<T>(), &p));
    return p;
  }

  // ---- Point to point: the k-th send from a to b meets the k-th receive at b from a. ----

  template <ElementBuffer B>
  void send(B&& data, int dest) const {
    send_as<Blocking<B>>(data, dest);
  }
  template <LastingBuffer B>
  Request isend(B&& data, int dest) const {
    return send_as<Starting>(data, dest);
  }
  // As many elements as were sent.
  template <WritableBuffer B>
  void recv(B&& data, int source) const {
    recv_as<Blocking<>>(data, source);
  }
  template <WritableBuffer B>
  Request irecv(B&& data, int source) const {
    return recv_as<Starting>(data, source);
  }

  // ---- Collectives, blocking and as I-forms. Where an input has InputFor, gccl::in_place says that it already lies in
  // the output buffer. Buffers and counts of I-forms must stay until the request is complete. ----

  // Returns once every rank has called it.
  void barrier() const { check(GCCL_Barrier(comm_)); }
  Request ibarrier() const { return Starting::call(nullptr, GCCL_Ibarrier, comm_); }

  // The root's elements reach every rank.
  template <WritableBuffer B>
  void broadcast(B&& data, int root) const {
    broadcast_as<Blocking<>>(data, root);
  }
  template <WritableBuffer B>
  Request ibroadcast(B&& data, int root) const {
    return broadcast_as<Starting>(data, root);
  }

  // out[i] = the sum (op) over all ranks of in[i]; equal sizes. With one buffer: in place.
  template <WritableBuffer Out, InputFor<Out> In, OpFor<Out> O = ReduceOp>
  void allreduce(In&& in, Out&& out, O&& op = ReduceOp::sum) const {
    allreduce_as<Blocking<In, O>>(in, out, op);
  }
  template <WritableBuffer Out, OpFor<Out> O = ReduceOp>
  void allreduce(Out&& inout, O&& op = ReduceOp::sum) const {
    allreduce_as<Blocking<O>>(in_place, inout, op);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingOpFor<Out> O = ReduceOp>
  Request iallreduce(In&& in, Out&& out, O&& op = ReduceOp::sum) const {
    return allreduce_as<Starting>(in, out, op);
  }
  template <WritableBuffer Out, LastingOpFor<Out> O = ReduceOp>
  Request iallreduce(Out&& inout, O&& op = ReduceOp::sum) const {
    return allreduce_as<Starting>(in_place, inout, op);
  }

  // As allreduce, and only the root gets the result: elsewhere out is not looked at and may be empty. With one buffer:
  // everybody's input, and the root's output.
  template <WritableBuffer Out, InputFor<Out> In, OpFor<Out> O = ReduceOp>
  void reduce(In&& in, Out&& out, int root, O&& op = ReduceOp::sum) const {
    reduce_as<Blocking<In, O>>(in, out, root, op);
  }
  template <WritableBuffer Out, OpFor<Out> O = ReduceOp>
  void reduce(Out&& inout, int root, O&& op = ReduceOp::sum) const {
    reduce_inout_as<Blocking<O>>(inout, root, op);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingOpFor<Out> O = ReduceOp>
  Request ireduce(In&& in, Out&& out, int root, O&& op = ReduceOp::sum) const {
    return reduce_as<Starting>(in, out, root, op);
  }
  template <WritableBuffer Out, LastingOpFor<Out> O = ReduceOp>
  Request ireduce(Out&& inout, int root, O&& op = ReduceOp::sum) const {
    return reduce_inout_as<Starting>(inout, root, op);
  }

  // out has n blocks; block i is rank i's in. In place, and with one buffer: block r is the input.
  template <WritableBuffer Out, InputFor<Out> In>
  void allgather(In&& in, Out&& out) const {
    allgather_as<Blocking<In>>(in, out);
  }
  template <WritableBuffer Out>
  void allgather(Out&& inout) const {
    allgather_as<Blocking<>>(in_place, inout);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In>
  Request iallgather(In&& in, Out&& out) const {
    return allgather_as<Starting>(in, out);
  }
  template <WritableBuffer Out>
  Request iallgather(Out&& inout) const {
    return allgather_as<Starting>(in_place, inout);
  }

  // Block i of out has counts[i] elements and begins at displs[i], or right behind the one before without displs.
  template <WritableBuffer Out, InputFor<Out> In, AnyCounts C = Counts, AnyCounts D = Counts>
  void allgatherv(In&& in, Out&& out, C&& counts, D&& displs = {}) const {
    allgatherv_as<Blocking<In, C, D>>(in, out, counts, displs);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingCounts C, LastingCounts D = Counts>
  Request iallgatherv(In&& in, Out&& out, C&& counts, D&& displs = {}) const {
    return allgatherv_as<Starting>(in, out, counts, displs);
  }

  // in has n blocks; out is the sum (op) of all ranks' block r. In place: out has n blocks of input, the result lies in
  // the first, and the rest is lost.
  template <WritableBuffer Out, InputFor<Out> In, OpFor<Out> O = ReduceOp>
  void reduce_scatter(In&& in, Out&& out, O&& op = ReduceOp::sum) const {
    reduce_scatter_as<Blocking<In, O>>(in, out, op);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingOpFor<Out> O = ReduceOp>
  Request ireduce_scatter(In&& in, Out&& out, O&& op = ReduceOp::sum) const {
    return reduce_scatter_as<Starting>(in, out, op);
  }
  // The same with blocks of counts[i] elements, side by side.
  template <WritableBuffer Out, InputFor<Out> In, OpFor<Out> O = ReduceOp, AnyCounts C = Counts>
  void reduce_scatterv(In&& in, Out&& out, C&& counts, O&& op = ReduceOp::sum) const {
    reduce_scatterv_as<Blocking<In, C, O>>(in, out, counts, op);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingCounts C, LastingOpFor<Out> O = ReduceOp>
  Request ireduce_scatterv(In&& in, Out&& out, C&& counts, O&& op = ReduceOp::sum) const {
    return reduce_scatterv_as<Starting>(in, out, counts, op);
  }

  // Both have n blocks: block i of in goes to rank i, block i of out comes from rank i. With one buffer: in place.
  template <WritableBuffer Out, InputFor<Out> In>
  void alltoall(In&& in, Out&& out) const {
    alltoall_as<Blocking<In>>(in, out);
  }
  template <WritableBuffer Out>
  void alltoall(Out&& inout) const {
    alltoall_as<Blocking<>>(in_place, inout);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In>
  Request ialltoall(In&& in, Out&& out) const {
    return alltoall_as<Starting>(in, out);
  }
  template <WritableBuffer Out>
  Request ialltoall(Out&& inout) const {
    return alltoall_as<Starting>(in_place, inout);
  }

  // The same with blocks of their own lengths, side by side, or at displacements. In place: sendcounts and sdispls are
  // not looked at, and what i sends to j must be as long as what j sends to i. In and out may be one buffer where no
  // block that is sent overlaps one that is received; with the same counts and displacements on both sides: in place.
  template <WritableBuffer Out, InputFor<Out> In, AnyCounts SC = Counts, AnyCounts RC = Counts, AnyCounts SD = Counts,
            AnyCounts RD = Counts>
  void alltoallv(In&& in, SC&& sendcounts, Out&& out, RC&& recvcounts, SD&& sdispls = {}, RD&& rdispls = {}) const {
    alltoallv_as<Blocking<In, SC, RC, SD, RD>>(in, sendcounts, sdispls, out, recvcounts, rdispls);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In, LastingCounts SC, LastingCounts RC, LastingCounts SD = Counts,
            LastingCounts RD = Counts>
  Request ialltoallv(In&& in, SC&& sendcounts, Out&& out, RC&& recvcounts, SD&& sdispls = {}, RD&& rdispls = {}) const {
    return alltoallv_as<Starting>(in, sendcounts, sdispls, out, recvcounts, rdispls);
  }

  // Block i of the root's in becomes rank i's out; elsewhere in is not looked at and may be empty. With in_place for
  // out, the root's own block stays where it is.
  template <ElementBuffer In, WritableBuffer Out>
  requires InputFor<In, Out>
  void scatter(In&& in, Out&& out, int root) const { scatter_as<Blocking<In>>(in, out, root); }
  template <ElementBuffer In>
  void scatter(In&& in, InPlace, int root) const {
    scatter_at_root_as<Blocking<In>>(in, root);
  }
  template <LastingBuffer In, WritableBuffer Out>
  requires InputFor<In, Out> Request iscatter(In&& in, Out&& out, int root)
  const { return scatter_as<Starting>(in, out, root); }
  template <LastingBuffer In>
  Request iscatter(In&& in, InPlace, int root) const {
    return scatter_at_root_as<Starting>(in, root);
  }

  // Rank i's in becomes block i of the root's out; elsewhere out is not looked at and may be empty. In place (at the
  // root only): its block lies in out.
  template <WritableBuffer Out, InputFor<Out> In>
  void gather(In&& in, Out&& out, int root) const {
    gather_as<Blocking<In>>(in, out, root);
  }
  template <WritableBuffer Out, LastingInputFor<Out> In>
  Request igather(In&& in, Out&& out, int root) const {
    return gather_as<Starting>(in, out, root);
  }

 private:
  // The two ways to make a call, given the C function, its I-form, and the arguments of both. In a group a blocking
  // call outlives what it was given, as T&&, where that is a temporary.
  template <class... Given>
  struct Blocking {
    template <class F, class I, class... A>
    static void call(F function, I, A... arguments) {
      if constexpr (!(Lasting<Given> && ...)) api_detail::expect_no_group();
      check(function(arguments...));
    }
  };
  struct Starting {
    template <class F, class I, class... A>
    static Request call(F, I start, A... arguments) {
      GCCL_Request request = GCCL_REQUEST_NULL;
      check(start(arguments..., &request));
      return Request(request);
    }
  };

  // Makes a call whose arguments are checked first: fits() throws where they do not fit. They may go by the old numbers
  // of ranks: a call that is handed back, whatever its arguments, is so here, too (GCCL_Comm_set_on_failure).
  template <class How, class... P, class I, class Fits, class... A>
  auto call(GCCL_Result (*function)(P...), I start, Fits fits, A... arguments) const {
    try {
      fits();
    } catch (const Error&) {
      expect_numbers_kept([&] { (void)How::call(function, start, api_detail::refused<P>(arguments)...); });
      throw;
    }
    return How::call(function, start, arguments...);
  }
  // Given a call that the library does not carry out: throws where it hands it back.
  template <class F>
  void expect_numbers_kept(F refused) const {
    GCCL_Metrics m{};
    m.struct_bytes = sizeof m;
    if (GCCL_Get_performance_metrics(comm_, &m) != GCCL_SUCCESS || m.recoveries == 0) return;
    try {
      refused();
    } catch (const Error& e) {
      if (e.result() == GCCL_ERR_RANKS_CHANGED) throw;
    }
  }

  std::size_t n() const { return std::size_t(size()); }
  std::vector<int> ranks_from(GCCL_Result (*list)(GCCL_Comm, int*, int, int*)) const {
    int count = 0;
    std::vector<int> ranks(n());
    check(list(comm_, ranks.data(), int(ranks.size()), &count));
    ranks.resize(std::size_t(count));
    return ranks;
  }
  static const std::size_t* places(Counts displs) { return displs.empty() ? nullptr : displs.data(); }

  template <class How, class B>
  auto send_as(const B& data, int dest) const {
    using namespace api_detail;
    return How::call(GCCL_Send, GCCL_Isend, pointer(data), count_of(data), dtype_of_buffer(data), dest, comm_);
  }
  template <class How, class B>
  auto recv_as(B& data, int source) const {
    using namespace api_detail;
    return How::call(GCCL_Recv, GCCL_Irecv, pointer(data), count_of(data), dtype_of_buffer(data), source, comm_);
  }
  template <class How, class B>
  auto broadcast_as(B& data, int root) const {
    using namespace api_detail;
    return How::call(GCCL_Broadcast, GCCL_Ibroadcast, pointer(data), count_of(data), dtype_of_buffer(data), root,
                     comm_);
  }
  template <class How, class In, class Out, class O>
  auto allreduce_as(const In& in, Out& out, const O& op) const {
    using namespace api_detail;
    const auto fits = [&] {
      if constexpr (!is_in_place<In>) expect_count("allreduce", "the output", count_of(out), count_of(in));
    };
    return call<How>(GCCL_Allreduce, GCCL_Iallreduce, fits, pointer(in), pointer(out), count_of(out),
                     dtype_of_buffer(out), op_code(op), comm_);
  }
  template <class How, class In, class Out, class O>
  auto reduce_as(const In& in, Out& out, int root, const O& op) const {
    using namespace api_detail;
    std::size_t count = count_of(out);
    if constexpr (!is_in_place<In>) count = count_of(in);
    const auto fits = [&] {
      if constexpr (is_in_place<In>) {
        if (rank() != root) wrong("reduce", "in_place is for the root's input only");
      } else {
        if (rank() == root) expect_count("reduce", "the root's output", count_of(out), count);
      }
    };
    return call<How>(GCCL_Reduce, GCCL_Ireduce, fits, pointer(in), pointer(out), count, dtype_of_buffer(out),
                     op_code(op), root, comm_);
  }
  template <class How, class Out, class O>
  auto reduce_inout_as(Out& inout, int root, const O& op) const {
    using namespace api_detail;
    const void* const in = rank() == root ? GCCL_IN_PLACE : pointer(inout);
    return How::call(GCCL_Reduce, GCCL_Ireduce, in, pointer(inout), count_of(inout), dtype_of_buffer(inout),
                     op_code(op), root, comm_);
  }
  template <class How, class In, class Out>
  auto allgather_as(const In& in, Out& out) const {
    using namespace api_detail;
    const auto fits = [&] {
      expect_blocks("allgather", "the output", count_of(out), n());
      if constexpr (!is_in_place<In>) expect_count("allgather", "the output", count_of(out), n() * count_of(in));
    };
    return call<How>(GCCL_Allgather, GCCL_Iallgather, fits, pointer(in), pointer(out), count_of(out) / n(),
                     dtype_of_buffer(out), comm_);
  }
  template <class How, class In, class Out>
  auto allgatherv_as(const In& in, Out& out, Counts counts, Counts displs) const {
    using namespace api_detail;
    const auto fits = [&] {
      expect_at_least("allgatherv", "the output", count_of(out), extent("allgatherv", counts, displs, n()));
      if constexpr (!is_in_place<In>)
        expect_count("allgatherv", "the input", count_of(in), counts[std::size_t(rank())]);
    };
    return call<How>(GCCL_Allgatherv, GCCL_Iallgatherv, fits, pointer(in), pointer(out), counts.data(), places(displs),
                     dtype_of_buffer(out), comm_);
  }
  template <class How, class In, class Out, class O>
  auto reduce_scatter_as(const In& in, Out& out, const O& op) const {
    using namespace api_detail;
    const std::size_t count = is_in_place<In> ? count_of(out) / n() : count_of(out);
    const auto fits = [&] {
      if constexpr (is_in_place<In>)
        expect_blocks("reduce_scatter", "the buffer", count_of(out), n());
      else
        expect_count("reduce_scatter", "the input", count_of(in), n() * count);
    };
    return call<How>(GCCL_Reduce_scatter, GCCL_Ireduce_scatter, fits, pointer(in), pointer(out), count,
                     dtype_of_buffer(out), op_code(op), comm_);
  }
  template <class How, class In, class Out, class O>
  auto reduce_scatterv_as(const In& in, Out& out, Counts counts, const O& op) const {
    using namespace api_detail;
    const auto fits = [&] {
      const std::size_t all = extent("reduce_scatterv", counts, {}, n());
      if constexpr (is_in_place<In>) {
        expect_count("reduce_scatterv", "the buffer", count_of(out), all);
      } else {
        expect_count("reduce_scatterv", "the input", count_of(in), all);
        expect_count("reduce_scatterv", "the output", count_of(out), counts[std::size_t(rank())]);
      }
    };
    return call<How>(GCCL_Reduce_scatterv, GCCL_Ireduce_scatterv, fits, pointer(in), pointer(out), counts.data(),
                     dtype_of_buffer(out), op_code(op), comm_);
  }
  template <class How, class In, class Out>
  auto alltoall_as(const In& in, Out& out) const {
    using namespace api_detail;
    const auto fits = [&] {
      expect_blocks("alltoall", "the output", count_of(out), n());
      if constexpr (!is_in_place<In>) expect_count("alltoall", "the input", count_of(in), count_of(out));
    };
    return call<How>(GCCL_Alltoall, GCCL_Ialltoall, fits, pointer(in), pointer(out), count_of(out) / n(),
                     dtype_of_buffer(out), comm_);
  }
  template <class How, class In, class Out>
  auto alltoallv_as(const In& in, Counts sendcounts, Counts sdispls, Out& out, Counts recvcounts,
                    Counts rdispls) const {
    using namespace api_detail;
    const auto fits = [&] {
      expect_at_least("alltoallv", "the output", count_of(out), extent("alltoallv", recvcounts, rdispls, n()));
      if constexpr (!is_in_place<In>)
        expect_at_least("alltoallv", "the input", count_of(in), extent("alltoallv", sendcounts, sdispls, n()));
    };
    return call<How>(GCCL_Alltoallv, GCCL_Ialltoallv, fits, pointer(in), sendcounts.data(), places(sdispls),
                     pointer(out), recvcounts.data(), places(rdispls), dtype_of_buffer(out), comm_);
  }
  template <class How, class In, class Out>
  auto scatter_as(const In& in, Out& out, int root) const {
    using namespace api_detail;
    const auto fits = [&] {
      if (rank() == root) expect_count("scatter", "the root's input", count_of(in), n() * count_of(out));
    };
    return call<How>(GCCL_Scatter, GCCL_Iscatter, fits, pointer(in), pointer(out), count_of(out), dtype_of_buffer(out),
                     root, comm_);
  }
  template <class How, class In>
  auto scatter_at_root_as(const In& in, int root) const {
    using namespace api_detail;
    const auto fits = [&] {
      if (rank() != root) wrong("scatter", "in_place is for the root's output only");
      expect_blocks("scatter", "the root's input", count_of(in), n());
    };
    return call<How>(GCCL_Scatter, GCCL_Iscatter, fits, pointer(in), GCCL_IN_PLACE, count_of(in) / n(),
                     dtype_of_buffer(in), root, comm_);
  }
  template <class How, class In, class Out>
  auto gather_as(const In& in, Out& out, int root) const {
    using namespace api_detail;
    std::size_t count;
    if constexpr (is_in_place<In>)
      count = count_of(out) / n();
    else
      count = count_of(in);
    const auto fits = [&] {
      if constexpr (is_in_place<In>) {
        if (rank() != root) wrong("gather", "in_place is for the root's input only");
        expect_blocks("gather", "the root's output", count_of(out), n());
      } else {
        if (rank() == root) expect_count("gather", "the root's output", count_of(out), n() * count);
      }
    };
    return call<How>(GCCL_Gather, GCCL_Igather, fits, pointer(in), pointer(out), count, dtype_of_buffer(out), root,
                     comm_);
  }

  GCCL_Comm comm_ = GCCL_COMM_NULL;
  int exceptions_ = std::uncaught_exceptions();  // in flight when it was made
};

}  // namespace api
}  // namespace gccl
