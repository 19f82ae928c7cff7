#include "sim/report/html.hpp"

#include <algorithm>
#include <array>

#include "libgccl/base/control_characters.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/embedded.hpp"
#include "sim/report/findings.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// JSON that may stand inside a script element: "</script" and "<!--" would end or bend it, so no '<' is left. Outside
// of strings JSON has none, and inside of them \u003c is the same character. What turns the direction of text would
// turn the page's sentences.
std::string script_json(const Json& value) {
  const std::string all = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  for (std::string_view left = all; !left.empty();) {
    const std::size_t n = control_bytes(left);
    if (n > 0)
      out += "\\ufffd";
    else if (left[0] == '<')
      out += "\\u003c";
    else
      out += left[0];
    left.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string page_title(const Json& result) {
  const Json* name = &result;
  for (const char* key : {"scenario", "name"}) {
    if (!name->is_object() || !name->contains(key)) return "GCCL report";
    name = &name->at(key);
  }
  return name->is_string() ? name->get<std::string>() + " - GCCL report" : "GCCL report";
}

using Slots = std::array<std::pair<std::string_view, std::string>, 4>;

// Replaces @name@ by the slot's text, in one pass: what is filled in is never searched again.
std::string filled(std::string_view page, const Slots& slots) {
  std::string out;
  for (std::size_t i = 0; i < page.size();) {
    const std::pair<std::string_view, std::string>* found = nullptr;
    for (const auto& slot : slots) {
      if (page.substr(i).starts_with(slot.first)) found = &slot;
    }
    if (found) {
      out += found->second;
      i += found->first.size();
    } else {
      out += page[i++];
    }
  }
  return out;
}

}  // namespace

std::string html_report(const Json& result, const std::vector<std::pair<std::string, std::string>>& topology_svgs) {
  Json topologies = Json::array();
  for (const auto& [cluster, svg] : topology_svgs) topologies.push_back({{"cluster", cluster}, {"svg", svg}});
  Json page = {
      {"result", result}, {"findings", findings(result)}, {"columns", csv_columns()}, {"topologies", topologies}};
  Json& shown = page["result"];
  if (const auto seed = shown.find("seed"); seed != shown.end()) *seed = seed->dump();  // a page's numbers are doubles
  std::string script;
  using namespace embedded;
  for (const std::string_view part :
       {report_data_js, report_chart_js, report_export_js, report_panels_js, report_timeline_js, report_js})
    script += part;
  return filled(report_html, {{{"@title@", escaped(page_title(result))},
                               {"@style@", std::string(report_css)},
                               {"@data@", script_json(page)},
                               {"@script@", script}}});
}

}  // namespace gccl::sim
