// A small judge of JSON documents by a JSON Schema (draft 2020-12): the keywords that GCCL's schemas use, no others.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>

#include "libgccl/json/reader.hpp"

namespace gccl::test {

class JsonSchema {
 public:
  using json = nlohmann::json;
  explicit JsonSchema(json root) : root_(std::move(root)) {}

  bool accepts(const json& value) const { return fits(root_, value); }

 private:
  // Throws std::logic_error on a keyword it does not know: a schema must not promise what is not checked.
  bool fits(const json& s, const json& v) const {
    if (s.is_boolean()) return s.get<bool>();
    static const std::set<std::string> kKnown = {
        "$schema", "$id",   "title",    "description", "$defs",      "$ref",
        "type",    "const", "enum",     "required",    "properties", "additionalProperties",
        "items",   "not",   "minItems", "maxItems",    "minimum",    "exclusiveMinimum",
        "maximum", "anyOf", "oneOf",    "minLength",   "pattern",    "exclusiveMaximum",
        "if",      "then"};
    for (const auto& [key, value] : s.items())
      if (!kKnown.contains(key)) throw std::logic_error("unknown schema keyword " + key);
    if (s.contains("$ref") && !fits(root_.at(json::json_pointer(s["$ref"].get<std::string>().substr(1))), v))
      return false;
    if (s.contains("type") && !typed(s["type"], v)) return false;
    if (s.contains("const") && v != s["const"]) return false;
    if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end()) return false;
    if (v.is_object() && !object_fits(s, v)) return false;
    if (v.is_array()) {
      if (s.contains("minItems") && v.size() < s["minItems"].get<std::size_t>()) return false;
      if (s.contains("maxItems") && v.size() > s["maxItems"].get<std::size_t>()) return false;
      if (s.contains("items"))
        for (const json& item : v)
          if (!fits(s["items"], item)) return false;
    }
    if (v.is_number()) {
      if (s.contains("minimum") && v.get<double>() < s["minimum"].get<double>()) return false;
      if (s.contains("maximum") && v.get<double>() > s["maximum"].get<double>()) return false;
      if (s.contains("exclusiveMinimum") && v.get<double>() <= s["exclusiveMinimum"].get<double>()) return false;
      if (s.contains("exclusiveMaximum") && v.get<double>() >= s["exclusiveMaximum"].get<double>()) return false;
    }
    if (v.is_string()) {
      const std::string text = v.get<std::string>();
      if (s.contains("minLength") && text.size() < s["minLength"].get<std::size_t>()) return false;
      if (s.contains("pattern") && !std::regex_search(text, compiled(s["pattern"].get<std::string>()))) return false;
    }
    if (s.contains("anyOf") && count(s["anyOf"], v) == 0) return false;
    if (s.contains("oneOf") && count(s["oneOf"], v) != 1) return false;
    if (s.contains("not") && fits(s["not"], v)) return false;
    if (s.contains("if") && fits(s["if"], v) && !fits(s["then"], v)) return false;
    return true;
  }

  bool object_fits(const json& s, const json& v) const {
    if (s.contains("required"))
      for (const json& key : s["required"])
        if (!v.contains(key.get<std::string>())) return false;
    for (const auto& [key, value] : v.items()) {
      if (s.contains("properties") && s["properties"].contains(key)) {
        if (!fits(s["properties"][key], value)) return false;
      } else if (s.contains("additionalProperties") && !fits(s["additionalProperties"], value)) {
        return false;
      }
    }
    return true;
  }

  std::size_t count(const json& schemas, const json& v) const {
    return std::size_t(std::count_if(schemas.begin(), schemas.end(), [&](const json& s) { return fits(s, v); }));
  }

  static const std::regex& compiled(const std::string& pattern) {
    static std::map<std::string, std::regex> all;
    const auto found = all.find(pattern);
    return found == all.end() ? all.emplace(pattern, std::regex(pattern)).first->second : found->second;
  }

  static bool typed(const json& type, const json& v) {
    if (type.is_array()) return std::any_of(type.begin(), type.end(), [&](const json& t) { return typed(t, v); });
    const std::string t = type.get<std::string>();
    if (t == "integer") return v.is_number() && std::trunc(v.get<double>()) == v.get<double>();
    return (t == "object" && v.is_object()) || (t == "array" && v.is_array()) || (t == "string" && v.is_string()) ||
           (t == "number" && v.is_number()) || (t == "boolean" && v.is_boolean()) || (t == "null" && v.is_null());
  }

  json root_;
};

// Schema and reader judge the document alike with that value there; returns what the reader says, or "accepted".
template <class Read>
std::string judged_alike(const JsonSchema& schema, nlohmann::json document, const std::string& pointer,
                         const nlohmann::json& value, Read read) {
  document[nlohmann::json::json_pointer(pointer)] = value;
  std::string why = "accepted";
  try {
    read(document);
  } catch (const json::InputError& e) {
    why = e.what();
  }
  CAPTURE(pointer);
  CAPTURE(value.dump());
  CAPTURE(why);
  CHECK(schema.accepts(document) == (why == "accepted"));
  return why;
}

}  // namespace gccl::test
