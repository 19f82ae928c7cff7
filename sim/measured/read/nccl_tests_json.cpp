// What nccl-tests write with -J (from 2.17 on; its src/util.cu).
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "libgccl/base/limits.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

struct Job {
  Rank nodes = 0, cards = 0;
  std::string unusable;  // why; empty: it can be used
};

// "devices" lists each process's first card alone, whose rank says how many cards each process has; or all of them.
Job job_of(const json::Node& config) {
  const std::int64_t cards_of_process =
      config.at("nthreads").integer(1, kRanksMax) * config.at("ngpus").integer(1, kRanksMax);
  const std::vector<json::Node> devices = config.at("devices").items(1);
  const auto rank_of = [&](std::size_t i) { return devices[i].at("rank").integer(0, kRanksMax); };
  const std::int64_t step = devices.size() == 1 ? cards_of_process : rank_of(1) - rank_of(0);
  std::map<std::string, std::int64_t> cards;
  std::set<std::pair<std::string, std::string>> buses;  // of hosts
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].at("group").integer(INT32_MIN, INT32_MAX) != 0)
      return {.unusable = "measured in several communicators at the same time"};
    if (rank_of(i) != std::int64_t(i) * step || (step != 1 && step != cards_of_process))
      return {.unusable = "its devices are not those of ranks 0, 1, 2 and so on"};
    const std::string host = devices[i].at("hostname").string();
    if (const auto bus = devices[i].find("device_hex"); bus && !buses.emplace(host, bus->string()).second)
      return {.unusable = "several of its nodes have the same name"};
    cards[host] += step;
  }
  for (const auto& [host, count] : cards)
    if (count != cards.begin()->second) return {.unusable = "hosts with different numbers of ranks"};
  if (cards.begin()->second > kRanksMax) return {.unusable = fmt::format("on more than {} ranks", kRanksMax)};
  return {.nodes = Rank(cards.size()), .cards = Rank(cards.begin()->second), .unusable = {}};
}

// "/opt/nccl-tests/build/all_reduce_perf_mpi": "all_reduce".
std::string collective_of(const json::Node& document) {
  std::string program = document.at("args").items(1)[0].string();
  program.erase(0, program.find_last_of("/\\") + 1);
  return program.substr(0, program.find("_perf"));
}

}  // namespace

bool is_nccl_tests(const json::Node& document) {
  return document.is_object() && document.has("nccl_version") && document.has("args");
}

void read_nccl_tests(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to) {
  if (!document.has("config") || !document.has("results"))
    return to.remark(fmt::format("{}: looks like what nccl-tests write, but holds no results", file));
  const Job job = job_of(document.at("config"));
  const std::string collective = collective_of(document);
  const std::vector<std::size_t> lines = lines_with(text, "\"size\"");
  const std::vector<json::Node> results = document.at("results").items();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const json::Node& result = results[i];
    const FilePlace at{file, lines.size() == results.size() ? lines[i] : 1};
    const auto measures = result.find("out_of_place");
    if (!measures || measures->raw().is_null()) {
      to.skip(at, "without a time out of place");
      continue;
    }
    const std::string type = result.at("type").string();
    const auto dtype = measured_dtype(type);
    if (!job.unusable.empty()) {
      to.skip(at, job.unusable);
    } else if (measures->has("cpu_time")) {
      to.skip(at, "its time is that of processors (cpu_time), expected that of the collective");
    } else if (!dtype) {
      to.skip(at, no_dtype(type));
    } else if (!measures->at("time").is_number()) {  // "nan"
      to.skip(at, "its time is no number");
    } else if (const auto wrong = measures->find("nwrong");
               wrong && !wrong->raw().is_null() && !(wrong->is_number() && wrong->number(0, 1e30) == 0)) {
      to.skip(at, "the test found wrong elements");
    } else {
      Measurement m;
      m.at = at;
      m.nodes = job.nodes;
      m.cards = job.cards;
      m.algorithm = kNcclChoice;
      m.collective = collective;
      m.bytes = Count(result.at("size").integer(0, INT64_MAX));
      m.time_us = measures->at("time").number(0, 1e15);
      m.dtype = *dtype;
      m.source = file;
      const auto stated = [&](const char* key) { return fmt::format("{:.6f}", measures->at(key).number(0, 1e15)); };
      to.add(std::move(m), false, {stated("time"), stated("alg_bw"), stated("bus_bw")});
    }
  }
  to.remark_contradictions();
}

}  // namespace gccl::sim
