#include "tests/support/rank_call.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace ranks {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5}, kInputFiller{0x5c}, kOutputFiller{0xe7};
constexpr std::size_t kBlockStride = 100003;  // between the indices of two blocks
constexpr std::size_t kRankStride = 37;       // between the classes of two ranks' elements

bool is_signed(GCCL_Dtype d) { return d != GCCL_UINT8 && d != GCCL_UINT16 && d != GCCL_UINT32 && d != GCCL_UINT64; }
bool is_float(GCCL_Dtype d) {
  return d == GCCL_FLOAT16 || d == GCCL_FLOAT32 || d == GCCL_FLOAT64 || d == GCCL_BFLOAT16;
}

// Integers of at most 2048 in IEEE 754 binary16, of at most 256 in bfloat16: exact.
std::uint16_t half(std::int64_t x) {
  if (x == 0) return 0;
  const auto magnitude = std::uint32_t(x < 0 ? -x : x);
  const unsigned exponent = unsigned(std::bit_width(magnitude)) - 1;
  return std::uint16_t((x < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ffu));
}
std::uint16_t brain(std::int64_t x) { return std::uint16_t(std::bit_cast<std::uint32_t>(float(x)) >> 16); }

// Element i becomes encode(value(c)), with c = class_of(i) < classes; short pieces have fewer elements than classes.
template <class Encode, class Value, class ClassOf>
void fill_as(Encode encode, std::byte* to, std::size_t n, std::size_t classes, Value value, ClassOf class_of) {
  using Element = decltype(encode(std::int64_t()));
  std::vector<Element> encoded(n < classes ? 0 : classes);
  for (std::size_t c = 0; c < encoded.size(); ++c) encoded[c] = encode(value(c));
  for (std::size_t i = 0; i < n; ++i) {
    const Element x = encoded.empty() ? encode(value(class_of(i))) : encoded[class_of(i)];
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

template <class... What>
void write(GCCL_Dtype d, const What&... what) {
  using I = std::int64_t;
  switch (d) {
    case GCCL_INT8:
    case GCCL_UINT8: return fill_as([](I x) { return std::uint8_t(x); }, what...);
    case GCCL_INT16:
    case GCCL_UINT16: return fill_as([](I x) { return std::uint16_t(x); }, what...);
    case GCCL_INT32:
    case GCCL_UINT32: return fill_as([](I x) { return std::uint32_t(x); }, what...);
    case GCCL_INT64:
    case GCCL_UINT64: return fill_as([](I x) { return std::uint64_t(x); }, what...);
    case GCCL_FLOAT16: return fill_as(half, what...);
    case GCCL_BFLOAT16: return fill_as(brain, what...);
    case GCCL_FLOAT32: return fill_as([](I x) { return float(x); }, what...);
    default: return fill_as([](I x) { return double(x); }, what...);
  }
}

}  // namespace

std::size_t bytes_of(GCCL_Dtype d) {
  switch (d) {
    case GCCL_INT8:
    case GCCL_UINT8: return 1;
    case GCCL_INT16:
    case GCCL_UINT16:
    case GCCL_FLOAT16:
    case GCCL_BFLOAT16: return 2;
    case GCCL_INT32:
    case GCCL_UINT32:
    case GCCL_FLOAT32: return 4;
    default: return 8;
  }
}

std::string describe(const CallCase& c, int size) {
  static constexpr const char* kPlaces[] = {"apart", "in place", "same addresses", "places differ by rank"};
  std::string s = std::string(gccl::definition(c.kind).name) + " of " + std::to_string(c.count) + " x type " +
                  std::to_string(c.dtype);
  if (gccl::reduces(c.kind)) s += ", op " + std::to_string(c.op);
  if (gccl::has_root(c.kind)) s += ", root " + std::to_string(c.root);
  return s + ", " + kPlaces[int(c.place)] + (c.displaced ? ", displaced" : "") + ", seed " + std::to_string(c.seed) +
         " on " + std::to_string(size) + " ranks";
}

void each_case(int size, const std::function<bool(const CallCase&, std::uint64_t)>& f) {
  std::uint64_t number = 0;
  for (const Kind kind : kKinds)
    for (const GCCL_Dtype dtype : kTypes)
      for (const GCCL_Op op : kOps) {
        if (!gccl::reduces(kind) && op != GCCL_SUM) continue;
        for (int place = 0; place < 4; ++place) {
          ++number;
          const std::size_t counts[] = {1, 5, 48 / bytes_of(dtype) + 1, 1000};
          if (!f({.kind = kind,
                  .dtype = dtype,
                  .op = op,
                  .count = counts[number / 4 % 4],
                  .root = int(number % std::uint64_t(size)),
                  .place = Place(place),
                  .displaced = number % 8 >= 4,
                  .seed = number},
                 number))
            return;
        }
      }
}

CallCase random_case(Random& random, int size, std::size_t max_bytes) {
  CallCase c;
  c.kind = kKinds[random.below(std::size(kKinds))];
  c.dtype = kTypes[random.below(std::size(kTypes))];
  c.op = kOps[random.below(std::size(kOps))];
  c.root = int(random.below(std::uint64_t(size)));
  c.place = Place(random.below(4));
  c.displaced = random.below(2) == 1;
  c.seed = random.next();
  // Short ones are the most frequent; every length has its chance.
  const std::size_t most = max_bytes / bytes_of(c.dtype) / std::size_t(size);
  c.count = random.below(1 + (most >> random.below(16)));
  return c;
}

void RankCall::Space::make(std::size_t elements, std::size_t element_bytes, std::byte filler) {
  element = element_bytes;
  count = elements;
  bytes.assign(kGuardBytes * 3 + elements * element, kGuard);
  first = kGuardBytes;
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  while ((address + first) % kGuardBytes != element) ++first;
  std::fill_n(data(), elements * element, filler);
}

void RankCall::Space::expect_as_is() {
  if (due.empty()) due.assign(bytes.begin(), bytes.end());
}

std::string RankCall::Space::differences(const char* which) const {
  if (any.empty() && std::equal(bytes.begin(), bytes.end(), due.begin(), due.end())) return "";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == due[i]) continue;
    if (i >= first && i < first + count * element) {
      const std::size_t e = (i - first) / element;
      if (!any.empty() && any[e]) continue;
      return std::string(which) + " differs at element " + std::to_string(e) + " of " + std::to_string(count) +
             " (byte " + std::to_string(int(bytes[i])) + ", due " + std::to_string(int(due[i])) + ")";
    }
    return std::string(which) + ": written outside, " +
           (i < first ? std::to_string(first - i) + " bytes before"
                      : std::to_string(i - first - count * element) + " bytes behind");
  }
  return "";
}

RankCall::RankCall(const CallCase& c, int rank, int size, std::pmr::memory_resource* memory)
    : c_(c), rank_(rank), size_(size), element_(bytes_of(c.dtype)), input_(memory), output_(memory) {
  if (c_.kind == Kind::alltoallv && c_.place == Place::mixed) c_.place = Place::apart;  // in place asks for symmetry
  prepare();
  for (Space* s : {&input_, &output_}) s->expect_as_is();
}

RankCall::~RankCall() = default;

Place RankCall::place_here() const {
  if (c_.place != Place::mixed) return c_.place;
  return Place(gccl::splitmix::hash(c_.seed + std::uint64_t(rank_)) % 3);
}

std::size_t RankCall::class_of(std::size_t index, gccl::Rank rank) const {
  return (index * 31 + (index >> 10) * 7 + c_.seed % kClasses + std::size_t(rank) * kRankStride) % kClasses;
}

// Before operations small enough that 8 ranks' values combine exactly in every type.
std::int64_t RankCall::value(std::size_t class_of_element) const {
  const auto raw = std::int64_t(class_of_element);
  const bool negative = is_signed(c_.dtype);
  if (!gccl::reduces(c_.kind)) return negative ? raw - 50 : raw;
  switch (c_.op) {
    case GCCL_PROD: {
      static constexpr std::int64_t kSigned[] = {-2, -1, 1, 2, 1}, kUnsigned[] = {1, 2, 3, 1, 1};
      return (negative ? kSigned : kUnsigned)[raw % 5];
    }
    case GCCL_AVG:
      if (is_float(c_.dtype)) return (raw % 5 - 2) * size_;
      [[fallthrough]];
    default: return negative ? raw % 17 - 8 : raw % 17;
  }
}

std::int64_t RankCall::combined(std::size_t class_on_rank_0) const {
  std::int64_t x = value(class_on_rank_0);
  for (gccl::Rank r = 1; r < gccl::Rank(size_); ++r) {
    const std::int64_t y = value((class_on_rank_0 + std::size_t(r) * kRankStride) % kClasses);
    x = c_.op == GCCL_PROD ? x * y : c_.op == GCCL_MAX ? std::max(x, y) : c_.op == GCCL_MIN ? std::min(x, y) : x + y;
  }
  return c_.op == GCCL_AVG ? x / size_ : x;
}

std::size_t RankCall::length(int from, int to) const {
  if (c_.count == 0) return 0;
  if (c_.kind == Kind::alltoallv && c_.place != Place::apart && from > to) std::swap(from, to);
  const std::uint64_t h = gccl::splitmix::hash(c_.seed ^ (std::uint64_t(from) * 64 + std::uint64_t(to) + 1) * 0x10001);
  if (h % 4 == 0) return 0;
  return h % 4 == 1 ? c_.count : (h >> 8) % (c_.count + 1);
}

std::vector<std::size_t> RankCall::places(const std::vector<std::size_t>& lengths, int salt) const {
  std::vector<std::size_t> p(lengths.size());
  if (!c_.displaced) {
    std::exclusive_scan(lengths.begin(), lengths.end(), p.begin(), std::size_t(0));
    return p;
  }
  std::size_t at = std::size_t(salt);
  for (std::size_t i = lengths.size(); i-- > 0;) {  // the last block first
    p[i] = lengths[i] ? at : std::size_t(1) << 20;  // where an empty block lies means nothing
    at += lengths[i] + (i + std::size_t(salt)) % 3;
  }
  return p;
}

void RankCall::now(Space& s, std::size_t at, const gccl::Piece& p) const {
  fill(s.data() + (at + p.begin) * element_, p, false);
}
void RankCall::then(Space& s, std::size_t at, const gccl::Piece& p) const {
  s.expect_as_is();
  fill(s.due.data() + s.first + (at + p.begin) * element_, p, p.reduced);
  if (!s.any.empty()) std::fill_n(s.any.begin() + std::ptrdiff_t(at + p.begin), p.count, false);
}

void RankCall::fill(std::byte* to, const gccl::Piece& p, bool reduced) const {
  write(
      c_.dtype, to, p.count, kClasses, [&](std::size_t c) { return reduced ? combined(c) : value(c); },
      [&](std::size_t i) { return class_of(p.block * kBlockStride + i, reduced ? 0 : p.from); });
}

gccl::Call RankCall::defined(bool in_place) const {
  gccl::Call c{.kind = c_.kind, .count = c_.count, .root = gccl::Rank(c_.root), .in_place = in_place};
  c.table = this;
  c.counts = [](const void* call, gccl::Rank from, gccl::Rank to) -> gccl::Count {
    return static_cast<const RankCall*>(call)->length(int(from), int(to));
  };
  if (c_.kind == Kind::allgatherv || c_.kind == Kind::alltoallv)
    c.places = [](const void* call, gccl::Rank, gccl::Rank peer, bool outgoing) -> gccl::Count {
      const auto& self = *static_cast<const RankCall*>(call);
      return (outgoing ? self.send_places_ : self.recv_places_)[peer];
    };
  return c;
}

// Inputs first (now), then what is due. Where a rank both gives and gets, gccl.h lets one buffer serve for both.
void RankCall::prepare() {
  const auto n = gccl::Rank(size_), me = gccl::Rank(rank_), root = gccl::Rank(c_.root);
  const gccl::Definition& d = gccl::definition(c_.kind);
  const bool gives = d.input.by(me, root), gets = d.output.by(me, root);
  const bool scatters = d.input.extent == gccl::Extent::every && d.output.extent == gccl::Extent::own;
  Place place = c_.kind == Kind::broadcast ? Place::same : place_here();  // a broadcast has one buffer
  if (!gives || !gets || (c_.kind == Kind::allgatherv && length(rank_, 0) == 0)) place = Place::apart;

  const gccl::Call call = defined(place != Place::apart);
  for (gccl::Rank r = 0; r < n && (d.counts || c_.kind == Kind::reduce_scatter); ++r) {
    recv_counts_.push_back(scatters ? call.between(me, r) : call.between(r, me));
    if (c_.kind == Kind::alltoallv) send_counts_.push_back(call.between(me, r));
  }
  send_places_ = places(send_counts_, 2 * rank_);
  recv_places_ = places(recv_counts_, rank_ + 1);

  std::size_t in = 0, out = 0, own = 0;  // lengths, and where the rank's own part of the longer buffer lies in it
  each_input(call, n, me, [&](const gccl::Piece& p) { in = std::max<std::size_t>(in, p.begin + p.count); });
  each_output(call, n, me, [&](const gccl::Piece& p) {
    out = std::max<std::size_t>(out, p.begin + p.count);
    if (d.input.extent == gccl::Extent::own && p.from == me) own = p.begin;
  });
  for (gccl::Rank r = 0; r < me && scatters; ++r) own += call.between(me, r);

  // In place the longer buffer holds both; MPI's way of a reduce-scatter takes the output for it.
  const bool in_input = place != Place::apart && scatters && !(d.reduces && place == Place::in_place);
  const bool in_output = place != Place::apart && !in_input;
  if (gives && !in_output) {
    input_.make(in, element_, kInputFiller);
    send_ = in == 0 && c_.seed % 2 ? nullptr : input_.data();
  }
  if (gets && !in_input) {
    output_.make(in_output ? std::max(in, out) : out, element_, kOutputFiller);
    recv_ = output_.count == 0 && c_.seed % 2 && !(in_output && d.reduces) ? nullptr : output_.data();
  }
  const std::size_t given_at = in_output && !scatters ? own : 0, got_at = in_input ? own : 0;
  Space &given = in_output ? output_ : input_, &got = in_input ? input_ : output_;
  each_input(call, n, me, [&](const gccl::Piece& p) { now(given, given_at, p); });
  const bool named = place == Place::in_place;
  if (in_output) send_ = named || c_.kind == Kind::alltoallv ? GCCL_IN_PLACE : output_.data() + given_at * element_;
  if (in_input) recv_ = named ? GCCL_IN_PLACE : input_.data() + got_at * element_;
  if (in_input && d.reduces && !send_) send_ = recv_;
  if (place != Place::apart && scatters && d.reduces) got.any.assign(got.count, true);  // other blocks' sums
  each_output(call, n, me, [&](const gccl::Piece& p) { then(got, got_at, p); });
}

GCCL_Result RankCall::call(GCCL_Comm comm, GCCL_Request* q) {
  const std::size_t *const sp = c_.displaced ? send_places_.data() : nullptr, *const rp = c_.displaced
                                                                                              ? recv_places_.data()
                                                                                              : nullptr;
  // In place, counts and displacements of what is sent are not looked at.
  const bool ignored = send_ == GCCL_IN_PLACE;
  const std::size_t *const sc = ignored ? nullptr : send_counts_.data(), *const rc = recv_counts_.data();
  const std::size_t count = c_.count;
  const GCCL_Dtype d = c_.dtype;
  const GCCL_Op op = c_.op;
  switch (c_.kind) {
    case Kind::broadcast:
      return q ? GCCL_Ibroadcast(recv_, count, d, c_.root, comm, q) : GCCL_Broadcast(recv_, count, d, c_.root, comm);
    case Kind::reduce:
      return q ? GCCL_Ireduce(send_, recv_, count, d, op, c_.root, comm, q)
               : GCCL_Reduce(send_, recv_, count, d, op, c_.root, comm);
    case Kind::allreduce:
      return q ? GCCL_Iallreduce(send_, recv_, count, d, op, comm, q)
               : GCCL_Allreduce(send_, recv_, count, d, op, comm);
    case Kind::allgather:
      return q ? GCCL_Iallgather(send_, recv_, count, d, comm, q) : GCCL_Allgather(send_, recv_, count, d, comm);
    case Kind::allgatherv:
      return q ? GCCL_Iallgatherv(send_, recv_, rc, rp, d, comm, q) : GCCL_Allgatherv(send_, recv_, rc, rp, d, comm);
    case Kind::reduce_scatter:
      return q ? GCCL_Ireduce_scatter(send_, recv_, count, d, op, comm, q)
               : GCCL_Reduce_scatter(send_, recv_, count, d, op, comm);
    case Kind::reduce_scatterv:
      return q ? GCCL_Ireduce_scatterv(send_, recv_, rc, d, op, comm, q)
               : GCCL_Reduce_scatterv(send_, recv_, rc, d, op, comm);
    case Kind::alltoall:
      return q ? GCCL_Ialltoall(send_, recv_, count, d, comm, q) : GCCL_Alltoall(send_, recv_, count, d, comm);
    case Kind::alltoallv:
      return q ? GCCL_Ialltoallv(send_, sc, ignored ? nullptr : sp, recv_, rc, rp, d, comm, q)
               : GCCL_Alltoallv(send_, sc, ignored ? nullptr : sp, recv_, rc, rp, d, comm);
    case Kind::scatter:
      return q ? GCCL_Iscatter(send_, recv_, count, d, c_.root, comm, q)
               : GCCL_Scatter(send_, recv_, count, d, c_.root, comm);
    case Kind::gather:
      return q ? GCCL_Igather(send_, recv_, count, d, c_.root, comm, q)
               : GCCL_Gather(send_, recv_, count, d, c_.root, comm);
    case Kind::barrier: return q ? GCCL_Ibarrier(comm, q) : GCCL_Barrier(comm);
    case Kind::sendrecv: break;  // gccl.h has no such function
  }
  return GCCL_ERR_INTERNAL;
}

std::string RankCall::verify() const {
  std::string wrong = input_.differences("the input");
  if (wrong.empty()) wrong = output_.differences("the output");
  return wrong.empty() ? "" : "rank " + std::to_string(rank_) + ", " + describe(c_, size_) + ": " + wrong;
}

std::string outcome(const CallCase& c, GCCL_Comm comm, int rank, int size, bool non_blocking) {
  RankCall call(c, rank, size);
  GCCL_Result result;
  if (non_blocking) {
    GCCL_Request request = GCCL_REQUEST_NULL;
    result = call.start(comm, &request);
    if (result == GCCL_SUCCESS) result = GCCL_Wait(&request);
  } else {
    result = call.run(comm);
  }
  const std::string wrong = result == GCCL_SUCCESS ? call.verify() : describe(c, size) + ": " + GCCL_Last_error();
  return wrong.empty() || !non_blocking ? wrong : wrong + " (non-blocking)";
}

}  // namespace ranks
