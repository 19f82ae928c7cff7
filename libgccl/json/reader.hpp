// Reading JSON files so that every mistake is reported with its file, its JSON pointer and what was expected.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "libgccl/base/units.hpp"

namespace gccl::json {

// Wrong input: exit code 2. what() is one line: "FILE: /json/pointer: found, expected".
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::uint64_t kFileBytesMax = 64ull << 20;
constexpr int kDepthMax = 64;

// A whole regular file, of at most kFileBytesMax and not in UTF-16. Throws InputError.
std::string read_text(const std::filesystem::path& file);

// One value of a document and where it is. Cheap to copy; keeps the document alive.
class Node {
 public:
  // Reads and parses a file: at most kFileBytesMax, at most kDepthMax deep, no key twice in one object.
  static Node load(const std::filesystem::path& file);
  // The same for text that is not in a file; `file` is the name used in messages and for relative references.
  static Node parse(std::string_view text, const std::filesystem::path& file);
  // The same for a value that is there, not nested much deeper than kDepthMax.
  static Node of(nlohmann::json value, const std::filesystem::path& file);

  const std::filesystem::path& file() const;
  std::string pointer() const { return pointer_; }
  const nlohmann::json& raw() const { return *value_; }

  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;

  // Objects. allow: throws on the first key that is not listed, with the nearest listed one; `earlier` names of keys
  // are taken too, and not named.
  void allow(std::span<const std::string_view> keys, std::span<const std::string_view> earlier = {}) const;
  void allow(std::initializer_list<std::string_view> keys, std::initializer_list<std::string_view> earlier = {}) const {
    allow(std::span(keys.begin(), keys.size()), std::span(earlier.begin(), earlier.size()));
  }
  Node at(std::string_view key) const;                   // required
  std::optional<Node> find(std::string_view key) const;  // absent is fine; null is not
  bool has(std::string_view key) const { return find(key).has_value(); }
  std::vector<std::pair<std::string, Node>> members() const;
  // Requires "schema" to be exactly this, such as "gccl/scenario/1". "$schema", which editors look at, is a text.
  void schema(std::string_view expected) const;

  // Arrays, with bounds on their length.
  std::vector<Node> items(std::size_t least = 0, std::size_t most = 1u << 20) const;

  // Scalars; each throws when the type or the range is wrong.
  std::string string() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  double number(double least, double most) const;
  std::uint64_t bytes(std::uint64_t most = 1ull << 50) const;  // 64, "64", "64KiB", "1.5GB", ...
  std::int64_t nanos(double unit_ns) const;                    // 5 (in the field's own unit) or "5ms"; at least 0
  std::size_t one_of(std::span<const std::string_view> names) const;  // index of the name
  // A file named relative to the one that holds the name. It need not exist.
  std::filesystem::path path() const;

  std::string text() const;                         // the value as JSON, cut where it is long
  bool contains(const std::string& pointer) const;  // a valid JSON pointer to a value below this one

  [[noreturn]] void fail(std::string_view what) const;

 private:
  struct Document;
  Node(std::shared_ptr<const Document> d, const nlohmann::json* v, std::string p)
      : document_(std::move(d)), value_(v), pointer_(std::move(p)) {}
  std::shared_ptr<const Document> document_;
  const nlohmann::json* value_;
  std::string pointer_;
};

using gccl::parse_bytes;
using gccl::parse_nanos;
// 1048576 to "1 MiB", exact where it is whole, else with three digits.
std::string format_bytes(double bytes);
// A text with what is no UTF-8 in it replaced: the name of a file, say, which a document shall hold.
std::string valid_text(const std::string& text);
// Replaces control characters in all its texts: a label or a note with a line end would tear a table apart.
void replace_control(nlohmann::json& value);
// On one line, or indented by so much a level; what is no UTF-8 is replaced.
std::string format_value(const nlohmann::json& value, int indent = -1);

}  // namespace gccl::json
