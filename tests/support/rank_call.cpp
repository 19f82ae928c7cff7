#include "tests/support/rank_call.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace ranks {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5}, kInputFiller{0x5c}, kOutputFiller{0xe7};
constexpr std::size_t kBlockStride = 100003;  // between the indices of two blocks of unlike length

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

template <class Encode, class F>
void fill(std::byte* to, std::size_t n, Encode encode, F f) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = encode(f(i));
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

// Element i becomes the integer f(i).
template <class F>
void write(GCCL_Dtype d, std::byte* to, std::size_t n, F f) {
  using I = std::int64_t;
  switch (d) {
    case GCCL_INT8:
    case GCCL_UINT8:
      return fill(
          to, n, [](I x) { return std::uint8_t(x); }, f);
    case GCCL_INT16:
    case GCCL_UINT16:
      return fill(
          to, n, [](I x) { return std::uint16_t(x); }, f);
    case GCCL_INT32:
    case GCCL_UINT32:
      return fill(
          to, n, [](I x) { return std::uint32_t(x); }, f);
    case GCCL_INT64:
    case GCCL_UINT64:
      return fill(
          to, n, [](I x) { return std::uint64_t(x); }, f);
    case GCCL_FLOAT16: return fill(to, n, half, f);
    case GCCL_BFLOAT16: return fill(to, n, brain, f);
    case GCCL_FLOAT32:
      return fill(
          to, n, [](I x) { return float(x); }, f);
    default:
      return fill(
          to, n, [](I x) { return double(x); }, f);
  }
}

std::uint64_t mixed_bits(std::uint64_t x) { return Random(x).next(); }

std::size_t furthest(const std::vector<std::size_t>& places, const std::vector<std::size_t>& lengths) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i]) end = std::max(end, places[i] + lengths[i]);
  return end;
}

}  // namespace

const char* name(Kind kind) {
  static constexpr const char* kNames[kKinds] = {"broadcast",  "reduce",         "allreduce",       "allgather",
                                                 "allgatherv", "reduce_scatter", "reduce_scatterv", "alltoall",
                                                 "alltoallv",  "scatter",        "gather",          "barrier"};
  return kNames[int(kind)];
}

bool combines(Kind k) {
  return k == Kind::reduce || k == Kind::allreduce || k == Kind::reduce_scatter || k == Kind::reduce_scatterv;
}

bool rooted(Kind k) { return k == Kind::broadcast || k == Kind::reduce || k == Kind::scatter || k == Kind::gather; }

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

std::uint64_t Random::next() {  // SplitMix64 (Steele, Lea and Flood 2014)
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

std::string describe(const CallCase& c, int size) {
  static constexpr const char* kPlaces[] = {"apart", "in place", "same addresses", "places differ by rank"};
  std::string s = std::string(name(c.kind)) + " of " + std::to_string(c.count) + " x type " + std::to_string(c.dtype);
  if (combines(c.kind)) s += ", op " + std::to_string(c.op);
  if (rooted(c.kind)) s += ", root " + std::to_string(c.root);
  return s + ", " + kPlaces[int(c.place)] + (c.displaced ? ", displaced" : "") + ", seed " + std::to_string(c.seed) +
         " on " + std::to_string(size) + " ranks";
}

CallCase random_case(Random& random, int size, std::size_t max_bytes) {
  CallCase c;
  c.kind = Kind(random.below(kKinds));
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

Place RankCall::place_here() const {
  if (c_.place != Place::mixed) return c_.place;
  return Place(mixed_bits(c_.seed + std::uint64_t(rank_)) % 3);
}

// Before operations small enough that 8 ranks' values combine exactly in every type.
std::int64_t RankCall::value(int rank, std::size_t index) const {
  const auto raw = std::int64_t((index * 31 + (index >> 10) * 7 + c_.seed % 101 + std::size_t(rank) * 37) % 101);
  const bool negative = is_signed(c_.dtype);
  if (!combines(c_.kind)) return negative ? raw - 50 : raw;
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

std::int64_t RankCall::combined(std::size_t index) const {
  std::int64_t x = value(0, index);
  for (int r = 1; r < size_; ++r) {
    const std::int64_t y = value(r, index);
    x = c_.op == GCCL_PROD ? x * y : c_.op == GCCL_MAX ? std::max(x, y) : c_.op == GCCL_MIN ? std::min(x, y) : x + y;
  }
  return c_.op == GCCL_AVG ? x / size_ : x;
}

std::size_t RankCall::length(int from, int to) const {
  if (c_.count == 0) return 0;
  if (c_.kind == Kind::alltoallv && c_.place != Place::apart && from > to) std::swap(from, to);
  const std::uint64_t h = mixed_bits(c_.seed ^ (std::uint64_t(from) * 64 + std::uint64_t(to) + 1) * 0x10001);
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

void RankCall::now(Space& s, std::size_t at, int rank, std::size_t index, std::size_t n) const {
  write(c_.dtype, s.data() + at * element_, n, [&](std::size_t i) { return value(rank, index + i); });
}
void RankCall::then(Space& s, std::size_t at, int rank, std::size_t index, std::size_t n) const {
  s.expect_as_is();
  write(c_.dtype, s.due.data() + s.first + at * element_, n, [&](std::size_t i) { return value(rank, index + i); });
}
void RankCall::sums(Space& s, std::size_t at, std::size_t index, std::size_t n) const {
  s.expect_as_is();
  write(c_.dtype, s.due.data() + s.first + at * element_, n, [&](std::size_t i) { return combined(index + i); });
  if (!s.any.empty()) std::fill_n(s.any.begin() + std::ptrdiff_t(at), n, false);
}
void RankCall::anything(Space& s) const { s.any.assign(s.count, true); }

// Inputs first (now), then what is due.
void RankCall::prepare() {
  const auto n = std::size_t(size_), me = std::size_t(rank_), count = c_.count, root = std::size_t(c_.root);
  const bool at_root = rank_ == c_.root;
  const Place place = place_here();
  const auto make_in = [&](std::size_t elements) {
    input_.make(elements, element_, kInputFiller);
    send_ = elements == 0 && c_.seed % 2 ? nullptr : input_.data();
  };
  const auto make_out = [&](std::size_t elements) {
    output_.make(elements, element_, kOutputFiller);
    recv_ = elements == 0 && c_.seed % 2 ? nullptr : output_.data();
  };
  // Where the own part of the output is the input.
  const auto own_at = [&](std::size_t at, std::size_t index, std::size_t length) {
    now(output_, at, rank_, index, length);
    send_ = place == Place::in_place ? GCCL_IN_PLACE : output_.data() + at * element_;
  };
  switch (c_.kind) {
    case Kind::broadcast:
      make_out(count);
      if (at_root) now(output_, 0, rank_, 0, count);
      return then(output_, 0, c_.root, 0, count);
    case Kind::allgather:
      make_out(n * count);
      if (place == Place::apart) {
        make_in(count);
        now(input_, 0, rank_, 0, count);
      } else {
        own_at(me * count, 0, count);
      }
      for (std::size_t r = 0; r < n; ++r) then(output_, r * count, int(r), 0, count);
      return;
    case Kind::allgatherv: {
      for (int r = 0; r < size_; ++r) recv_counts_.push_back(length(r, 0));
      recv_places_ = places(recv_counts_, rank_ + 1);
      make_out(furthest(recv_places_, recv_counts_));
      if (place == Place::apart || recv_counts_[me] == 0) {
        make_in(recv_counts_[me]);
        now(input_, 0, rank_, 0, recv_counts_[me]);
      } else {
        own_at(recv_places_[me], 0, recv_counts_[me]);
      }
      for (std::size_t r = 0; r < n; ++r)
        then(output_, recv_counts_[r] ? recv_places_[r] : 0, int(r), 0, recv_counts_[r]);
      return;
    }
    case Kind::alltoall:
      make_out(n * count);
      if (place == Place::apart) {
        make_in(n * count);
        now(input_, 0, rank_, 0, n * count);
      } else {
        own_at(0, 0, n * count);
      }
      for (std::size_t r = 0; r < n; ++r) then(output_, r * count, int(r), me * count, count);
      return;
    case Kind::alltoallv: {
      for (int r = 0; r < size_; ++r) {
        send_counts_.push_back(length(rank_, r));
        recv_counts_.push_back(length(r, rank_));
      }
      send_places_ = places(send_counts_, 2 * rank_);
      recv_places_ = places(recv_counts_, rank_ + 1);
      make_out(furthest(recv_places_, recv_counts_));
      const bool apart = place == Place::apart;
      if (apart) make_in(furthest(send_places_, send_counts_));
      Space& from = apart ? input_ : output_;
      const std::vector<std::size_t>& at = apart ? send_places_ : recv_places_;
      for (std::size_t r = 0; r < n; ++r)
        now(from, send_counts_[r] ? at[r] : 0, rank_, r * kBlockStride, send_counts_[r]);
      if (!apart) send_ = GCCL_IN_PLACE;
      for (std::size_t r = 0; r < n; ++r)
        then(output_, recv_counts_[r] ? recv_places_[r] : 0, int(r), me * kBlockStride, recv_counts_[r]);
      return;
    }
    case Kind::scatter:
      if (at_root) {
        make_in(n * count);
        now(input_, 0, rank_, 0, n * count);
      }
      if (at_root && place != Place::apart) {
        recv_ = place == Place::in_place ? GCCL_IN_PLACE : input_.data() + root * count * element_;
      } else {
        make_out(count);
        then(output_, 0, c_.root, me * count, count);
      }
      return;
    case Kind::gather:
      if (at_root) make_out(n * count);
      if (at_root && place != Place::apart) {
        own_at(root * count, 0, count);
      } else {
        make_in(count);
        now(input_, 0, rank_, 0, count);
      }
      if (at_root)
        for (std::size_t r = 0; r < n; ++r) then(output_, r * count, int(r), 0, count);
      return;
    case Kind::barrier: return;
    default: return prepare_combining();
  }
}

void RankCall::prepare_combining() {
  const auto me = std::size_t(rank_), count = c_.count;
  const Place place = place_here();
  const bool scatters = c_.kind == Kind::reduce_scatter || c_.kind == Kind::reduce_scatterv;
  const bool receives = c_.kind != Kind::reduce || rank_ == c_.root;
  std::size_t all = count, mine = count, before = 0;
  if (scatters) {
    for (int r = 0; r < size_; ++r) recv_counts_.push_back(c_.kind == Kind::reduce_scatterv ? length(0, r) : count);
    all = std::accumulate(recv_counts_.begin(), recv_counts_.end(), std::size_t(0));
    before = std::accumulate(recv_counts_.begin(), recv_counts_.begin() + rank_, std::size_t(0));
    mine = recv_counts_[me];
  }
  const bool apart = place == Place::apart || !receives;
  if (apart || (scatters && place == Place::same)) {
    input_.make(all, element_, kInputFiller);
    now(input_, 0, rank_, 0, all);
    send_ = all == 0 && c_.seed % 2 ? nullptr : input_.data();
  }
  if (!receives) return;
  if (apart) {
    output_.make(mine, element_, kOutputFiller);
    recv_ = mine == 0 && c_.seed % 2 ? nullptr : output_.data();
    return sums(output_, 0, before, mine);
  }
  if (scatters && place == Place::same) {
    recv_ = input_.data() + before * element_;
    if (!send_) send_ = recv_;
    anything(input_);
    return sums(input_, before, before, mine);
  }
  output_.make(all, element_, kOutputFiller);
  now(output_, 0, rank_, 0, all);
  recv_ = output_.data();
  send_ = place == Place::in_place ? GCCL_IN_PLACE : recv_;
  if (scatters) anything(output_);
  sums(output_, 0, before, mine);
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
  }
  return GCCL_ERR_INTERNAL;
}

std::string RankCall::verify() const {
  std::string wrong = input_.differences("the input");
  if (wrong.empty()) wrong = output_.differences("the output");
  return wrong.empty() ? "" : "rank " + std::to_string(rank_) + ", " + describe(c_, size_) + ": " + wrong;
}

}  // namespace ranks
