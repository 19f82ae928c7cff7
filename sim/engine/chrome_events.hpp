// Events of a trace that chrome://tracing and ui.perfetto.dev open (Chrome's JSON array format).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libgccl/json/reader.hpp"
#include "sim/engine/time.hpp"

namespace gccl::sim {

// Events of one thread must nest: a viewer drops what overlaps only in part. A lane has a window of steps in flight, so
// they do overlap. Each goes to the first row that is free when it begins; rows become threads. Begin/end pairs of
// asynchronous events would be the other way: twice the events, a track for each, and hard to read. A lane needs no
// more rows than its window, so looking through them is cheap.
class ThreadRows {
 public:
  // Intervals must come in order of `begin`.
  std::size_t place(Nanos begin, Nanos end) {
    const auto free = std::find_if(free_from_.begin(), free_from_.end(), [&](Nanos t) { return t <= begin; });
    const auto row = std::size_t(free - free_from_.begin());
    if (free == free_from_.end())
      free_from_.push_back(end);
    else
      *free = end;
    return row;
  }

 private:
  std::vector<Nanos> free_from_;  // per row
};

// Viewers keep process and thread 0 to themselves, so both count from 1.
class ChromeEvents {
 public:
  void process(std::uint64_t pid, std::string_view label, std::int64_t order) {
    metadata("process_name", pid, 0, fmt::format(R"("name":{})", json::format_value(label)));
    metadata("process_sort_index", pid, 0, fmt::format(R"("sort_index":{})", order));
  }
  void thread(std::uint64_t pid, std::size_t tid, std::string_view label) {
    metadata("thread_name", pid, tid, fmt::format(R"("name":{})", json::format_value(label)));
    metadata("thread_sort_index", pid, tid, fmt::format(R"("sort_index":{})", tid));
  }
  void metadata(std::string_view kind, std::uint64_t pid, std::size_t tid, std::string_view args) {
    begin_event();
    text_ += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", kind, pid, tid, args);
  }
  void complete(std::uint64_t pid, std::size_t tid, std::string_view label, Nanos begin, Nanos end,
                std::string_view args) {
    begin_event();
    text_ +=
        fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                    json::format_value(label), pid, tid, micros(begin), micros(std::max<Nanos>(end - begin, 0)), args);
  }
  std::string finish() { return text_ + "\n]\n"; }

 private:
  void begin_event() { text_ += std::exchange(first_, false) ? "\n" : ",\n"; }
  static std::string micros(Nanos t) { return fmt::format("{}.{:03}", t / 1000, t % 1000); }

  std::string text_ = "[";
  bool first_ = true;
};

}  // namespace gccl::sim
