// What a diagnosis calls the links between cards.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/measured/table_text.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

TEST_CASE("a diagnosis calls the links between cards what their makers do") {
  const std::pair<const char*, const char*> kNames[] = {{"nvlink", "PCIe instead of NVLink"},
                                                        {"nvlink_pair", "PCIe instead of NVLink"},  // Polaris, Alps
                                                        {"xgmi", "PCIe instead of xGMI"},
                                                        {"hccs", "PCIe instead of HCCS"},
                                                        {"wire", "PCIe instead of the cards' own links"}};
  for (const auto& named : kNames) {
    const std::string link = named.first, title = named.second;
    CAPTURE(link);
    Json on = Json::parse(kFourCards);
    on["parameters"]["links"] = {{link, {{"bandwidth_GBps", 100}, {"latency_ns", 500}}}};
    on["nodes"][0]["inside"] = {{"kind", "full_mesh"}, {"link", link}};
    const Folder folder;
    folder.write("c.json", on.dump());
    std::string table = kColumns;
    for (const int bytes : {1024, 4096, 16384, 65536})
      table += fmt::format("s,1,4,all_reduce,NCCL default (auto),auto,{},100,,,src,\n", bytes);
    folder.write("m.csv", table);
    const Ended e = run_gccl({"diagnose", "m.csv", "--cluster", "c.json", "--json", "-"}, folder.path);
    const Json all = Json::parse(e.out);
    std::size_t found = 0;
    for (const Json& d : all.contains("diagnoses") ? all["diagnoses"] : Json::array({all}))
      for (const Json& h : d["hypotheses"])
        if (h["cause"] == "pcie") {
          ++found;
          CHECK(h["title"] == title);
          CHECK((h["check"].get<std::string>().find("nvidia-smi") != std::string::npos) == link.starts_with("nvlink"));
        }
    CHECK(found == 1);
  }
}
