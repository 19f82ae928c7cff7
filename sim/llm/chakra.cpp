#include "sim/llm/chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <queue>
#include <unordered_map>

#include "libgccl/base/regular_file.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl::sim::llm {
namespace {

// Traces of a step have some hundred bytes a node; a file of this size has millions of them.
constexpr std::uint64_t kTraceBytesMax = 1ull << 30;
constexpr std::uint64_t kRankNamedMax = (1ull << 31) - 1;
constexpr double kOperationsMax = 1e24;  // of a node; at 1 PFLOP/s that is 30 years

// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a row of fields, each a
// number and a kind of value.
class Wire {
 public:
  Wire(std::string_view text, const std::filesystem::path& file, std::size_t offset = 0)
      : text_(text), file_(file), offset_(offset) {}

  bool more() const { return at_ < text_.size(); }
  std::size_t place() const { return offset_ + at_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw json::InputError(fmt::format("{}: byte {}: {}", file_.string(), place(), what));
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (!more()) fail("ends within a number; is it a Chakra trace?");
      const auto byte = std::uint8_t(text_[at_++]);
      value |= std::uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number of more than 64 bits; is it a Chakra trace?");
  }
  Wire message() {
    const std::uint64_t length = varint();
    if (length > text_.size() - at_)
      fail(fmt::format("a message of {} bytes, but only {} are left; is it a Chakra trace?", length,
                       text_.size() - at_));
    const Wire inside(text_.substr(at_, length), file_, place());
    at_ += length;
    return inside;
  }
  std::string text() const { return std::string(text_); }

  // The next field: its number; its value is read by what follows.
  std::uint64_t field() {
    const std::uint64_t tag = varint();
    kind_ = unsigned(tag & 7);
    return tag >> 3;
  }
  // An integer of any width and kind.
  std::uint64_t integer() {
    if (kind_ == 0) return varint();
    if (kind_ == 1) return fixed<std::uint64_t>();
    if (kind_ == 5) return fixed<std::uint32_t>();
    fail("a text or message where a number was expected");
  }
  double real() {
    if (kind_ == 1) return std::bit_cast<double>(fixed<std::uint64_t>());
    if (kind_ == 5) return double(std::bit_cast<float>(fixed<std::uint32_t>()));
    fail("no floating-point number where one was expected");
  }
  Wire bytes() {
    if (kind_ != 2) fail("a number where a text or message was expected");
    return message();
  }
  // One value, or several packed together.
  void integers(std::vector<std::uint64_t>& into) {
    if (kind_ != 2) return into.push_back(integer());
    for (Wire packed = message(); packed.more();) into.push_back(packed.varint());
  }
  void skip() {
    if (kind_ == 2)
      message();
    else if (kind_ == 0 || kind_ == 1 || kind_ == 5)
      integer();
    else
      fail(fmt::format("a field of kind {}, expected 0, 1, 2 or 5; is it a Chakra trace?", kind_));
  }

 private:
  template <class T>
  T fixed() {
    if (text_.size() - at_ < sizeof(T)) fail("ends within a number");
    T value;
    std::memcpy(&value, text_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string_view text_;
  const std::filesystem::path& file_;
  std::size_t offset_, at_ = 0;
  unsigned kind_ = 0;
};

// AttributeProto: a name and one of many kinds of values. `number` is NaN where it has none; `integer` has the value
// where that is an integer of at least 0, and of a negative one the bits.
struct Attribute {
  std::string name;
  std::optional<std::string> text;
  bool valued = false;
  double number = NAN;
  std::uint64_t integer = 0;
  bool counts = false;      // an integer of at least 0
  bool whole = false;       // an integer, in `integer`; negative ones as their two's complement
  bool some_false = false;  // of a list of bools
};
void put_signed(std::uint64_t bits, Attribute& a) {
  a.valued = true;
  a.integer = bits;
  a.number = double(std::int64_t(bits));
  a.counts = a.number >= 0;
  a.whole = true;
}
Attribute read_attribute(Wire w) {
  Attribute a;
  while (w.more()) switch (w.field()) {
      case 1: a.name = w.bytes().text(); break;
      case 3:
      case 5:
        a.valued = true;
        a.number = w.real();
        a.counts = a.number >= 0 && a.number < 0x1p64 && a.number == std::floor(a.number);
        a.whole = std::abs(a.number) < 0x1p63 && a.number == std::floor(a.number);
        a.integer = a.whole ? std::uint64_t(std::int64_t(a.number)) : a.counts ? std::uint64_t(a.number) : 0;
        break;
      case 7:
      case 9:
      case 25: put_signed(w.integer(), a); break;
      case 23: put_signed(std::uint64_t(std::int64_t(std::int32_t(w.integer()))), a); break;
      case 11:
      case 13:
      case 19:
      case 21:
      case 27:
        a.integer = w.integer();
        a.number = double(a.integer);
        a.counts = a.whole = a.valued = true;
        break;
      case 15:
      case 17: {  // zigzag
        const std::uint64_t v = w.integer();
        put_signed((v >> 1) ^ (~(v & 1) + 1), a);
        break;
      }
      case 28: {  // BoolList
        std::vector<std::uint64_t> values;
        for (Wire list = w.bytes(); list.more();)
          if (list.field() == 1)
            list.integers(values);
          else
            list.skip();
        a.some_false = std::ranges::find(values, 0u) != values.end();
        break;
      }
      case 29: a.text = w.bytes().text(); break;
      default: w.skip();
    }
  return a;
}

class TraceReader {
 public:
  explicit TraceReader(const std::filesystem::path& file) : file_(file) {
    if (const Status s = read_regular_file(file.string(), kTraceBytesMax, &text_); !s.ok())
      throw json::InputError(s.text());
  }

  std::vector<ChakraNode> nodes() {
    Wire all(text_, file_);
    if (!all.more()) all.fail("is empty, expected a Chakra trace");
    if (text_.starts_with("\x1f\x8b")) all.fail("is compressed by gzip, expected a Chakra trace as it is: gunzip it");
    all.message();  // GlobalMetadata: nothing that we need
    std::vector<ChakraNode> nodes;
    while (all.more()) nodes.push_back(node(all.message()));
    return in_order(std::move(nodes));
  }

 private:
  [[noreturn]] void fail(const ChakraNode& n, const std::string& what) const {
    throw json::InputError(
        fmt::format("{}: node {} \"{}\": {}", file_.string(), n.id, json::valid_text(n.name.substr(0, 60)), what));
  }

  std::uint64_t count(const ChakraNode& n, const Attribute& a) const {
    if (!a.counts) fail(n, fmt::format("{} {}, expected an integer of at least 0", a.name, shown(a)));
    return a.integer;
  }
  std::uint64_t tag(const ChakraNode& n, const Attribute& a) const {
    if (!a.whole) fail(n, fmt::format("{} {}, expected an integer", a.name, shown(a)));
    return a.integer;
  }
  double amount(const ChakraNode& n, const Attribute& a) const {
    if (!(a.number >= 0 && a.number <= kOperationsMax))
      fail(n, fmt::format("{} {}, expected a number from 0 to {:.0e}", a.name, shown(a), kOperationsMax));
    return a.number;
  }
  Rank rank(const ChakraNode& n, const Attribute& a) const {
    const std::uint64_t r = count(n, a);
    if (r > kRankNamedMax) fail(n, fmt::format("{} {} is no rank", a.name, r));
    return Rank(r);
  }
  static std::string shown(const Attribute& a) {
    if (a.text) return fmt::format("\"{}\"", json::valid_text(a.text->substr(0, 60)));
    return a.valued ? fmt::format("{}", a.number) : "without a value";
  }

  ChakraNode node(Wire w) {
    ChakraNode n;
    std::uint64_t type = 0, comm_type = ~0ull;
    bool sized = false, some_dimensions = false;
    std::optional<Attribute> tagged, grouped;
    while (w.more()) switch (w.field()) {
        case 1: n.id = w.integer(); break;
        case 2: n.name = w.bytes().text(); break;
        case 3: type = w.integer(); break;
        case 4:
        case 5: w.integers(n.after); break;
        case 7: {
          const std::uint64_t us = w.integer();
          if (double(us) > kChakraMicrosMax)
            fail(n, fmt::format("duration_micros {}, expected at most {:.0e}", us, kChakraMicrosMax));
          n.duration_us = double(us);
          break;
        }
        case 10: {
          const Attribute a = read_attribute(w.bytes());
          if (a.name == "is_cpu_op") n.host = count(n, a) != 0;
          if (a.name == "num_ops") n.operations = amount(n, a);
          if (a.name == "tensor_size") n.bytes = amount(n, a);
          if (a.name == "comm_type") comm_type = count(n, a);
          if (a.name == "comm_size") n.comm_bytes = count(n, a), sized = true;
          if (a.name == "comm_src") n.source = rank(n, a);
          if (a.name == "comm_dst") n.destination = rank(n, a);
          if (a.name == "comm_tag") tagged = a;
          if (a.name == "involved_dim") some_dimensions = a.some_false;
          if (a.name == "pg_name") grouped = a;
          break;
        }
        default: w.skip();
      }
    static constexpr std::string_view kTypes[] = {"INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
                                                  "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE",
                                                  "STORAGE_NODE", "BATCH_NODE",     "CHECKPOINT_NODE"};
    if (type != 1 && (type < 4 || type > 7))
      fail(n,
           fmt::format("type {}, expected COMP_NODE, COMM_COLL_NODE, COMM_SEND_NODE, COMM_RECV_NODE or METADATA_NODE",
                       type < std::size(kTypes) ? std::string(kTypes[type]) : std::to_string(type)));
    n.type = ChakraType(type);
    if (tagged && (n.type == ChakraType::send || n.type == ChakraType::receive)) n.tag = tag(n, *tagged);
    if (grouped) n.group = grouped->text ? *grouped->text : std::to_string(count(n, *grouped));
    if (n.type == ChakraType::collective) {
      static constexpr std::pair<std::uint64_t, Collective> kCollectives[] = {
          {0, Collective::allreduce}, {2, Collective::allgather},      {5, Collective::broadcast},
          {6, Collective::alltoall},  {7, Collective::reduce_scatter}, {8, Collective::reduce_scatter},
          {9, Collective::barrier}};
      static constexpr std::string_view kNames[] = {"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER"};
      const auto found = std::ranges::find(kCollectives, comm_type, &std::pair<std::uint64_t, Collective>::first);
      if (found == std::end(kCollectives))
        fail(n, fmt::format(
                    "comm_type {}, expected ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER or BARRIER",
                    comm_type == ~0ull              ? "is missing"
                    : comm_type < std::size(kNames) ? std::string(kNames[comm_type])
                                                    : std::to_string(comm_type)));
      n.collective = found->second;
      if (some_dimensions && n.group.empty())
        fail(n,
             "involved_dim leaves out a dimension, of which GCCL knows none; expected pg_name, with its ranks in the "
             "workload's \"communicators\"");
    }
    const bool moves =
        n.type >= ChakraType::send && !(n.type == ChakraType::collective && n.collective == Collective::barrier);
    if (moves && (!sized || n.comm_bytes == 0 || n.comm_bytes > 1ull << 50))
      fail(n, sized ? fmt::format("comm_size {}, expected 1 to 2^50 bytes", n.comm_bytes)
                    : "attribute comm_size is missing");
    if (!moves) n.comm_bytes = 0;  // a barrier's, that some traces state
    if (n.type == ChakraType::send && !n.destination) fail(n, "attribute comm_dst is missing");
    if (n.type == ChakraType::receive && !n.source) fail(n, "attribute comm_src is missing");
    return n;
  }

  std::vector<ChakraNode> in_order(std::vector<ChakraNode> nodes) const {
    std::unordered_map<std::uint64_t, std::size_t> place;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!place.try_emplace(nodes[i].id, i).second) fail(nodes[i], "the id appears twice");
    std::vector<std::vector<std::size_t>> next(nodes.size());
    std::vector<std::size_t> waits(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const std::uint64_t id : nodes[i].after) {
        const auto at = place.find(id);
        if (at == place.end()) fail(nodes[i], fmt::format("depends on node {}, which is not there", id));
        next[at->second].push_back(i);
        ++waits[i];
      }
    using Ready = std::pair<std::uint64_t, std::size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (waits[i] == 0) ready.emplace(nodes[i].id, i);
    std::vector<ChakraNode> sorted;
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t i = ready.top().second;
      ready.pop();
      order.push_back(i);
      for (const std::size_t n : next[i])
        if (--waits[n] == 0) ready.emplace(nodes[n].id, n);
    }
    if (order.size() != nodes.size()) {  // what is left waits for others that are: that way leads into a circle
      const auto left = [&](std::uint64_t id) { return waits[place.at(id)] > 0; };
      std::size_t i = 0;
      while (waits[i] == 0) ++i;
      std::vector<bool> seen(nodes.size());
      for (; !seen[i]; i = place.at(*std::ranges::find_if(nodes[i].after, left))) seen[i] = true;
      fail(nodes[i], "waits for itself, by way of what it depends on");
    }
    for (const std::size_t i : order) sorted.push_back(std::move(nodes[i]));
    return sorted;
  }

  const std::filesystem::path& file_;
  std::string text_;
};

}  // namespace

std::filesystem::path chakra_file(const std::filesystem::path& prefix, Rank rank) {
  return prefix.string() + fmt::format(".{}.et", rank);
}

Rank chakra_ranks(const std::filesystem::path& prefix) {
  std::error_code error;
  Rank n = 0;
  while (std::filesystem::exists(std::filesystem::symlink_status(chakra_file(prefix, n), error))) ++n;
  return n;
}

std::optional<std::filesystem::path> chakra_beyond(const std::filesystem::path& prefix, Rank ranks) {
  const std::string start = prefix.filename().string() + ".", end = ".et";
  const std::filesystem::path folder = prefix.parent_path().empty() ? "." : prefix.parent_path();
  std::optional<std::filesystem::path> first;
  Rank lowest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), none; !error && at != none; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) continue;
    const char* const to = name.data() + name.size() - end.size();
    Rank rank = 0;
    const auto read = std::from_chars(name.data() + start.size(), to, rank);
    if (read.ec != std::errc() || read.ptr != to || rank < ranks || (first && rank >= lowest)) continue;
    first = at->path();
    lowest = rank;
  }
  return first;
}

std::vector<ChakraNode> read_chakra(const std::filesystem::path& file) { return TraceReader(file).nodes(); }

}  // namespace gccl::sim::llm
