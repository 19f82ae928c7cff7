#include "sim/report/csv.hpp"

#include "libgccl/base/split_text.hpp"

namespace gccl::sim {
namespace {

std::string cell(const nlohmann::json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

// "completed" is what came of the row's faults; it is empty without faults.
std::string field(const nlohmann::json& row, const std::string& name) {
  const nlohmann::json& of = name == "completed" && row.contains("faults") ? row.at("faults") : row;
  return of.contains(name) ? cell(of.at(name)) : "";
}

}  // namespace

const std::vector<std::string>& csv_columns() {
  static const std::vector<std::string> kColumns = split_text(
      "index,run,cluster,label,engine,collective,algorithm,ranks,world_ranks,groups,bytes,count,"
      "repeats,dtype,op,root,in_place,chunks,channels,window,protocol,protocol_planned,planned,planner,"
      "planner_choice,planner_note,decided_by,time_us,algbw_GBps,busbw_GBps,messages,message_bytes,"
      "predicted_us,auto,fastest,wrong,first_wrong,wall_s,peak_rss_MB,like_run,completed",
      ',');
  return kColumns;
}

std::string csv_of(const nlohmann::json& rows, const std::vector<std::string>& columns) {
  std::string text;
  const auto add_line = [&](auto&& value_of) {
    for (const std::string& name : columns) {
      text += value_of(name);
      text += ',';
    }
    text.back() = '\n';
  };
  add_line([](const std::string& name) { return name; });
  for (const nlohmann::json& row : rows) add_line([&](const std::string& name) { return field(row, name); });
  return text;
}

std::string result_csv(const nlohmann::json& result) { return csv_of(result.at("runs"), csv_columns()); }

}  // namespace gccl::sim
