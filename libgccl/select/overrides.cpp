#include "libgccl/select/overrides.hpp"

#include "gccl/gccl.h"
#include "libgccl/base/nearest.hpp"

namespace gccl {

std::string Overrides::text() const {
  std::string s;
  for (std::size_t k = 0; k < std::size(by_kind_); ++k)
    if (by_kind_[k])
      s += (s.empty() ? "" : ",") + std::string(name(Collective(k))) + "=" + std::string(by_kind_[k]->name);
  return s;
}

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

Status Overrides::parse(const std::string& text, Overrides* out) {
  const auto wrong = [&](const std::string& what) {
    return Status::error("GCCL_ALGORITHM \"" + text + "\": " + what, GCCL_ERR_INVALID_ARGUMENT);
  };
  for (const std::string& item : split_names(text)) {
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) return wrong("\"" + item + "\" is not COLLECTIVE=ALGORITHM");
    const auto kind = collective_named(item.substr(0, equals));
    if (!kind)
      return wrong("there is no collective \"" + item.substr(0, equals) + "\"" +
                   suggestion(item.substr(0, equals), collective_names()));
    const Algorithm* a = find_algorithm(*kind, item.substr(equals + 1));
    if (!a)
      return wrong("there is no algorithm \"" + item.substr(equals + 1) + "\" for " + std::string(name(*kind)) +
                   suggestion(item.substr(equals + 1), algorithm_names(*kind)));
    out->by_kind_[std::size_t(*kind)] = a;
  }
  return {};
}

}  // namespace gccl
