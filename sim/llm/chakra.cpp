#include "sim/llm/chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <queue>
#include <unordered_map>

#include "libgccl/json/reader.hpp"

namespace gccl::sim::llm {
namespace {

constexpr std::uint64_t kTraceBytesMax = 1ull << 30;

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

// AttributeProto: a name and one of many kinds of values.
struct Attribute {
  std::string name, text;
  double number = 0;
  std::uint64_t integer = 0;
};
Attribute read_attribute(Wire w) {
  Attribute a;
  while (w.more()) switch (w.field()) {
      case 1: a.name = w.bytes().text(); break;
      case 3:
      case 5: a.number = w.real(), a.integer = a.number > 0 && a.number < 1e19 ? std::uint64_t(a.number) : 0; break;
      case 7:
      case 9:
      case 11:
      case 13:
      case 19:
      case 21:
      case 23:
      case 25:
      case 27:
        a.integer = w.integer();
        a.number = double(a.integer);
        break;
      case 15:
      case 17: {  // zigzag
        const std::uint64_t v = w.integer();
        a.integer = (v >> 1) ^ (~(v & 1) + 1);
        a.number = double(std::int64_t(a.integer));
        break;
      }
      case 29: a.text = w.bytes().text(); break;
      default: w.skip();
    }
  return a;
}

class TraceReader {
 public:
  TraceReader(const std::filesystem::path& file, Rank rank) : file_(file), rank_(rank) {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    if (!in) throw json::InputError(fmt::format("{}: cannot be read", file.string()));
    const auto size = std::uint64_t(in.tellg());
    if (size > kTraceBytesMax)
      throw json::InputError(fmt::format("{}: has {} bytes, expected at most {}", file.string(), size, kTraceBytesMax));
    in.seekg(0);
    text_.assign(std::istreambuf_iterator<char>(in), {});
  }

  std::vector<ChakraNode> nodes() {
    Wire all(text_, file_);
    if (!all.more()) all.fail("is empty, expected a Chakra trace");
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

  ChakraNode node(Wire w) {
    ChakraNode n;
    std::uint64_t type = 0, comm_type = ~0ull;
    bool sized = false;
    n.source = rank_;
    n.destination = rank_;
    while (w.more()) switch (w.field()) {
        case 1: n.id = w.integer(); break;
        case 2: n.name = w.bytes().text(); break;
        case 3: type = w.integer(); break;
        case 4:
        case 5: w.integers(n.after); break;
        case 7: n.duration_us = double(w.integer()); break;
        case 10: {
          const Attribute a = read_attribute(w.bytes());
          if (a.name == "is_cpu_op") n.host = a.integer != 0;
          if (a.name == "num_ops") n.operations = a.number;
          if (a.name == "tensor_size") n.bytes = a.number;
          if (a.name == "comm_type") comm_type = a.integer;
          if (a.name == "comm_size") n.comm_bytes = a.integer, sized = true;
          if (a.name == "comm_src") n.source = Rank(a.integer);
          if (a.name == "comm_dst") n.destination = Rank(a.integer);
          if (a.name == "comm_tag") n.tag = a.integer;
          if (a.name == "pg_name") n.group = a.text.empty() ? std::to_string(a.integer) : a.text;
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
    }
    const bool moves =
        n.type >= ChakraType::send && !(n.type == ChakraType::collective && n.collective == Collective::barrier);
    if (moves && (!sized || n.comm_bytes == 0 || n.comm_bytes > 1ull << 50))
      fail(n, sized ? fmt::format("comm_size {}, expected 1 to 2^50 bytes", n.comm_bytes)
                    : "attribute comm_size is missing");
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
    if (order.size() != nodes.size())
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if (waits[i] > 0) fail(nodes[i], "waits for itself, by way of what it depends on");
    for (const std::size_t i : order) sorted.push_back(std::move(nodes[i]));
    return sorted;
  }

  const std::filesystem::path& file_;
  const Rank rank_;
  std::string text_;
};

}  // namespace

std::filesystem::path chakra_file(const std::filesystem::path& prefix, Rank rank) {
  return prefix.string() + fmt::format(".{}.et", rank);
}

Rank chakra_ranks(const std::filesystem::path& prefix) {
  std::error_code error;
  Rank n = 0;
  while (std::filesystem::exists(chakra_file(prefix, n), error)) ++n;
  return n;
}

std::vector<ChakraNode> read_chakra(const std::filesystem::path& file, Rank rank) {
  return TraceReader(file, rank).nodes();
}

}  // namespace gccl::sim::llm
