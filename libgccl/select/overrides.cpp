#include "libgccl/select/overrides.hpp"

#include <fmt/core.h>

#include "gccl/gccl.h"
#include "libgccl/base/nearest.hpp"
#include "libgccl/base/split_text.hpp"

namespace gccl {

std::string Overrides::text() const {
  std::string s;
  for (std::size_t k = 0; k < std::size(by_kind_); ++k)
    if (by_kind_[k]) s += fmt::format("{}{}={}", s.empty() ? "" : ",", name(Collective(k)), by_kind_[k]->name);
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
  for (std::string& name : names) name = trimmed(name);
  return names;
}

Status Overrides::parse(const std::string& text, Overrides* out) {
  const auto wrong = [&](const std::string& what) {
    return Status::error(fmt::format("GCCL_ALGORITHM \"{}\": {}", text, what), GCCL_ERR_INVALID_ARGUMENT);
  };
  for (const std::string& item : split_names(text)) {
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) return wrong(fmt::format("\"{}\" is not COLLECTIVE=ALGORITHM", item));
    const std::string collective(trimmed(std::string_view(item).substr(0, equals))),
        algorithm(trimmed(std::string_view(item).substr(equals + 1)));
    const auto kind = collective_named(collective);
    if (!kind)
      return wrong(
          fmt::format("there is no collective \"{}\"{}", collective, suggestion(collective, collective_names())));
    const Algorithm* a = find_algorithm(*kind, algorithm);
    if (!a)
      return wrong(fmt::format("there is no algorithm \"{}\" for {}{}", algorithm, name(*kind),
                               suggestion(algorithm, algorithm_names(*kind))));
    const Algorithm*& now = out->by_kind_[std::size_t(*kind)];
    if (now && now != a) return wrong(fmt::format("{} and {} for {}: expected one", now->name, a->name, name(*kind)));
    now = a;
  }
  return {};
}

}  // namespace gccl
