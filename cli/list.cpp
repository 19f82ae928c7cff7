// gccl list: what there is to name in scenarios and on the command line.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKinds[] = {"algorithms",  "collectives", "engines",  "topologies",
                                       "cost-models", "scenarios",   "workloads"};

Json list_algorithms() {
  Json all = Json::array();
  for (const Algorithm& a : algorithms())
    all.push_back({{"name", a.name},
                   {"collective", name(a.kind)},
                   {"steps", a.steps},
                   {"bytes", a.bytes},
                   {"source", a.source},
                   {"variant", a.variant},
                   {"closed_form", a.cost != nullptr}});
  return all;
}

Json list_collectives() {
  Json all = Json::array();
  for (const std::string_view c : collective_names()) {
    Json names = Json::array();
    for (const Algorithm& a : algorithms())
      if (name(a.kind) == c && !a.variant) names.push_back(a.name);
    all.push_back({{"name", c}, {"algorithms", std::move(names)}});
  }
  return all;
}

Json list_engines() {
  Json all = Json::array();
  all.push_back({{"name", "model"},
                 {"description", "discrete events: messages occupy each link in turn; millions of messages a second"}});
  all.push_back(
      {{"name", "flow"},
       {"description", "messages share each link at the same time (max-min fairness), as in SimGrid, sooner"}});
  if (has_plugin("simgrid_engine"))
    all.push_back({{"name", "simgrid"},
                   {"description", "SimGrid: messages share each link at the same time (max-min fairness)"}});
  all.push_back({{"name", "protocol"},
                 {"description",
                  "every frame of the library's fault protocol, over wires that faults happen to; up to 64 ranks"}});
  all.push_back({{"name", "real"},
                 {"description", "processes of this machine, to which the scenario's faults happen; up to 64 ranks"}});
  return all;
}

// A file that cannot be read is listed with what is wrong with it.
Json list_files(std::string_view kind) {
  Json all = Json::array();
  for (const CatalogueEntry& e : catalogue(kind)) {
    Json entry{{"name", e.name}, {"file", e.file.string()}};
    try {
      const auto node = json::Node::load(e.file);
      const auto title = node.find("name"), text = node.find("description");
      entry["title"] = title ? title->string() : "";
      entry["description"] = text ? text->string() : "";
    } catch (const json::InputError& error) {
      entry["title"] = "";
      entry["description"] = error.what();
    }
    all.push_back(std::move(entry));
  }
  return all;
}

std::string as_text(const Json& all) {
  const auto name_of = [](const Json& e) { return printable_line(e["name"].get<std::string>()); };
  std::size_t width = 0;
  for (const Json& e : all) width = std::max(width, name_of(e).size());
  std::string text, collective;
  for (const Json& e : all) {
    if (e.contains("collective") && e["collective"] != collective) {
      collective = e["collective"];
      text += collective + "\n";
    }
    std::string about;
    if (e.contains("algorithms"))
      for (const Json& a : e["algorithms"]) about += (about.empty() ? "" : ", ") + a.get<std::string>();
    if (e.contains("description")) about = printable_line(e["description"].get<std::string>());
    if (e.contains("steps"))
      about = fmt::format("steps {}, bytes {}{}", e["steps"].get_ref<const std::string&>(),
                          e["bytes"].get_ref<const std::string&>(),
                          e["variant"] ? "; by name or by a rule, not part of \"all\"" : "");
    else if (about.size() > 110)
      about = about.substr(0, about.rfind(' ', 107)) + " ...";
    std::string line = fmt::format("{}{:<{}}  {}", collective.empty() ? "" : "  ", name_of(e), width, about);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string folders_text(std::string_view kind) {
  std::string text;
  for (const auto& folder : catalogue_folders(kind)) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

Json list(const std::string& what) {
  if (what == "algorithms") return list_algorithms();
  if (what == "collectives") return list_collectives();
  if (what == "engines") return list_engines();
  return list_files(what);
}

}  // namespace

// Algorithms, collectives, engines, and shipped files by kind, as text or as JSON.
void add_list(Command& app, int& exit_code) {
  Command* command = app.add_subcommand(
      "list", "List algorithms, collectives, engines, topologies, cost models, scenarios or workloads");
  struct Arguments {
    std::string what;
    bool json = false;
  };
  const auto a = std::make_shared<Arguments>();
  command->add_option("what", a->what, "What to list")->required()->check(OneOf(std::begin(kKinds), std::end(kKinds)));
  command->add_flag("--json", a->json, "As JSON");
  command->callback([a, &exit_code] {
    const Json all = list(a->what);
    if (all.empty() && !a->json)
      throw json::InputError(fmt::format("list {}: none in {}", a->what, folders_text(a->what)));
    write_stdout(a->json ? json::format_value({{"schema", "gccl/list/1"}, {a->what, all}}, 1) + '\n' : as_text(all));
    exit_code = 0;
  });
}

}  // namespace gccl
