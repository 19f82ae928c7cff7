#include "sim/scenario/plan/point_key.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/scenario/description/digest.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// The contents of the files that a cluster is read from.
std::string contents(const std::filesystem::path& cluster) {
  std::string all;
  for (const std::filesystem::path& file : files_of_cluster(cluster)) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    all += fmt::format("{}:{}", text.size(), text);
  }
  return all;
}

// The build id that the linker left in a loaded object; empty when there is none.
std::string build_id(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(object.dlpi_addr + part.p_vaddr);
    for (const char* const end = at + part.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *note;
      const char* content = name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::string_view(name, 3) == "GNU")
        return std::string(content, note->n_descsz);
      at = content + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return "";
}

Json parts_of(const Point& point) {
  Json streams = Json::array();
  for (const auto& stream : point.streams) {
    Json parts = Json::array();
    for (const Part& part : stream) {
      Json plans = Json::array();  // which a tuning table may have changed
      for (const Plan& p : part.plans)
        plans.push_back({p.slicing.shares, p.slicing.lanes, p.slicing.window, p.protocol, std::size_t(p.by)});
      parts.push_back({part.algorithm(), part.bytes, kPlanners[std::size_t(part.task->planner)], std::move(plans)});
    }
    streams.push_back(std::move(parts));
  }
  return streams;
}

// What decides where ranks plan anew: those that go on without others do, while the plans of all are in the points.
std::string deciding(const Authorities& a) {
  return digest(fmt::format("{}\n{}\n{}", a.named.text(), a.lists.text(), a.table ? write_tuning_table(*a.table) : ""));
}

}  // namespace

// The program and its libraries as they were built: another build may give other times under the same version.
std::string program_digest() {
  std::string all = GCCL_VERSION_TEXT;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        const std::string_view name = object->dlpi_name;
        if (name.find("vdso") != std::string_view::npos) return 0;
        std::string id = build_id(*object);
        struct stat s {};
        if (id.empty() && stat(name.empty() ? "/proc/self/exe" : object->dlpi_name, &s) == 0)
          id = fmt::format("{} {}.{}", s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
        *static_cast<std::string*>(to) += fmt::format("\n{}", id);
        return 0;
      },
      &all);
  return digest(all);
}

std::string cluster_digest(const std::filesystem::path& cluster) { return digest(contents(cluster)); }

std::vector<std::string> point_keys(const Campaign& campaign) {
  const std::string by = program_digest();
  std::vector<std::string> worlds, runs, keys;
  for (const SimulatedWorld& w : campaign.worlds) {
    std::string all = contents(w.cluster_file);
    for (const Card c : w.cards) all += fmt::format(" {}", c);
    worlds.push_back(w.cluster_name + ' ' + digest(all));
  }
  for (const ScenarioRun& run : campaign.scenario->runs) {
    Json stated = run.where.raw();
    for (const char* key : {"expect", "engine", "bytes", "algorithms"}) stated.erase(key);
    stated["payload"] = run.payload;  // also where it is not stated: another engine of the run may ask for it
    runs.push_back(json::format_value(stated));
  }
  const std::string decided = deciding(campaign.authorities);
  for (const Point& p : campaign.points) {
    Json all = {by, worlds[p.world], runs[p.run], name(p.engine), parts_of(p), p.automatic, campaign.seed};
    if (plays_ranks(p.engine)) all.push_back(decided);
    keys.push_back(digest(json::format_value(all)));
  }
  return keys;
}

}  // namespace gccl::sim
