#include "libgccl/json/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "libgccl/base/control_characters.hpp"
#include "libgccl/base/regular_file.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl::json {
namespace {

using nlohmann::json;

std::string escape(std::string_view key) {  // RFC 6901
  std::string out;
  for (char c : key.substr(0, 80)) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += '?';
    else
      out += c;
  }
  return out;
}

std::string shown(const json& v) {
  std::string text = format_value(v);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// 4.0 or 1e6, as many programs write whole numbers, and JSON Schema has them; those that a double has for certain.
bool is_whole(const json& v) {
  return v.is_number_float() && std::abs(v.get<double>()) < 0x1p53 && v.get<double>() == std::floor(v.get<double>());
}

std::string line_and_column(std::string_view text, std::size_t at) {
  at = std::min(at ? at - 1 : 0, text.size());
  const auto line = std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n') + 1;
  const auto start = at ? text.rfind('\n', at - 1) : std::string_view::npos;
  return fmt::format("line {}, column {}", line, at - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

// What the parser found and what it expected: "unexpected '}'; expected string literal"; without what it read last, of
// which the file's own place says more.
std::string wrong_syntax(std::string_view text) {
  const std::size_t at = text.find(" - "), end = text.find("; last read: ");
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + 3;
  if (end == std::string_view::npos || end < begin) return fmt::format(": {}", text.substr(begin));
  const std::size_t expected = text.rfind("'; expected ");
  return fmt::format(": {}{}", text.substr(begin, end - begin),
                     expected == std::string_view::npos || expected < end ? "" : text.substr(expected + 1));
}

// Refuses what json::parse lets pass, deep nesting and repeated keys, and says where a text is no JSON. A pass of its
// own: json::parse with a callback takes a time that grows with the square of an array's length.
class Strict : public json::json_sax_t {
 public:
  Strict(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!open_.back().keys.insert(name).second) {
      open_.pop_back();
      fail(fmt::format("key \"{}\" appears twice in one object", escape(name)));
    }
    open_.back().key = name;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const json::exception& e) override {
    const bool number = dynamic_cast<const json::out_of_range*>(&e) != nullptr;
    throw InputError(fmt::format("{}: {} at {}{}", file_, number ? "a number is out of range" : "not valid JSON",
                                 line_and_column(text_, at), number ? "" : wrong_syntax(e.what())));
  }

 private:
  struct Level {
    bool object;
    std::string key;     // of an object: the last one
    std::size_t values;  // of an array: so far
    std::unordered_set<std::string> keys;
  };

  bool value() {
    if (!open_.empty()) ++open_.back().values;
    return true;
  }
  bool open(bool object) {
    value();
    if (open_.size() == std::size_t(kDepthMax)) fail(fmt::format("nested deeper than {} levels", kDepthMax));
    open_.push_back({object, "", 0, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    std::string pointer;
    for (const Level& l : open_)
      pointer += l.object ? fmt::format("/{}", escape(l.key)) : fmt::format("/{}", l.values - 1);
    throw InputError(fmt::format("{}: {}: {}", file_, pointer.empty() ? "/" : pointer, what));
  }

  std::string_view text_;
  std::string file_;
  std::vector<Level> open_;
};

}  // namespace

struct Node::Document {
  std::filesystem::path file;
  json root;
};

std::string read_text(const std::filesystem::path& file) {
  std::string text;
  if (const Status s = read_regular_file(file.string(), kFileBytesMax, &text); !s.ok()) throw InputError(s.text());
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw InputError(fmt::format("{}: found UTF-16, as PowerShell's > writes it; expected UTF-8", file.string()));
  return text;
}

Node Node::load(const std::filesystem::path& file) { return parse(read_text(file), file); }

Node Node::parse(std::string_view text, const std::filesystem::path& file) {
  auto document = std::make_shared<Document>();
  document->file = file;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError(fmt::format("{}: is empty, expected JSON", file.string()));
  if (text[first] == '<')
    throw InputError(
        fmt::format("{}: found XML, expected JSON{}", file.string(),
                    text.find("<system") == std::string_view::npos
                        ? ""
                        : "; NCCL's topology XML is read by GCCL_Topology_load and TopologyBuilder alone"));
  Strict strict(text, file.string());
  json::sax_parse(text.begin(), text.end(), &strict);
  document->root = json::parse(text.begin(), text.end());
  const json* root = &document->root;
  return Node(std::move(document), root, "");
}

Node Node::of(json value, const std::filesystem::path& file) {
  auto document = std::make_shared<Document>(Document{file, std::move(value)});
  const json* root = &document->root;
  return Node(std::move(document), root, "");
}

const std::filesystem::path& Node::file() const { return document_->file; }

bool Node::is_object() const { return value_->is_object(); }
bool Node::is_array() const { return value_->is_array(); }
bool Node::is_string() const { return value_->is_string(); }
bool Node::is_number() const { return value_->is_number(); }

void Node::fail(std::string_view what) const {
  throw InputError(fmt::format("{}: {}: {}", file().string(), pointer_.empty() ? "/" : pointer_, what));
}

void Node::allow(std::span<const std::string_view> keys, std::span<const std::string_view> earlier) const {
  if (!is_object()) fail(fmt::format("found {}, expected an object", shown(*value_)));
  for (const auto& [key, value] : value_->items()) {
    const auto is_in = [](auto names, std::string_view name) { return std::ranges::find(names, name) != names.end(); };
    if (is_in(keys, key) || is_in(earlier, key)) continue;
    fail(fmt::format("unknown key \"{}\"{}", escape(key), suggestion(key, keys)));
  }
}

std::optional<Node> Node::find(std::string_view key) const {
  if (!is_object()) fail(fmt::format("found {}, expected an object", shown(*value_)));
  const auto it = value_->find(std::string(key));
  if (it == value_->end()) return std::nullopt;
  return Node(document_, &*it, fmt::format("{}/{}", pointer_, escape(key)));
}

Node Node::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  fail(fmt::format("key \"{}\" is missing", key));
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  if (!is_object()) fail(fmt::format("found {}, expected an object", shown(*value_)));
  std::vector<std::pair<std::string, Node>> all;
  for (const auto& [key, value] : value_->items())
    all.emplace_back(key, Node(document_, &value, fmt::format("{}/{}", pointer_, escape(key))));
  return all;
}

void Node::schema(std::string_view expected) const {
  const Node s = at("schema");
  if (const auto editors = find("$schema")) editors->string();
  if (s.string() != expected) s.fail(fmt::format("found {}, expected \"{}\"", shown(s.raw()), expected));
}

std::string Node::text() const { return shown(*value_); }

bool Node::contains(const std::string& pointer) const {
  try {
    return value_->contains(nlohmann::json::json_pointer(pointer));
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::vector<Node> Node::items(std::size_t least, std::size_t most) const {
  if (!is_array()) fail(fmt::format("found {}, expected an array", shown(*value_)));
  const std::size_t n = value_->size();
  if (n < least) fail(fmt::format("has {} elements, expected at least {}", n, least));
  if (n > most) fail(fmt::format("has {} elements, expected at most {}", n, most));
  std::vector<Node> all;
  all.reserve(n);
  for (std::size_t i = 0; i < n; ++i) all.push_back(Node(document_, &(*value_)[i], fmt::format("{}/{}", pointer_, i)));
  return all;
}

std::string Node::string() const {
  if (!is_string()) fail(fmt::format("found {}, expected a string", shown(*value_)));
  return value_->get<std::string>();
}

bool Node::boolean() const {
  if (!value_->is_boolean()) fail(fmt::format("found {}, expected true or false", shown(*value_)));
  return value_->get<bool>();
}

std::int64_t Node::integer(std::int64_t least, std::int64_t most) const {
  const auto wrong = [&] {
    fail(fmt::format("found {}, expected an integer from {} to {}{}", shown(*value_), least, most,
                     value_->is_number_float() && std::abs(value_->get<double>()) >= 0x1p53
                         ? ", from 2^53 on without point or exponent"
                         : ""));
  };
  std::int64_t v = 0;
  if (value_->is_number_unsigned()) {
    if (value_->get<std::uint64_t>() > std::uint64_t(INT64_MAX)) wrong();
    v = value_->get<std::int64_t>();
  } else if (value_->is_number_integer()) {
    v = value_->get<std::int64_t>();
  } else if (is_whole(*value_)) {
    v = std::int64_t(value_->get<double>());
  } else {
    wrong();
  }
  if (v < least || v > most) wrong();
  return v;
}

double Node::number(double least, double most) const {
  const double v = is_number() ? value_->get<double>() : NAN;
  if (!(v >= least && v <= most))
    fail(fmt::format("found {}, expected a number from {} to {}", shown(*value_), least, most));
  return v;
}

std::uint64_t Node::bytes(std::uint64_t most) const {
  std::optional<double> v;
  if (is_string())
    v = size_of_text(value_->get_ref<const std::string&>());
  else if (value_->is_number_unsigned() || (value_->is_number() && value_->get<double>() >= kSizesEnd) ||
           (is_whole(*value_) && value_->get<double>() >= 0))
    v = value_->get<double>();
  if (!v) fail(fmt::format("found {}, expected a size in bytes such as 1048576 or \"1MiB\"", shown(*value_)));
  const std::uint64_t bytes = *v >= kSizesEnd                ? UINT64_MAX
                              : value_->is_number_unsigned() ? value_->get<std::uint64_t>()
                                                             : std::uint64_t(std::llround(*v));
  if (bytes > most) fail(fmt::format("found {}, expected at most {}", shown(*value_), format_bytes(most)));
  return bytes;
}

std::int64_t Node::nanos(double unit_ns) const {
  std::optional<double> ns;
  if (is_string())
    ns = time_of_text(value_->get_ref<const std::string&>());
  else if (is_number())
    ns = value_->get<double>() * unit_ns;
  if (!ns || !(*ns >= 0))
    fail(fmt::format("found {}, expected a time of at least 0 such as 5 or \"5ms\"", shown(*value_)));
  if (*ns >= kTimesEnd) fail(fmt::format("found {}, expected a time below 9e9 s (285 years)", shown(*value_)));
  return std::llround(*ns);
}

std::size_t Node::one_of(std::span<const std::string_view> names) const {
  const std::string found = string();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == found) return i;
  fail(fmt::format("found {}{}", shown(*value_), suggestion(found, names)));
}

std::filesystem::path Node::path() const {
  const std::string name = string();
  if (name.empty()) fail("found an empty string, expected a file name");
  if (name.find('\0') != std::string::npos) fail("a file name cannot hold a zero byte");
  return (file().parent_path() / name).lexically_normal();
}

std::string format_bytes(double bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t u = 0;
  while (bytes >= 1024 && u + 1 < std::size(kUnits)) bytes /= 1024, ++u;
  return fmt::format("{:.4g} {}", bytes, kUnits[u]);
}

std::string valid_text(const std::string& text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return text;
  return json::parse(format_value(text)).get<std::string>();
}

void replace_control(nlohmann::json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    text = without_control(text, '?');
  }
  if (value.is_structured())
    for (nlohmann::json& part : value) replace_control(part);
}

std::string format_value(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gccl::json
