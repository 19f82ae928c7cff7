#include "sim/llm/step_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/engine/chrome_events.hpp"
#include "sim/engine/time.hpp"
#include "sim/llm/pricing.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", part / whole * 100) : "-"; }

std::string times_text(double slower) {
  return slower < kSlowerMax ? fmt::format("{:.2f}", slower) : fmt::format("at least {}", kSlowerMax);
}

std::string sizes_text(const Json& calls) {
  std::string text;
  for (const Json& c : calls)
    text += fmt::format("{}{} {} on {}", text.empty() ? "" : " + ", c["collective"].get_ref<const std::string&>(),
                        json::format_bytes(c["bytes"].get<std::uint64_t>()), c["ranks"].get<Rank>());
  return text;
}

std::string headline(const Json& r) {
  const Json& p = r["parallel"];
  std::string sizes;
  for (const auto& [key, letter] :
       {std::pair("tensor", "T"), {"context", "C"}, {"data", "D"}, {"pipeline", "P"}, {"expert", "E"}})
    if (const Rank n = p.value(key, Rank(1)); n != 1)
      sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", letter, n);
  return fmt::format("{}: {} on {}, {}{}{}, {} engine", r["workload"]["name"].get_ref<const std::string&>(),
                     r["phase"].get_ref<const std::string&>(), r["cluster"]["name"].get_ref<const std::string&>(),
                     counted(r["ranks"].get<std::uint64_t>(), "rank"), sizes.empty() ? "" : " (" + sizes + ")",
                     r["phase"] != "training"  ? ""
                     : r["micro_batches"] == 1 ? ", 1 micro-batch"
                                               : fmt::format(", {} micro-batches", r["micro_batches"].get<Count>()),
                     r["engine"].get_ref<const std::string&>());
}

}  // namespace

std::string algorithms_text(const Json& calls) {
  std::string text;
  for (const Json& c : calls) {
    text += (text.empty() ? "" : " + ") + c.value("algorithm", "-");
    if (c.contains("decided_by")) text += fmt::format(" ({})", c["decided_by"].get_ref<const std::string&>());
  }
  return text;
}

std::string change_text(double before_us, double after_us) {
  return before_us > 0 ? fmt::format("{:+.1f} %", (after_us / before_us - 1) * 100) : "-";
}

std::vector<std::vector<std::string>> without_repetition(const std::vector<std::vector<std::string>>& rows) {
  std::map<std::vector<std::string>, std::size_t> number;
  for (const auto& row : rows) ++number[row];
  std::vector<std::vector<std::string>> all;
  for (const auto& row : rows) {
    const auto at = number.find(row);
    if (at == number.end()) continue;
    all.push_back(row);
    if (at->second > 1) all.back().back() += fmt::format(", each of {}", at->second);
    number.erase(at);
  }
  return all;
}

std::string memory_missing(const PlayedStep& s) {
  const double has = s.workload.memory_GB;
  if (has == 0) return {};
  double most = 0;
  std::size_t stage = 0, over = 0;
  const Json& stages = s.result["stages"];
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double GB = stages[i]["memory"].value("sum_GB", 0.0);
    if (GB > has) ++over;
    if (GB > most) most = GB, stage = i;
  }
  if (over == 0) return {};
  return fmt::format("does not fit: a card of stage {} needs {:.4g} GB and has {:.4g} GB{}", stage, most, has,
                     over > 1 ? fmt::format("; {} of {} stages do not fit", over, stages.size()) : "");
}

std::string step_text(const PlayedStep& s, bool quiet) {
  Json r = s.result;
  json::replace_control(r);
  std::string out;
  const double step = r["step_us"];
  if (!quiet) {
    out += headline(r) + "\n";
    const bool decode = r["phase"] == "decode";
    out += fmt::format("  {} {}", decode ? "a token in" : "step", format_time(step));
    if (const double tokens = r["tokens_per_s"]; tokens > 0)
      out += fmt::format(", {} tokens/s", format_number(tokens, 4));
    if (r["mfu_percent"].is_number() && !decode)
      out += fmt::format(", {:.4g} TFLOP/s a card: {:.1f} % MFU ({:.1f} % where attention counts whole)",
                         r["TFLOPS_per_card"].get<double>(), r["mfu_percent"].get<double>(),
                         r["mfu_full_attention_percent"].get<double>());
    out += "\n";
    if (const std::string missing = memory_missing(s); !missing.empty()) out += "  " + missing + "\n";
    out += "\n";
    std::vector<std::vector<std::string>> rows{
        {r["phase"] == "trace" ? "  mean of the ranks" : "  mean of the stages", "time", "of the step"}};
    const auto row = [&](const std::string& what, double us) {
      if (us > 0.0005) rows.push_back({"  " + what, format_time(us), percent(us, step)});
    };
    row("compute", r["compute_us"]);
    row("slowed by concurrent communication", r["slowed_us"]);
    for (const auto& [key, k] : r["kinds"].items()) row("exposed: " + key, k["exposed_us"]);
    row(r["phase"] == "trace" ? "waiting for others" : "pipeline bubble", r["bubble_us"]);
    out += aligned(rows, 200) + "\n";
    if (!r["kinds"].empty()) {
      rows = {{"  traffic", "in flight", "exposed", "sent by a rank"}};
      for (const auto& [key, k] : r["kinds"].items())
        rows.push_back({"  " + key, format_time(k["busy_us"]), format_time(k["exposed_us"]),
                        json::format_bytes(k["sent_bytes_max"].get<double>())});
      out += aligned(rows, 200) + "\n";
      rows = {{"  communication", "calls", "algorithm", "alone", "times"}};
      for (const Json& t : r["traffic"])
        rows.push_back(
            {fmt::format("  {}: {}", t["kind"].get_ref<const std::string&>(), t["what"].get_ref<const std::string&>()),
             sizes_text(t["calls"]), algorithms_text(t["calls"]), format_time(t["time_us"]),
             std::to_string(t["number_max"].get<std::size_t>())});
      out += aligned(without_repetition(rows), 200) + "\n";
    }
    for (const Json& t : r.value("together", Json::array()))
      out += fmt::format("  {} and {} concurrently: {} and {} times as long as alone\n",
                         t["kinds"][0].get_ref<const std::string&>(), t["kinds"][1].get_ref<const std::string&>(),
                         times_text(t["slower"][0]), times_text(t["slower"][1]));
    if (const Json changes = r.value("what_if", Json::array()); !changes.empty()) {
      rows = {{"\n  what if", "step", "change", "exposed", "bubble"}};
      for (const Json& c : changes) {
        const double us = c["step_us"];
        rows.push_back({"  " + c["change"].get<std::string>(), format_time(us), change_text(step, us),
                        percent(c["exposed_us"], us), percent(c["bubble_us"], us)});
      }
      out += aligned(rows, 200);
    }
  }
  for (const Json& e : r["expectations"])
    if (!quiet || !e["ok"].get<bool>())
      out += fmt::format("{}  {}; found {}\n", e["ok"].get<bool>() ? "held  " : "BROKEN",
                         e["text"].get_ref<const std::string&>(), e["found"].get_ref<const std::string&>());
  return out;
}

std::string step_trace(const PlayedStep& s) {
  if (!(s.timeline.step_us * 1e3 < double(kTimeMax)))
    s.workload.where.fail(
        fmt::format("the step takes {:.3g} s; a trace, whose times are whole nanoseconds, holds 36 years",
                    s.timeline.step_us / 1e6));
  ChromeEvents out;
  const auto& tasks = s.graph.tasks;
  const auto by_row = tasks_by_row(s);
  std::size_t written = 0, left_out = 0;
  const auto ns = [](double us) { return Nanos(std::llround(us * 1e3)); };
  for (Rank stage = 0; stage < s.graph.stages; ++stage) {
    out.process(stage + 1, fmt::format("{} {}", s.workload.chakra ? "rank" : "stage", stage), stage);
    for (std::size_t q = 0; q < kQueues; ++q) {
      const auto& row = by_row[stage * kQueues + q];
      if (row.empty()) continue;
      // Messages of one rank may be in flight at the same time, and events of one thread may not.
      std::vector<Nanos> over;  // by thread: when its last event ends
      for (const std::uint32_t t : row) {
        if (written == kTraceTasks) {
          ++left_out;
          continue;
        }
        ++written;
        const StepTask& task = tasks[t];
        const Nanos begin = ns(s.timeline.begin[t]);
        std::string args = fmt::format(R"("micro_batch":{},"chunk":{},"pass":"{}")", task.micro_batch, task.chunk,
                                       task.backward ? "backward" : "forward");
        if (!task.computes()) {
          Count bytes = 0;
          for (const TrafficCall& c : s.expansion->traffic[task.traffic].calls) bytes += c.bytes;
          args += fmt::format(R"(,"bytes":{},"alone_us":{:.3f})", bytes, s.costs.us[task.traffic]);
        }
        const Nanos end = ns(s.timeline.end[t]);
        const auto i = std::size_t(std::ranges::find_if(over, [&](Nanos o) { return o <= begin; }) - over.begin());
        const std::size_t thread = 1 + q + i * kQueues;
        if (i == over.size()) {
          over.push_back(0);
          out.thread(stage + 1, thread,
                     i == 0 ? std::string(name(Queue(q))) : fmt::format("{} {}", name(Queue(q)), i + 1));
        }
        over[i] = end;
        out.complete(stage + 1, thread, task.what, begin, end, args);
      }
    }
  }
  out.metadata(
      "gccl_trace", 1, 0,
      fmt::format(R"("tasks":{},"tasks_left_out":{},"time_ns":{})", written, left_out, ns(s.timeline.step_us)));
  return out.finish();
}

}  // namespace gccl::sim::llm
