// Pickles as Python writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "libgccl/json/pickle.hpp"

namespace gccl::test {

inline std::string bytes_of_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// What pickle.dumps() of Python 3.11 makes of an object whose loading calls os.system.
inline const std::string kEvil = "80025d710063706f7369780a73797374656d0a71015804000000747275657102857103527104612e";

inline void write_value(json::Writer& w, const nlohmann::json& v) {
  switch (v.type()) {
    case nlohmann::json::value_t::boolean: return w.value(v.get<bool>());
    case nlohmann::json::value_t::number_integer: return w.value(v.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned: return w.value(v.get<std::uint64_t>());
    case nlohmann::json::value_t::number_float: return w.value(v.get<double>());
    case nlohmann::json::value_t::string: return w.value(v.get<std::string>());
    case nlohmann::json::value_t::array:
      return w.array([&] {
        for (const nlohmann::json& x : v) write_value(w, x);
      });
    case nlohmann::json::value_t::object:
      return w.object([&] {
        for (auto i = v.begin(); i != v.end(); ++i) {
          w.key(i.key());
          write_value(w, i.value());
        }
      });
    default: return w.null();
  }
}

inline std::string pickle_of(const nlohmann::json& value) {
  std::string out;
  json::PickleWriter w(&out);
  write_value(w, value);
  w.end();
  return out;
}

}  // namespace gccl::test
