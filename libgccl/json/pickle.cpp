#include "libgccl/json/pickle.hpp"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "libgccl/json/reader.hpp"

// The opcodes are those of Python's pickletools.
namespace gccl::json {
namespace {

void little(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(value >> 8 * i & 0xff);
}

struct WrongPickle : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  nlohmann::json read() {
    for (;;) {
      const std::size_t at = at_;
      const auto op = std::uint8_t(take(1)[0]);
      if (op == '.') return document(pop(), 0);
      if (!step(op))
        throw WrongPickle(fmt::format("byte {}: opcode {} {}", at, op,
                                      calls(op) ? "would run code, which no dump needs" : "is none of plain data"));
    }
  }

 private:
  // Values point to others, since a pickle may fill a list after it has named it a second time.
  struct Value {
    enum class Kind : std::uint8_t { scalar, list, dictionary } kind = Kind::scalar;
    nlohmann::json scalar;
    std::vector<std::size_t> parts;  // of a dictionary: key, value, key, ...
  };
  static constexpr std::size_t kMark = ~std::size_t(0);
  static constexpr std::size_t kValuesMax = 20'000'000;
  static constexpr std::size_t kTextMax = std::size_t(256) << 20;  // each time that it stands somewhere
  static constexpr int kDepthMax = 100;

  static bool calls(std::uint8_t op) {
    return (op != 0 && std::strchr("cRioPQb", op)) || op == 0x81 || op == 0x92 || op == 0x93;
  }

  std::string_view take(std::size_t n) {
    if (n > bytes_.size() - at_) throw WrongPickle(fmt::format("byte {}: it ends in the middle", at_));
    const std::string_view v = bytes_.substr(at_, n);
    at_ += n;
    return v;
  }
  std::uint64_t number(int bytes) {
    std::uint64_t v = 0;
    const std::string_view from = take(std::size_t(bytes));
    for (int i = 0; i < bytes; ++i) v |= std::uint64_t(std::uint8_t(from[std::size_t(i)])) << 8 * i;
    return v;
  }
  void push(Value v) {
    if (values_.size() >= kValuesMax) throw WrongPickle("it has more than 20 million values");
    stack_.push_back(values_.size());
    values_.push_back(std::move(v));
  }
  void scalar(nlohmann::json v) { push({.kind = Value::Kind::scalar, .scalar = std::move(v), .parts = {}}); }
  std::size_t top() const {
    if (stack_.empty() || stack_.back() == kMark) throw WrongPickle(fmt::format("byte {}: nothing to work on", at_));
    return stack_.back();
  }
  std::size_t pop() {
    const std::size_t v = top();
    stack_.pop_back();
    return v;
  }
  std::vector<std::size_t> to_mark() {
    std::size_t i = stack_.size();
    while (i > 0 && stack_[i - 1] != kMark) --i;
    if (i == 0) throw WrongPickle(fmt::format("byte {}: no mark", at_));
    std::vector<std::size_t> parts(stack_.begin() + std::ptrdiff_t(i), stack_.end());
    stack_.resize(i - 1);
    return parts;
  }
  void list(std::vector<std::size_t> parts) {
    push({.kind = Value::Kind::list, .scalar = {}, .parts = std::move(parts)});
  }
  void last(std::size_t n) {
    std::vector<std::size_t> parts(n);
    for (std::size_t i = n; i-- > 0;) parts[i] = pop();
    list(std::move(parts));
  }
  void extend(Value::Kind kind, const std::vector<std::size_t>& parts) {
    Value& v = values_[top()];
    if (v.kind != kind || (kind == Value::Kind::dictionary && parts.size() % 2 != 0))
      throw WrongPickle(fmt::format("byte {}: it adds to what it cannot add to", at_));
    v.parts.insert(v.parts.end(), parts.begin(), parts.end());
  }
  void text(std::size_t n) { scalar(valid_text(std::string(take(n)))); }
  void remember(std::uint64_t as) { memo_[as] = top(); }
  void recall(std::uint64_t as) {
    const auto found = memo_.find(as);
    if (found == memo_.end()) throw WrongPickle(fmt::format("byte {}: it recalls what it has not kept", at_));
    stack_.push_back(found->second);
  }
  void whole(std::size_t n) {  // two's complement
    const std::string_view b = take(n);
    std::uint64_t v = !b.empty() && std::int8_t(b.back()) < 0 ? ~std::uint64_t(0) : 0;
    for (std::size_t i = std::min<std::size_t>(n, 8); i-- > 0;) v = v << 8 | std::uint8_t(b[i]);
    if (n == 9 && b[8] == 0)
      scalar(v);
    else if (n > 8)
      throw WrongPickle(fmt::format("byte {}: a number of more than 64 bits", at_));
    else
      scalar(std::int64_t(v));
  }

  bool step(std::uint8_t op) {
    switch (op) {
      case 0x80: take(1); return true;                 // PROTO
      case 0x95: take(8); return true;                 // FRAME
      case '(': stack_.push_back(kMark); return true;  // MARK
      case '0': pop(); return true;                    // POP
      case '1': to_mark(); return true;                // POP_MARK
      case '2': stack_.push_back(top()); return true;  // DUP
      case 'N': scalar(nullptr); return true;          // NONE
      case 0x88: scalar(true); return true;            // NEWTRUE
      case 0x89: scalar(false); return true;           // NEWFALSE
      case 'J': scalar(std::int64_t(std::int32_t(number(4)))); return true;
      case 'K': scalar(number(1)); return true;
      case 'M': scalar(number(2)); return true;
      case 0x8a: whole(number(1)); return true;  // LONG1
      case 0x8b: whole(number(4)); return true;  // LONG4
      case 'G': {                                // BINFLOAT
        std::uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | std::uint8_t(c);
        // As a JSON document would have what is no number.
        const auto number = std::bit_cast<double>(bits);
        scalar(std::isfinite(number) ? nlohmann::json(number) : nlohmann::json());
        return true;
      }
      case 'X':                                 // BINUNICODE
      case 'T':                                 // BINSTRING
      case 'B': text(number(4)); return true;   // BINBYTES
      case 0x8c:                                // SHORT_BINUNICODE
      case 'U':                                 // SHORT_BINSTRING
      case 'C': text(number(1)); return true;   // SHORT_BINBYTES
      case 0x8d:                                // BINUNICODE8
      case 0x8e: text(number(8)); return true;  // BINBYTES8
      case ']':                                 // EMPTY_LIST
      case ')':                                 // EMPTY_TUPLE
      case 0x8f: list({}); return true;         // EMPTY_SET
      case 'l':                                 // LIST
      case 't':                                 // TUPLE
      case 0x91: list(to_mark()); return true;  // FROZENSET
      case 0x85: last(1); return true;          // TUPLE1
      case 0x86: last(2); return true;          // TUPLE2
      case 0x87: last(3); return true;          // TUPLE3
      case 'a': {                               // APPEND
        const std::size_t v = pop();
        extend(Value::Kind::list, {v});
        return true;
      }
      case 'e':     // APPENDS
      case 0x90: {  // ADDITEMS
        const auto parts = to_mark();
        extend(Value::Kind::list, parts);
        return true;
      }
      case '}': push({.kind = Value::Kind::dictionary, .scalar = {}, .parts = {}}); return true;
      case 'd': push({.kind = Value::Kind::dictionary, .scalar = {}, .parts = to_mark()}); return true;
      case 's': {  // SETITEM
        const std::size_t v = pop(), k = pop();
        extend(Value::Kind::dictionary, {k, v});
        return true;
      }
      case 'u': {  // SETITEMS
        const auto parts = to_mark();
        extend(Value::Kind::dictionary, parts);
        return true;
      }
      case 'q': remember(number(1)); return true;      // BINPUT
      case 'r': remember(number(4)); return true;      // LONG_BINPUT
      case 0x94: remember(memo_.size()); return true;  // MEMOIZE
      case 'h': recall(number(1)); return true;        // BINGET
      case 'j': recall(number(4)); return true;        // LONG_BINGET
      default: return false;
    }
  }

  nlohmann::json document(std::size_t of, int depth) {
    if (depth > kDepthMax) throw WrongPickle(fmt::format("its values are nested deeper than {}", kDepthMax));
    if (++made_ > kValuesMax) throw WrongPickle("it has more than 20 million values");
    const Value& v = values_[of];
    if (v.kind == Value::Kind::scalar) {
      if (v.scalar.is_string()) text_ += v.scalar.get_ref<const std::string&>().size();
      if (text_ > kTextMax) throw WrongPickle("its texts have more than 256 MiB");
      return v.scalar;
    }
    nlohmann::json out = v.kind == Value::Kind::list ? nlohmann::json::array() : nlohmann::json::object();
    if (v.kind == Value::Kind::list) {
      for (const std::size_t p : v.parts) out.push_back(document(p, depth + 1));
      return out;
    }
    if (v.parts.size() % 2 != 0) throw WrongPickle("a dictionary with a key alone");
    for (std::size_t i = 0; i < v.parts.size(); i += 2) {
      const nlohmann::json key = document(v.parts[i], depth + 1);
      std::string name = key.is_string() ? key.get<std::string>() : format_value(key);
      if (!out.emplace(std::move(name), document(v.parts[i + 1], depth + 1)).second)
        throw WrongPickle("a dictionary has a key twice, or two that are one text");
    }
    return out;
  }

  const std::string_view bytes_;
  std::size_t at_ = 0, made_ = 0, text_ = 0;
  std::vector<Value> values_;
  std::vector<std::size_t> stack_;
  std::map<std::uint64_t, std::size_t> memo_;
};

}  // namespace

PickleWriter::PickleWriter(std::string* out) : Writer(out) { out_ += "\x80\x02"; }

void PickleWriter::open(char bracket) { out_ += bracket == '{' ? "}(" : "]("; }

void PickleWriter::close(char bracket) { out_ += bracket == '}' ? 'u' : 'e'; }

void PickleWriter::real(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  out_ += 'G';
  for (int i = 7; i >= 0; --i) out_ += char(bits >> 8 * i & 0xff);
}

void PickleWriter::whole(std::int64_t v) {
  if (v >= INT32_MIN && v <= INT32_MAX) {
    out_ += 'J';
    return little(out_, std::uint64_t(v), 4);
  }
  out_ += "\x8a\x08";
  little(out_, std::uint64_t(v), 8);
}

void PickleWriter::natural(std::uint64_t v) {
  if (v <= std::uint64_t(INT64_MAX)) return whole(std::int64_t(v));
  out_ += "\x8a\x09";
  little(out_, v, 8);
  out_ += '\0';
}

void PickleWriter::text(std::string_view v) {
  out_ += 'X';
  little(out_, v.size(), 4);
  out_ += v;
}

bool from_pickle(std::string_view bytes, nlohmann::json* out, std::string* error) {
  try {
    *out = Reader(bytes).read();
    return true;
  } catch (const WrongPickle& wrong) {
    *error = wrong.what();
    return false;
  }
}

}  // namespace gccl::json
