#include "libgccl/communicator/record/dump.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "libgccl/json/pickle.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;

std::string version_text() {
  return fmt::format("{}.{}.{}", GCCL_VERSION_MAJOR, GCCL_VERSION_MINOR, GCCL_VERSION_PATCH);
}
std::string id_text(std::uint64_t id) { return fmt::format("{:016x}", id); }

// ---- GCCL's own form ----

Json own_form(const DumpedCall& c, const std::vector<Rank>& world_rank, bool transfer) {
  Json j = {{"call", c.name}, {"text", c.text}, {"state", c.state}, {"count", c.count}};
  if (!transfer) j["sequence"] = c.sequence;
  if (!c.own) j["internal"] = true;
  if (c.lengths) j["lengths"] = id_text(c.lengths);
  if (!c.dtype.empty()) j["dtype"] = c.dtype;
  if (!c.op.empty()) j["op"] = c.op;
  if (!c.algorithm.empty()) j["algorithm"] = c.algorithm;
  j[transfer ? "peer" : "root"] = c.root;
  if (c.began_ns) j["began_ns"] = c.began_ns;
  if (c.ended_ns) j["ended_ns"] = c.ended_ns;
  if (!c.waits_what.empty())
    j["waits_for"] = {{"rank", c.waits_for}, {"world_rank", world_rank[c.waits_for]}, {"what", c.waits_what}};
  return j;
}

Json own_form(const DumpedRank& d) {
  Json communicators = Json::array();
  for (const DumpedCommunicator& c : d.communicators) {
    Json calls = Json::array(), transfers = Json::array();
    for (const DumpedCall& call : c.calls) calls.push_back(own_form(call, c.world_rank, false));
    for (const DumpedCall& call : c.transfers) transfers.push_back(own_form(call, c.world_rank, true));
    Json j = {{"id", id_text(c.id)},   {"world", c.world},          {"rank", c.rank},
              {"ranks", c.world_rank}, {"calls", std::move(calls)}, {"transfers", std::move(transfers)}};
    if (!c.failure.empty()) j["failure"] = json::valid_text(c.failure);
    communicators.push_back(std::move(j));
  }
  Json j = {{"schema", "gccl/dump/1"},
            {"version", version_text()},
            {"world", id_text(d.world)},
            {"rank", d.rank},
            {"size", d.size},
            {"host", json::valid_text(d.host)},
            {"pid", ::getpid()},
            {"reason", json::valid_text(d.reason)},
            {"communicators", std::move(communicators)}};
  if (d.skipped != 0u) j["skipped"] = d.skipped ? Json(*d.skipped) : Json();
  return j;
}

// ---- PyTorch's ----

// As its analyser knows the calls, and how many blocks go in and come out on a rank. It takes all blocks of a call for
// equally long, so those that are not have their mean length, rounded up.
struct TorchCall {
  std::string_view ours, theirs;
  bool in_all, out_all;  // as many blocks as ranks
};
constexpr TorchCall kTorchCalls[] = {
    {"allreduce", "all_reduce", false, false},
    {"allgather", "_all_gather_base", false, true},
    {"reduce_scatter", "_reduce_scatter_base", true, false},
    {"broadcast", "broadcast", false, false},
    {"reduce", "reduce", false, false},
    {"gather", "gather", false, true},
    {"scatter", "scatter", true, false},
    {"alltoall", "all_to_all", true, true},
    {"alltoallv", "all_to_all", false, false},
    {"allgatherv", "all_gather", false, true},
    {"reduce_scatterv", "reduce_scatter", true, false},
};
constexpr std::string_view kTorchTypes[][2] = {{"f32", "Float"},     {"f64", "Double"}, {"f16", "Half"},
                                               {"bf16", "BFloat16"}, {"i8", "Char"},    {"u8", "Byte"},
                                               {"i32", "Int"},       {"i64", "Long"},   {"i16", "Short"}};

Json torch_entry(const DumpedCommunicator& c, const DumpedCall& call, std::size_t record, bool transfer) {
  std::string name = "all_reduce_barrier";
  const std::uint64_t n = c.world_rank.size();
  const std::uint64_t block = call.lengths ? (call.count + n - 1) / n : call.count;
  std::uint64_t in = block, out = block;
  const bool sends = call.name == "send";
  if (transfer) {
    name = sends ? fmt::format("send {}->{}", c.rank, call.root) : fmt::format("recv {}<-{}", c.rank, call.root);
  } else {
    for (const TorchCall& t : kTorchCalls) {
      if (t.ours != call.name) continue;
      name = t.theirs;
      in *= t.in_all ? n : 1;
      out *= t.out_all ? n : 1;
    }
  }
  std::string type = call.dtype;
  for (const auto& [ours, theirs] : kTorchTypes)
    if (call.dtype == ours) type = theirs;
  const Json types = Json::array({type});
  const auto time = [](std::int64_t ns) { return ns ? Json(ns) : Json(); };
  const bool completed = call.state == std::string_view("completed");
  return {{"record_id", record},
          {"pg_id", 0},
          {"process_group", Json::array({id_text(c.id), c.world ? "default_pg" : "undefined"})},
          {"collective_seq_id", transfer ? 0 : call.sequence},
          {"p2p_seq_id", 0},
          {"op_id", record},
          {"profiling_name", "nccl:" + name},
          {"time_created_ns", call.began_ns},
          {"duration_ms", call.ended_ns ? Json(double(call.ended_ns - call.began_ns) * 1e-6) : Json()},
          {"input_sizes", Json::array({Json::array({in})})},
          {"input_dtypes", types},
          {"output_sizes", Json::array({Json::array({out})})},
          {"output_dtypes", types},
          {"state", call.state},
          {"time_discovered_started_ns", time(call.state == std::string_view("scheduled") ? 0 : call.began_ns)},
          {"time_discovered_completed_ns", time(call.ended_ns)},
          {"retired", completed},
          {"timeout_ms", 0},
          {"is_p2p", transfer},
          {"frames", Json::array()}};
}

Json torch_form(const DumpedRank& d) {
  Json groups = Json::object(), status = Json::object(), entries = Json::array();
  for (const DumpedCommunicator& c : d.communicators) {
    const std::string id = id_text(c.id);
    std::string ranks;
    for (const Rank r : c.world_rank) ranks += fmt::format("{}{}", ranks.empty() ? "[" : ", ", r);
    groups[id] = {{"name", id}, {"desc", c.world ? "default_pg" : "undefined"}, {"ranks", ranks + "]"}};
    std::int64_t last[3] = {-1, -1, -1}, before_ns = 0;
    for (DumpedCall call : c.calls) {
      if (call.began_ns == 0) call.began_ns = before_ns;  // there it is a number always: not before this
      before_ns = call.began_ns;
      const std::string_view state = call.state;
      last[0] = call.sequence;
      if (state != "scheduled") last[1] = call.sequence;
      if (state == "completed") last[2] = call.sequence;
      entries.push_back(torch_entry(c, call, entries.size(), false));
    }
    for (const DumpedCall& call : c.transfers) entries.push_back(torch_entry(c, call, entries.size(), true));
    status[id] = {{"last_enqueued_collective", last[0]},
                  {"last_started_collective", last[1]},
                  {"last_completed_collective", last[2]}};
  }
  return {{"version", "2.10"},
          {"pg_config", std::move(groups)},
          {"pg_status", std::move(status)},
          {"comm_lib_version", fmt::format("gccl {}", version_text())},
          {"entries", std::move(entries)},
          // Its entries have no place for an operation, a root and who waits for whom. PyTorch's analyser passes over
          // keys that it does not know.
          {"gccl", own_form(d)}};
}

std::atomic<std::uint32_t> asked{0};

// PREFIX* does not match it: a rank that is killed while it writes leaves one.
std::string hidden(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  return path.substr(0, name) + '.' + path.substr(name);
}

}  // namespace

Status write_dump(const DumpedRank& rank, const std::string& path) {
  const std::string text =
      path.ends_with(".json") ? json::format_value(own_form(rank), 1) + '\n' : json::to_pickle(torch_form(rank));
  static std::atomic<unsigned> drafts{0};  // each has its own: two threads may write at the same time
  const std::string draft = fmt::format("{}.{}.{}.draft", hidden(path), ::getpid(), drafts++);
  const auto wrong = [&](int error) {
    ::unlink(draft.c_str());
    return Status::error(fmt::format("cannot write the dump {}: {}", path, std::strerror(error)), GCCL_ERR_SYSTEM);
  };
  std::FILE* const file = std::fopen(draft.c_str(), "we");
  if (!file) return wrong(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) return wrong(written ? errno : error);
  return std::rename(draft.c_str(), path.c_str()) == 0 ? Status() : wrong(errno);
}

Status read_dump_settings(const Environment& environment, DumpSettings* out) {
  out->prefix = read_text(environment, "GCCL_DUMP");
  out->json = read_text(environment, "GCCL_DUMP_FORMAT") == "json";
  const std::string signal = read_text(environment, "GCCL_DUMP_SIGNAL");
  if (signal.empty()) return {};
  if (out->prefix.empty()) return invalid("GCCL_DUMP_SIGNAL needs GCCL_DUMP, which says where dumps go");
  struct sigaction act {};
  act.sa_handler = [](int) { asked.fetch_add(1, std::memory_order_relaxed); };
  act.sa_flags = SA_RESTART;
  ::sigaction(signal == "USR1" ? SIGUSR1 : SIGUSR2, &act, nullptr);
  return {};
}

std::string dump_file(const DumpSettings& settings, Rank rank) {
  return fmt::format("{}{}{}", settings.prefix, rank, settings.json ? ".json" : "");
}

std::uint32_t dumps_asked() { return asked.load(std::memory_order_relaxed); }

}  // namespace gccl
