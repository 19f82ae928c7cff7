#include "sim/tuning/segments.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

Collective kind_of(const Json& cell) { return *collective_named(cell.at("collective").get<std::string>()); }

std::optional<Counterpart> find_counterpart(const Json& cell, const Json& tried, Library library) {
  const Algorithm* a = find_algorithm(kind_of(cell), tried.at("algorithm").get<std::string>());
  if (!a) return std::nullopt;
  const Json& protocol = tried.at("protocol");
  return counterpart(library, *a,
                     {.ranks = cell.at("ranks"),
                      .nodes = cell.at("nodes"),
                      .protocol = protocol.is_string() ? protocol.get_ref<const std::string&>() : std::string_view(),
                      .chunks = tried.at("chunks")});
}

// What of a plan a file says.
Json said(const Segment& s, std::optional<Library> library) {
  if (!s.tried) return nullptr;
  if (s.as_good) return "its own choice";
  Json all = Json::array({s.tried->at("algorithm")});
  if (!library || library == Library::nccl) all.push_back(s.tried->at("protocol"));
  if (!library) all.push_back(s.tried->at("channels"));
  if (!library || s.tried->at("chunks") == 1) all.push_back(s.tried->at("chunks"));
  return all;
}

// Plans that take no longer than this times the fastest are as good.
constexpr double kAsGood = 1.02;

// Of plans as good as the fastest the one that does best at the sizes beside: some are fast at a size by luck, and far
// behind at the next. At sizes of the sweep itself, which somebody has asked for, the fastest.
const Json* steadiest(const Json& cell, std::initializer_list<const Json*> beside, std::optional<Library> library) {
  const Json* best = fastest(cell, library);
  if (!best || !cell.contains("tried") || cell.contains("bisection")) return best;
  const double most_us = kAsGood * best->at("time_us").get<double>();
  double least = HUGE_VAL;
  for (const Json& t : cell.at("tried")) {
    if (t.at("time_us").get<double>() > most_us) break;  // they are sorted
    if (library && !find_counterpart(cell, t, *library)) continue;
    double worst = 1;
    for (const Json* other : beside)
      if (other) worst = std::max(worst, behind(t, *other, library));
    if (worst < least) least = worst, best = &t;
  }
  return best;
}

// From which size on files speak of calls. Between the sizes of a sweep they rest on ones at most twice apart, and the
// smallest is taken to be no further from those below it; to be as all below it, where latency alone decides there.
Count first_size(Collective kind, Rank ranks, Count smallest) {
  constexpr Count kLatencyBytes = 64, kLatencyBlockBytes = 4;
  const Count from = smallest / 2;
  return from <= std::max(kLatencyBytes, counts_blocks(kind) ? kLatencyBlockBytes * ranks : 0) ? 0 : from;
}

}  // namespace

bool alike(const Json& a, const Json& b, std::initializer_list<const char*> in) {
  return std::ranges::all_of(in, [&](const char* key) { return a.at(key) == b.at(key); });
}

double behind(const Json& plan, const Json& cell, std::optional<Library> library) {
  const Json* const best = cell.contains("tried") ? fastest(cell, library) : nullptr;
  if (!best) return HUGE_VAL;
  for (const Json& t : cell.at("tried"))
    if (alike(t, plan, {"algorithm", "protocol", "chunks", "channels"}))
      return t.at("time_us").get<double>() / best->at("time_us").get<double>();
  return HUGE_VAL;
}

const Json* fastest(const Json& cell, std::optional<Library> library) {
  for (const char* const times : {"estimated", "tried"})
    if (const auto at = cell.find(times); at != cell.end())
      for (const Json& t : *at)
        if (!library || find_counterpart(cell, t, *library)) return &t;
  return nullptr;
}

const Json* exported(const Json& cell, Library library, const Exporting& how) {
  const Json* const best = fastest(cell, library);
  if (!best || as_good(cell, *best, library, how.gain_percent)) return nullptr;
  return how.operations == Operations::any && counterpart_of(cell, *best, library).commuting ? nullptr : best;
}

const Json* as_good(const Json& cell, const Json& named, Library library, double gain_percent) {
  if (library != Library::openmpi || !cell.contains("openmpi")) return nullptr;
  const Json& at = cell.at("openmpi").at("tried");
  if (!at.is_number_unsigned()) return nullptr;
  const Json& own = cell.at(cell.contains("tried") ? "tried" : "estimated").at(at.get<std::size_t>());
  const double own_us = own.at("time_us"), named_us = named.at("time_us");
  return own_us < named_us || (gain_percent > 0 && own_us <= named_us * (1 + gain_percent / 100)) ? &own : nullptr;
}

Counterpart counterpart_of(const Json& cell, const Json& tried, Library library) {
  return find_counterpart(cell, tried, library).value();
}

std::vector<TunedCalls> tuned_calls(const Json& document, std::optional<Library> library, double gain_percent) {
  std::map<std::pair<Collective, Rank>, std::map<Count, const Json*>> cells;
  const auto add = [&](const Json& cell) {
    cells[{kind_of(cell), cell.at("ranks").get<Rank>()}][cell.at("bytes").get<Count>()] = &cell;
  };
  for (const char* const places : {"cells", "between", "missing"})
    for (const Json& place : document.at(places)) add(place);
  std::vector<TunedCalls> all;
  for (const auto& [call, by_size] : cells) {
    if (std::ranges::none_of(by_size, [](const auto& at) { return fastest(*at.second, std::nullopt); })) continue;
    TunedCalls t{.kind = call.first,
                 .ranks = call.second,
                 .nodes = by_size.begin()->second->at("nodes").get<Rank>(),
                 .segments = {}};
    if (const Count from = first_size(t.kind, t.ranks, by_size.begin()->first); from > 0)
      t.segments.push_back({.from = 0, .to = from});
    for (auto at = by_size.begin(); at != by_size.end(); ++at) {
      const auto next = std::next(at);
      const Json* const below = at == by_size.begin() ? nullptr : std::prev(at)->second;
      const Json* const above = next == by_size.end() ? nullptr : next->second;
      const Json* const tried = steadiest(*at->second, {below, above}, library);
      Segment s{
          .from = t.segments.empty() ? 0 : t.segments.back().to,
          .to = next == by_size.end() ? at->first + 1
                                      : Count(std::ceil(std::sqrt(double(at->first) * double(next->first)))),
          .tried = tried,
          .cell = at->second,
          .as_good = tried && library && as_good(*at->second, *fastest(*at->second, library), *library, gain_percent)};
      if (next != by_size.end()) s.to = std::clamp(s.to, at->first + 1, next->first);
      if (!t.segments.empty() && said(t.segments.back(), library) == said(s, library))
        t.segments.back().to = s.to;
      else
        t.segments.push_back(s);
    }
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace gccl::sim
