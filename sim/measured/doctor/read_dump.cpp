#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "libgccl/elements/dtype.hpp"
#include "libgccl/json/pickle.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/doctor/doctor.hpp"

namespace gccl::sim {
namespace {

constexpr std::int64_t kNumberMost = std::int64_t(1) << 62;
constexpr std::int64_t kRankMost = 1 << 24;

std::int64_t dumped_time(const json::Node& call, const char* key) {
  if (!call.raw().contains(key) || call.raw().at(key).is_null()) return 0;
  return call.at(key).integer(0, kNumberMost);
}

std::uint32_t dumped_rank(const json::Node& n) { return std::uint32_t(n.integer(0, kRankMost)); }

// Of an element, by GCCL's and PyTorch's names of types; 0: not known.
std::uint64_t bytes_of(const std::string& type) {
  if (const auto own = dtype_named(type)) return size_of(*own);
  static const std::map<std::string, std::uint64_t> kBytes = {{"Char", 1},  {"Byte", 1},  {"Bool", 1}, {"Short", 2},
                                                              {"Int", 4},   {"Long", 8},  {"Half", 2}, {"BFloat16", 2},
                                                              {"Float", 4}, {"Double", 8}};
  const auto found = kBytes.find(type);
  return found == kBytes.end() ? 0 : found->second;
}

std::uint32_t rank_of_job(const DumpedGroup& g, const json::Node& local) {
  return g.ranks[std::size_t(local.integer(0, std::int64_t(g.ranks.size()) - 1))];
}

// "allreduce #17 of 3 x f32" says its number once more.
std::string without_number(std::string text) {
  const std::size_t at = text.find(" #");
  if (at == text.npos) return text;
  const std::size_t end = text.find_first_not_of("0123456789", at + 2);
  return text.erase(at, (end == text.npos ? text.size() : end) - at);
}

// Calls in which each rank needs something of each other one.
bool needs_all(const json::Node& call) {
  static const std::vector<std::string> kCalls = {"allreduce", "allgather", "reduce_scatter", "alltoall"};
  const std::string name = call.at("call").string();
  return name == "barrier" || (call.at("count").integer(0, kNumberMost) > 0 &&
                               std::find(kCalls.begin(), kCalls.end(), name) != kCalls.end());
}

DumpOfRank own_dump(const json::Node& root) {
  root.schema("gccl/dump/1");
  DumpOfRank d;
  if (root.has("world")) d.world = root.at("world").string();
  d.rank = dumped_rank(root.at("rank"));
  d.reason = root.at("reason").string();
  d.written_ns = dumped_time(root, "written_ns");
  d.skipped = root.raw().contains("skipped");
  for (const json::Node& c : root.at("communicators").items()) {
    DumpedGroup g;
    g.name = c.at("id").string() + (c.at("world").boolean() ? " (all ranks)" : "");
    for (const json::Node& r : c.at("ranks").items(1)) g.ranks.push_back(dumped_rank(r));
    g.oldest_in_flight = d.written_ns > 0;  // as old as that: earlier dumps had the latest calls alone
    if (c.has("failure_code")) {
      g.failure = {.text = c.at("failure").string(),
                   .code = int(c.at("failure_code").integer(0, 1 << 16)),
                   .rank = dumped_rank(c.at("failure_rank"))};
      if (const auto ns = c.find("failure_unpolled_ns")) g.failure.unpolled_ns = ns->integer(0, kNumberMost);
      if (const auto ranks = c.find("failure_ranks"))
        for (const json::Node& r : ranks->items(1)) g.failure.ranks.push_back(dumped_rank(r));
    }
    if (const auto messages = c.find("messages")) {
      g.begun.emplace();
      for (const json::Node& m : messages->items())
        (*g.begun)[rank_of_job(g, m.at("peer"))] = {
            .sent = std::uint64_t(m.at("sent").integer(0, kNumberMost)),
            .received = std::uint64_t(m.at("received").integer(0, kNumberMost))};
    }
    for (const json::Node& call : c.at("calls").items()) {
      DumpedCall x;
      x.sequence = std::uint64_t(call.at("sequence").integer(0, kNumberMost));
      x.what = call.has("internal") ? call.at("text").string().substr(0, call.at("text").string().find(" ("))
                                    : without_number(call.at("text").string());
      if (call.has("lengths")) x.what += ", lengths " + call.at("lengths").string().substr(0, 8);
      x.completed = call.at("state").string() == "completed";
      if (const auto waits = call.find("waits")) x.waits = waits->boolean();
      x.needs_all = needs_all(call);
      x.began_ns = dumped_time(call, "began_ns");
      x.ended_ns = dumped_time(call, "ended_ns");
      if (const auto w = call.find("waits_for")) {
        x.waits_for = dumped_rank(w->at("world_rank"));
        x.waits_what = w->at("what").string();
      }
      g.calls.push_back(std::move(x));
    }
    for (const json::Node& t : c.at("transfers").items()) {
      const auto count = std::uint64_t(t.at("count").integer(0, kNumberMost));
      const std::string type = t.has("dtype") ? t.at("dtype").string() : "bytes";
      g.messages.push_back({.sends = t.at("call").string() == "send",
                            .peer = rank_of_job(g, t.at("peer")),
                            .what = fmt::format("{} x {}", count, type),
                            .bytes = count * bytes_of(type),
                            .completed = t.at("state").string() == "completed",
                            .waits = !t.has("waits") || t.at("waits").boolean(),
                            .number = t.has("number") ? std::uint64_t(t.at("number").integer(0, kNumberMost)) : 0});
    }
    d.groups.push_back(std::move(g));
  }
  return d;
}

// "[0, 1, 2]", or a list.
std::vector<std::uint32_t> dumped_ranks(const json::Node& n) {
  std::vector<std::uint32_t> ranks;
  const json::Node list = n.is_string() ? json::Node::parse(n.string(), n.file()) : n;
  for (const json::Node& r : list.items(1)) ranks.push_back(dumped_rank(r));
  return ranks;
}

// Calls whose lengths all ranks must agree on.
bool equal_lengths(const std::string& call) {
  static const std::vector<std::string> kCalls = {"all_reduce", "broadcast", "reduce", "_all_gather_base",
                                                  "_reduce_scatter_base"};
  return std::find(kCalls.begin(), kCalls.end(), call) != kCalls.end();
}

bool retired(const json::Node& e) { return e.has("retired") && e.at("retired").boolean(); }
// PyTorch's recorder for backends that do not record themselves retires an entry as it makes it, and leaves it
// scheduled for ever where the backend does not say when a call ends. What NCCL's retires has ended, whatever its
// state.
bool over(const json::Node& e) { return e.at("state").string() == "completed" || retired(e); }

// PyTorch's "recv 1<-0" and "send 1->2", of ranks in the group. Nothing where it is neither.
std::optional<DumpedMessage> message_of(const json::Node& e, const std::string& call, const DumpedGroup& g) {
  static const std::regex kForm("(send|recv) ?([0-9]{1,8})(->|<-)([0-9]{1,8})");
  std::smatch parts;
  if (!std::regex_match(call, parts, kForm)) return std::nullopt;
  const std::size_t peer = std::stoul(parts[4]);
  if (peer >= g.ranks.size()) return std::nullopt;
  const json::Node sizes = e.at("input_sizes"), types = e.at("input_dtypes");
  DumpedMessage m{.sends = parts[1] == "send",
                  .peer = g.ranks[peer],
                  .what = sizes.text() + " " + types.text(),
                  .completed = over(e)};
  if (const auto shapes = sizes.items(), names = types.items(); shapes.size() == 1 && names.size() == 1) {
    m.bytes = bytes_of(names[0].string());
    for (const json::Node& n : shapes[0].items()) m.bytes *= std::uint64_t(n.integer(0, kNumberMost));
  }
  return m;
}

bool number(const std::string& text) {
  return !text.empty() && text.size() <= 8 && text.find_first_not_of("0123456789") == text.npos;
}

// PyTorch's recorder for backends that do not record themselves has an operation's number in its group, from 0, where
// others have a call's, from 1: messages count in it, too.
bool numbers_operations(const json::Node& e) {
  if (!e.has("op_id") || !e.has("p2p_seq_id")) return false;
  const auto value = [&](const char* key) { return e.at(key).integer(0, kNumberMost); };
  return value("op_id") < value("collective_seq_id") + value("p2p_seq_id");
}

// By group the number of the rank's latest call, which is known after the entries of all its calls were forgotten. The
// keys of pg_status count the groups that this rank made; entries alone say which is whose. What is left over belongs
// together where there is one of each, or where names are numbers, which grow as groups are made.
std::map<std::string, std::uint64_t> calls_made(const json::Node& root, const std::vector<json::Node>& entries) {
  std::map<std::string, std::uint64_t> made;
  if (!root.has("pg_status") || std::ranges::any_of(entries, numbers_operations)) return made;
  const json::Node status = root.at("pg_status");
  const auto take = [&](const std::string& group, const std::string& key) {
    if (const json::Node s = status.at(key); s.has("last_enqueued_collective"))
      made[group] = std::uint64_t(std::max<std::int64_t>(0, s.at("last_enqueued_collective").integer(-1, kNumberMost)));
  };
  std::map<std::string, std::string> key_of;
  std::set<std::string> taken;
  for (const json::Node& e : entries) {
    if (!e.has("pg_id")) continue;
    const std::string key = e.at("pg_id").text(), group = e.at("process_group").items(2, 2)[0].string();
    if (status.has(key) && key_of.emplace(group, key).second) taken.insert(key);
  }
  for (const auto& [group, key] : key_of) take(group, key);
  std::vector<std::string> groups, keys;
  for (const auto& [group, config] : root.at("pg_config").members())
    if (!key_of.contains(group)) groups.push_back(group);
  for (const auto& [key, s] : status.members())
    if (!taken.contains(key)) keys.push_back(key);
  if (groups.size() != keys.size()) return made;
  const bool numbers = std::ranges::all_of(groups, number) && std::ranges::all_of(keys, number);
  if (groups.size() > 1 && !numbers) return made;
  if (numbers)
    for (auto* list : {&groups, &keys})
      std::ranges::sort(*list, {}, [](const std::string& text) { return std::stoul(text); });
  for (std::size_t i = 0; i < groups.size(); ++i) take(groups[i], keys[i]);
  return made;
}

DumpOfRank torch_dump(const json::Node& root, const std::filesystem::path& file) {
  DumpOfRank d;
  const std::string name = file.filename().string();
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || name.size() - digits > 8)
    throw json::InputError(
        fmt::format("{}: the name of a dump of PyTorch's form ends in its rank, as fr_7 does", file.string()));
  d.rank = std::uint32_t(std::stoul(name.substr(digits)));
  const std::vector<json::Node> entries = root.at("entries").items(0, 1u << 24);
  // PyTorch forgets its oldest records, or leaves out what has ended. GCCL keeps messages in flight alone.
  const bool ours = root.has("comm_lib_version") && root.at("comm_lib_version").string().starts_with("gccl");
  const bool all = !ours && !entries.empty() && entries.back().has("record_id") &&
                   entries.back().at("record_id").integer(0, kNumberMost) == std::int64_t(entries.size()) - 1;
  std::map<std::string, std::vector<const json::Node*>> entries_of;  // by group
  for (const json::Node& e : entries) entries_of[e.at("process_group").items(2, 2)[0].string()].push_back(&e);
  const std::map<std::string, std::uint64_t> made = calls_made(root, entries);
  std::map<std::string, std::optional<json::Node>> config_of;  // by group
  for (const auto& [id, config] : root.at("pg_config").members()) config_of.emplace(id, config);
  // PyTorch's Gloo keeps one group, without a name and with another one's ranks: no call is of that.
  config_of.erase("");
  for (const auto& [id, unused] : entries_of) config_of.try_emplace(id);
  for (const auto& [id, config] : config_of) {
    DumpedGroup g;
    g.name = id;
    g.made = all ? std::optional<std::uint64_t>(0) : std::nullopt;
    // After a message pg_status has its number instead.
    if (const auto found = made.find(id); found != made.end() && entries_of[id].empty()) g.made = found->second;
    g.all_messages = all;
    const auto desc =
        config ? config->find("desc") : std::optional(entries_of[id][0]->at("process_group").items(2, 2)[1]);
    if (desc && desc->string() != "undefined" && !desc->string().empty()) g.name += " (" + desc->string() + ")";
    if (config) g.ranks = dumped_ranks(config->at("ranks"));
    std::vector<std::int64_t> batch_of;  // of each message that is part of a batch its number; else -1
    bool scheduled = false;              // the latest call is
    bool ends_unknown = true;            // of all calls
    for (const json::Node* entry : entries_of[id]) {
      const json::Node& e = *entry;
      std::string call = e.at("profiling_name").string();
      call = call.substr(call.find(':') == call.npos ? 0 : call.find(':') + 1);
      const std::string state = e.at("state").string();
      // What was written before PyTorch said so has the names alone.
      const bool said = e.raw().contains("is_p2p"), message = said && e.at("is_p2p").boolean();
      if (auto m = message || !said ? message_of(e, call, g) : std::nullopt) {
        g.messages.push_back(std::move(*m));
        const bool part = state == "scheduled" && e.has("p2p_seq_id");
        batch_of.push_back(part ? e.at("p2p_seq_id").integer(0, kNumberMost) : -1);
        continue;
      }
      if (message) continue;
      const auto sequence = std::uint64_t(e.at("collective_seq_id").integer(0, kNumberMost));
      if (call == "coalesced") {
        // Parts of a batch stay as they were scheduled, and are done when it is. Parts of collectives are calls.
        const std::int64_t number = e.has("p2p_seq_id") ? e.at("p2p_seq_id").integer(0, kNumberMost) : -2;
        for (std::size_t i = g.messages.size(); i-- > 0 && batch_of[i] == number;) g.messages[i].completed = over(e);
        if (g.calls.empty() || !scheduled || g.calls.back().sequence != sequence) continue;
      }
      scheduled = state == "scheduled";
      DumpedCall x;
      x.sequence = sequence;
      x.what = call;
      if (equal_lengths(call)) x.what += " of " + e.at("input_sizes").text() + " " + e.at("input_dtypes").text();
      x.completed = over(e);
      ends_unknown = ends_unknown && scheduled && retired(e);
      x.began_ns = dumped_time(e, "time_created_ns");
      x.ended_ns = dumped_time(e, "time_discovered_completed_ns");
      if (!g.calls.empty() && g.calls.back().sequence == x.sequence) g.calls.pop_back();  // parts of one
      g.calls.push_back(std::move(x));
    }
    g.ends_known = g.calls.empty() || !ends_unknown;
    std::stable_sort(g.calls.begin(), g.calls.end(),
                     [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    d.groups.push_back(std::move(g));
  }
  return d;
}

}  // namespace

DumpOfRank read_dump(const std::filesystem::path& file) {
  const std::string bytes = json::read_text(file);
  const auto form = [&](const json::Node& root) {
    if (!root.is_object()) return torch_dump(root, file);
    if (root.raw().contains("gccl")) return own_dump(root.at("gccl"));  // GCCL's own form within PyTorch's says more
    return root.raw().contains("schema") ? own_dump(root) : torch_dump(root, file);
  };
  DumpOfRank d;
  if (!bytes.empty() && std::uint8_t(bytes[0]) == 0x80) {
    nlohmann::json document;
    std::string error;
    if (!json::from_pickle(bytes, &document, &error))
      throw json::InputError(fmt::format("{}: no dump that can be read: {}", file.string(), error));
    d = form(json::Node::of(std::move(document), file));
  } else {
    d = form(json::Node::parse(bytes, file));
  }
  d.file = file.string();
  return d;
}

}  // namespace gccl::sim
