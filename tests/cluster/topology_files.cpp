// The shipped topologies and parameter sets: they load and name their sources; and the JSON Schemas accept exactly what
// the readers accept.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <fstream>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/summary.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/json_files.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using Json = nlohmann::json;

namespace {

using test::kRoot;

Json read(const std::filesystem::path& file) { return Json::parse(test::read_text(file)); }

// Numbers without a source: neither "source" beside them or around them nor an entry in "sources" for them or around
// them.
void unsourced(const Json& v, const std::string& pointer, bool covered, const Json& sources,
               std::vector<std::string>& out) {
  covered = covered || sources.contains(pointer) || (v.is_object() && v.contains("source"));
  if (v.is_number() && !covered) out.push_back(pointer);
  if (!v.is_structured()) return;
  for (const auto& [key, value] : v.items())
    if (pointer != "" || key != "sources") unsourced(value, pointer + "/" + key, covered, sources, out);
}

}  // namespace

TEST_CASE("every shipped file loads, fits its schema and bears its own name") {
  const test::JsonSchema cluster(read(kRoot / "libgccl/cluster/cluster.schema.json"));
  const test::JsonSchema parameters(read(kRoot / "libgccl/cluster/parameters.schema.json"));
  REQUIRE(test::json_files("topologies").size() >= 14);
  for (const auto& file : test::json_files("topologies")) {
    CAPTURE(file);
    CHECK(cluster.accepts(read(file)));
    const auto c = load_cluster(file);
    CHECK(c->name() == file.stem().string());
    CHECK(c->cards() > 1);
    std::vector<LinkId> route;
    c->route(0, c->cards() - 1, route);
    CHECK(!route.empty());
  }
  REQUIRE(test::json_files("cost-models").size() >= 12);
  for (const auto& file : test::json_files("cost-models")) {
    CAPTURE(file);
    CHECK(parameters.accepts(read(file)));
    CHECK(!load_parameters(file).links.empty());
    CHECK(read(file)["name"] == file.stem().string());
  }
}

TEST_CASE("every transport that is compiled in is a file that fits its schema") {
  const test::JsonSchema schema(read(kRoot / "libgccl/cluster/transport.schema.json"));
  REQUIRE(test::json_files("cost-models/transports").size() == 4);
  for (const auto& file : test::json_files("cost-models/transports")) {
    CAPTURE(file);
    const Json v = read(file);
    CHECK(schema.accepts(v));
    CHECK(v["name"] == file.stem().string());
    const TransportModel& t = transport_model(file.stem().string());
    const auto hop = [&](const Hop& read, const char* key) {
      CAPTURE(key);
      CHECK(read.alpha_ns == v[key]["alpha_ns"].get<double>());
      CHECK(read.beta_ns_per_byte == v[key]["ns_per_byte"].get<double>());
    };
    hop(t.costs.node, "node");
    hop(t.costs.net, "net");
    hop(t.costs.net_all, "net_all");
    CHECK(t.net_all_shared == v["net_all"].value("for_each_rank_of_a_node", false));
    CHECK(t.costs.overhead_ns == v["overhead_ns"].get<double>());
    CHECK(t.costs.combine_ns_per_byte == v["combine_ns_per_byte"].get<double>());
    CHECK(t.costs.copy_ns_per_byte == v["copy_ns_per_byte"].get<double>());
    CHECK(t.tuning.chunks_overlap == v.value("chunks_overlap", true));
    CHECK(t.tuning.channels_max == v.value("channels_max", Count(1)));
    CHECK(t.tuning.preferences.size() == v.value("algorithms", Json::array()).size());
    CHECK(t.tuning.chunks.size() == v.value("chunks", Json::array()).size());
    CHECK(t.tuning.incast.size() == v.value("incast", Json::array()).size());
    CHECK(t.tuning.rates.size() == v.value("rates", Json::array()).size());
    CHECK(t.tuning.window == v["window"].get<unsigned>());
  }
}

TEST_CASE("what is wrong in a transport's file is reported with its place and the nearest name") {
  const Json good = read(kRoot / "cost-models/transports/tcp.json");
  const auto outcome = [&](const char* pointer, const Json& value) {
    Json v = good;
    v[Json::json_pointer(pointer)] = value;
    try {
      read_transport(json::Node::parse(v.dump(), "tcp.json"));
    } catch (const json::InputError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(outcome("/window", 4) == "accepted");
  CHECK(outcome("/window", 1).find("/window") != std::string::npos);
  CHECK(outcome("/chunks/0/collective", "broadcas").find("did you mean \"broadcast\"") != std::string::npos);
  CHECK(outcome("/chunks/0/algorithm", "chian").find("did you mean \"chain\"") != std::string::npos);
  CHECK(outcome("/incast/0/fallback", "rings").find("/incast/0/fallback") != std::string::npos);
  CHECK(outcome("/rates/0/fraction", 0).find("/rates/0/fraction") != std::string::npos);
  CHECK(outcome("/chanels_max", 2).find("channels_max") != std::string::npos);
  CHECK(outcome("/net/ns_per_byte", -1).find("/net/ns_per_byte") != std::string::npos);
  CHECK(outcome("/chunks/0/source", 7).find("/chunks/0/source: found 7, expected a string") != std::string::npos);
  CHECK(outcome("/sources", {{"/nett", "s"}}).find("\"/nett\" points to nothing") != std::string::npos);
}

TEST_CASE("every number in a shipped file has a source") {
  for (const std::string_view folder : {"topologies", "cost-models", "cost-models/transports"})
    for (const auto& file : test::json_files(folder)) {
      CAPTURE(file);
      const Json v = read(file);
      std::vector<std::string> without;
      unsourced(v, "", false, v.value("sources", Json::object()), without);
      CHECK_MESSAGE(without.empty(), (without.empty() ? "" : without.front()));
      if (v.contains("eager_bytes")) CHECK(v.value("sources", Json::object()).contains("/eager_bytes"));
    }
}

TEST_CASE("the large topologies have the sizes of their systems") {
  const std::tuple<std::string, Card, Rank> kSizes[] = {{"dgx-h100-superpod-2048", 2048, 256},
                                                        {"deepseek-v3-h800-2048", 2048, 256},
                                                        {"gb200-nvl72-576", 576, 8},
                                                        {"alps-gh200-2048", 2048, 512},
                                                        {"polaris", 2240, 560},
                                                        {"leonardo", 13824, 3456},
                                                        {"lumi-g", 11904, 2976},
                                                        {"marenostrum5-acc", 4480, 1120},
                                                        {"tpu-v4-4096", 4096, 1024}};
  for (const auto& row : kSizes) {
    const auto& [name, cards, nodes] = row;
    CAPTURE(std::get<0>(row));
    const auto c = load_cluster(kRoot / "topologies" / (name + ".json"));
    CHECK(c->cards() == cards);
    CHECK(c->nodes() == nodes);
  }
}

TEST_CASE("every kind of fabric is in the schema and in the documentation") {
  const std::string schema = read(kRoot / "libgccl/cluster/cluster.schema.json").dump();
  std::ifstream in(kRoot / "docs/formats.md");
  const std::string formats{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(fabric_kinds().size() >= 8);
  for (const FabricKind* kind : fabric_kinds()) {
    CAPTURE(kind->name);
    CHECK(schema.find(fmt::format("\"const\":\"{}\"", kind->name)) != std::string::npos);
    CHECK(formats.find(fmt::format("| `{}` |", kind->name)) != std::string::npos);
  }
}

TEST_CASE("schema and reader judge every changed document alike") {
  const test::JsonSchema schema(read(kRoot / "libgccl/cluster/cluster.schema.json"));
  const auto judge = [&](const Json& document) {
    std::string why = "accepted";
    try {
      parse_cluster(document.dump(), kRoot / "topologies/changed.json");
    } catch (const json::InputError& e) {
      why = e.what();
    }
    const bool accepted = why == "accepted";
    CAPTURE(why);
    CHECK(schema.accepts(document) == accepted);
    return accepted;
  };
  std::size_t refused = 0, changed = 0;
  // Each key of each shipped document in turn: left out, renamed, and given values of every type.
  const Json kValues[] = {nullptr,          true,      -1, 0, 0.5, 1e300, "", "x", Json::array(), Json::object(),
                          Json::array({1}), {{"x", 1}}};
  const auto visit = [&](auto&& self, Json& root, const Json::json_pointer& at) -> void {
    Json& v = root[at];
    if (at.to_string().starts_with("/sources") || at.to_string().starts_with("/description")) return;
    std::vector<std::string> keys;
    if (v.is_object())
      for (const auto& [key, value] : v.items()) keys.push_back(key);
    for (const std::string& key : keys) {
      if (at.empty() && (key == "sources" || key == "description")) continue;
      Json copy = root;
      copy.erase("sources");  // its pointers would dangle
      const Json original = copy[at][key];
      copy[at].erase(key);
      const bool needed_by_meaning = key == "inside" || key == "fabric" || key == "bus" || key == "root_link" ||
                                     key == "across_link" || key == "link" || key == "links" || key == "node_shape" ||
                                     key == "groups" || key == "cards" || key == "nics";
      if (!needed_by_meaning) refused += !judge(copy), ++changed;
      copy[at][key + "z"] = original;
      if (!needed_by_meaning || at.empty()) refused += !judge(copy), ++changed;
      copy[at].erase(key + "z");
      for (const Json& value : kValues) {
        // What depends on more than its place is the reader's alone: names of files and links, sizes that must match.
        const bool plausible = (value.is_string() && value != "") ||
                               (value.is_array() && value.empty() && key != "dims") ||
                               (value.is_array() && !value.empty() && value[0].is_number());
        if (plausible && original.type() == value.type()) continue;
        if ((key.ends_with("parameters") || key == "inside") && (value.is_object() || value.is_array())) continue;
        if (value == "x" && (key.ends_with("link") || key == "port" || key == "bus" || key.ends_with("parameters")))
          continue;
        copy[at][key] = value;
        refused += !judge(copy), ++changed;
      }
    }
    for (const std::string& key : keys)
      if (v[key].is_object())
        self(self, root, at / key);
      else if (v[key].is_array() && !v[key].empty() && v[key][0].is_object())
        self(self, root, at / key / 0);
  };
  for (const std::string_view name : {"dgx-h100-superpod-2048", "deepseek-v3-h800-2048", "polaris", "leonardo",
                                      "marenostrum5-acc", "tpu-v4-4096", "pcie-box", "l40s-box", "custom-fabric"}) {
    CAPTURE(name);
    Json document = read(kRoot / "topologies" / (std::string(name) + ".json"));
    CHECK(judge(document));
    visit(visit, document, Json::json_pointer());
  }
  CHECK(changed > 500);
  CHECK(refused > changed / 2);
}

TEST_CASE("schema and reader judge every changed parameter set alike") {
  const test::JsonSchema schema(read(kRoot / "libgccl/cluster/parameters.schema.json"));
  const test::Folder folder;
  const Json whole = {
      {"schema", "gccl/parameters/1"},
      {"name", "p"},
      {"description", "d"},
      {"sources", {{"/name", "s"}}},
      {"card",
       {{"overhead_ns", 1}, {"receive_overhead_ns", 1}, {"combine_GBps", 1}, {"copy_GBps", 0}, {"source", "s"}}},
      {"eager_bytes", "64KiB"},
      {"transports",
       {{"tcp",
         {{"node", {{"alpha_ns", 1}, {"ns_per_byte", 0.5}, {"source", "s"}}},
          {"net", {{"alpha_ns", 1}, {"ns_per_byte", 0.5}}},
          {"net_all", {{"alpha_ns", 1}, {"ns_per_byte", 0.5}, {"for_each_rank_of_a_node", true}}},
          {"overhead_ns", 1},
          {"combine_ns_per_byte", 1},
          {"copy_ns_per_byte", 1},
          {"source", "s"}}},
        {"shared-memory", {{"overhead_ns", 1}}}}},
      {"links",
       {{"a",
         {{"bandwidth_GBps", 1},
          {"latency_ns", "1us"},
          {"reverse_bandwidth_GBps", 2},
          {"reverse_latency_ns", 3},
          {"source", "s"}}}}},
      {"protocols",
       {{"a",
         {{"operation_ns", 1},
          {"inside", {{"latency_ns", 1}, {"efficiency", 1}, {"source", "s"}}},
          {"network", {{"latency_ns", 1}, {"efficiency", 0.5}}},
          {"channel_GBps", 1},
          {"combine_GBps", 1},
          {"channels_max", 4},
          {"source", "s"}}},
        {"b", {{"bytes_max", "2MiB"}}}}}};
  // The base gives what a changed set leaves out, so that only the change decides.
  folder.write("base.json", whole.dump());
  const auto judge = [&](const Json& document) {
    bool accepted = true;
    std::string why;
    try {
      load_parameters(folder.write("changed.json", document.dump()));
    } catch (const json::InputError& e) {
      accepted = false;
      why = e.what();
    }
    CAPTURE(document.dump());
    CAPTURE(why);
    CHECK(schema.accepts(document) == accepted);
  };
  Json document = whole;
  document["base"] = "base.json";
  judge(document);
  const Json kValues[] = {nullptr, true, -1,    0,         0.5,       1e300,         "1.5us",
                          "2MiB",  "-3", "1.5", "1.2.3us", "1.2.3MB", Json::array(), Json::object()};
  for (const std::string_view place :
       {"", "/sources", "/card", "/transports", "/transports/tcp", "/transports/tcp/node", "/transports/tcp/net_all",
        "/links", "/links/a", "/protocols", "/protocols/a", "/protocols/a/inside", "/protocols/b"}) {
    const Json::json_pointer at{std::string(place)};
    const Json part = document[at];
    for (const auto& [key, original] : part.items()) {
      Json copy = document;
      copy[at].erase(key);
      judge(copy);
      if (place != "/links" && place != "/protocols" && place != "/sources") {
        copy[at][key + "z"] = original;
        judge(copy);
        copy[at].erase(key + "z");
      }
      for (const Json& value : kValues) {
        if (key == "base" && value.is_string()) continue;  // files that do not exist
        copy[at][key] = value;
        judge(copy);
      }
    }
  }
}

TEST_CASE("parameter sets that refer to themselves or to nothing are distinguished") {
  const test::Folder folder;
  const auto message = [](const std::filesystem::path& file) -> std::string {
    try {
      load_parameters(file);
    } catch (const json::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  const auto set = [](std::string_view base) {
    return fmt::format(R"({{"schema": "gccl/parameters/1", "name": "p", "base": "{}"}})", base);
  };
  folder.write("a.json", set("b.json"));
  CHECK(message(folder.write("b.json", set("a.json"))).find("refers back to itself") != std::string::npos);
  CHECK(message(folder.write("self.json", set("./self.json"))).find("refers back to itself") != std::string::npos);
  CHECK(message(folder.write("c.json", set("gone.json"))).find("/base: there is no file") != std::string::npos);
  CHECK(message(folder.write("d.json", R"({"schema": "gccl/parameters/1", "name": "p", "card": {"overhead_ns": 1}})"))
            .find("\"card/combine_GBps\" is missing") != std::string::npos);
  CHECK(message(folder.write("e.json", R"({"schema": "gccl/parameters/1", "name": "p", "sources": {"/links/x": "s"}})"))
            .find("points to nothing") != std::string::npos);
  // Protocols: one must serve every call, and GCCL's own transports have none.
  const auto protocols = [&](std::string_view text) {
    return message(
        folder.write("f.json", fmt::format(R"({{"schema": "gccl/parameters/1", "name": "p", "card": {{"overhead_ns": 1,
        "combine_GBps": 1, "copy_GBps": 1}}, "eager_bytes": 1, {}}})",
                                           text)));
  };
  CHECK(protocols(R"("protocols": {"a": {}, "b": {"bytes_max": 8}})") == "accepted");
  CHECK(protocols(R"("protocols": {"a": {}, "b": {"in_switch": false}})") == "accepted");
  CHECK(protocols(R"("protocols": {"a": {"in_switch": false}, "b": {"bytes_max": 8}})").find("serves every call") !=
        std::string::npos);
  CHECK(protocols(R"("protocols": {"a": {}, "b": {"network": false}})") == "accepted");
  CHECK(protocols(R"("protocols": {"b": {"network": false}})").find("serves every call") != std::string::npos);
  CHECK(protocols(R"("protocols": {"a": {}, "b": {"network": true}})")
            .find("/protocols/b/network: found true, expected an object, or false") != std::string::npos);
  const auto corrected = [&](int nodes) {
    return protocols(fmt::format(R"("protocols": {{"a": {{}}, "b": {{"network": false}}}}, "corrections": [
        {{"collective": "allreduce", "nodes": {}, "cards_per_node": 2, "protocol": "b", "bytes": [8], "extra_us": [1]}}])",
                                 nodes));
  };
  CHECK(corrected(1) == "accepted");
  CHECK(corrected(2).find("a correction is for \"b\" on 2 nodes") != std::string::npos);
  CHECK(protocols(R"("protocols": {"a": {}}, "backends": "shm")").find("know no protocols") != std::string::npos);
  CHECK(protocols(R"("protocols": {"auto": {}})").find("\"auto\" cannot be a protocol's name") != std::string::npos);
  CHECK(protocols(R"("protocols": {"a": {"inside": {"efficiency": 0}}})").find("/protocols/a/inside/efficiency") !=
        std::string::npos);
  // What a set leaves open comes from its base, value by value.
  const auto h800 = load_parameters(kRoot / "cost-models/nvidia-h800.json"),
             h100 = load_parameters(kRoot / "cost-models/nvidia-h100.json");
  CHECK(h800.links.at("nvlink").forward.bandwidth_GBps == 160);
  CHECK(h800.links.at("nic").forward.bandwidth_GBps == h100.links.at("nic").forward.bandwidth_GBps);
  const auto a100 = load_parameters(kRoot / "cost-models/nvidia-a100.json");
  CHECK(a100.card.overhead_ns == h100.card.overhead_ns);
  CHECK(a100.card.receive_overhead_ns == h100.card.receive_overhead_ns);
}

TEST_CASE("a parameter set's sources point to what is there, also where a cluster or a set names it") {
  const test::Folder folder;
  Json cluster = read(kRoot / "topologies/pcie-box.json");
  cluster.erase("sources");
  const std::string shipped = cluster["parameters"];
  const Json set = {
      {"schema", "gccl/parameters/1"}, {"name", "p"}, {"base", (kRoot / "topologies" / shipped).string()}};
  const auto message = [](const auto& load) -> std::string {
    try {
      load();
    } catch (const json::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  for (const auto& judged : {std::pair(Json({{"/base", "s"}}), "accepted"),
                             {Json({{"/nodes", "s"}}), "points to nothing in this file"},
                             {Json({{"/links/x", "s"}}), "points to nothing in this file"},
                             {Json({{"/name", 7}}), "/sources/~1name: found 7, expected a string"},
                             {Json(7), "/sources: found 7, expected an object"}}) {
    const Json& sources = judged.first;
    const std::string why = judged.second;
    CAPTURE(sources.dump());
    Json with = set;
    with["sources"] = sources;
    const std::string file = folder.write("set.json", with.dump()).string();
    const auto by_itself = [&] { load_parameters(file); };
    CHECK(message(by_itself).find(why) != std::string::npos);
    const auto as_base = [&] {
      load_parameters(
          folder.write("over.json", Json({{"schema", "gccl/parameters/1"}, {"name", "o"}, {"base", file}}).dump()));
    };
    CHECK(message(as_base).find(why) != std::string::npos);
    for (const char* key : {"parameters", "mpi_parameters"})
      for (const Json& value : {Json(file), with}) {
        Json changed = cluster;
        changed[key] = value;
        CHECK(message([&] { parse_cluster(changed.dump(), kRoot / "topologies/changed.json"); }).find(why) !=
              std::string::npos);
      }
  }
}

TEST_CASE("a fabric with cables inside a layer has no oversubscription") {
  nlohmann::json custom = nlohmann::json::parse(std::ifstream(kRoot / "topologies/custom-fabric.json"));
  const auto summary = [&] { return summarize(*parse_cluster(custom.dump(), kRoot / "topologies/test.json")); };
  const Summary meshed = summary();
  CHECK(!meshed.layered);
  for (const TierSummary& t : meshed.tiers) CHECK(!t.oversubscription);
  auto& links = custom["fabric"]["links"];
  links.erase(links.size() - 1);  // the cable between two leaves
  custom["sources"] = {{"/nodes/0", "assumed"}, {"/fabric", "assumed"}};
  const Summary tree = summary();
  CHECK(tree.layered);
  std::size_t stated = 0;
  for (const TierSummary& t : tree.tiers) stated += t.oversubscription.has_value();
  CHECK(stated == 1);
}
