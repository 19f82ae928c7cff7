#include "sim/scenario/read/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libgccl/schedule/layout.hpp"
#include "sim/scenario/read/groups.hpp"
#include "sim/scenario/read/renamed.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr int kLinkSlowMax = 1000;  // as of GCCL_LINK_SLOW
constexpr Nanos kYear = 366ll * 24 * 3600 * 1'000'000'000;

// What a kind has besides "kind", "at_us", "after", "every_us", "until_us".
enum Key : unsigned {
  kRank = 1,  // "rank", or "ranks" for several
  kNode = 2,
  kCard = 4,
  kNic = 8,
  kLink = 16,
  kBetween = 32,  // "between": two ranks
  kSide = 64,     // "ranks": one side
  kOneWay = 128,
  kSwitch = 256,
  kFor = 512,
  kProbability = 1024,
  kSlowdown = 2048,
  kBandwidth = 4096,  // "bandwidth_percent", "latency_us"
  kOne = 8192,        // "rank" alone
};
constexpr unsigned kChance = kProbability | kBetween | kOne | kOneWay | kFor;
constexpr unsigned kKeysOf[] = {
    kRank,                              // rank_crash
    kRank | kFor,                       // pause
    kNode,                              // node_loss
    kCard,                              // card_loss
    kNic | kFor,                        // nic_down
    kLink | kBetween | kOneWay | kFor,  // link_down
    kLink | kNic | kFor | kBandwidth,   // link_degraded
    kChance,
    kChance,
    kChance,
    kChance,                   // loss, duplication, reordering, corruption
    kSide | kOneWay | kFor,    // partition
    kSwitch | kFor,            // switch_loss
    kRank | kSlowdown | kFor,  // straggler
    kRank,                     // late_start
    kChance,                   // agreement_loss
};
static_assert(std::size(kKeysOf) == std::size_t(FaultKind::agreement_loss) + 1);

std::vector<std::string_view> keys_of(unsigned has) {
  std::vector<std::string_view> keys{"kind", "at_us", "after", "every_us", "until_us"};
  const auto add = [&](unsigned key, std::initializer_list<std::string_view> names) {
    if (has & key) keys.insert(keys.end(), names);
  };
  add(kRank, {"rank", "ranks"});
  add(kOne, {"rank"});
  add(kNode, {"node"});
  add(kCard, {"card"});
  add(kNic, {"nic"});
  add(kLink, {"link"});
  add(kBetween, {"between"});
  add(kSide, {"ranks"});
  add(kOneWay, {"one_way"});
  add(kSwitch, {"switch"});
  add(kFor, {"for_us"});
  add(kProbability, {"probability"});
  add(kSlowdown, {"slowdown"});
  add(kBandwidth, {"bandwidth_percent", "latency_us"});
  return keys;
}

Nanos time_of(const json::Node& node) {
  const Nanos t = node.nanos(1e3);
  if (t > kYear) node.fail("is longer than a year");
  return t;
}

Rank read_rank(const json::Node& node) { return Rank(node.integer(0, kRanksMax - 1)); }

std::vector<Rank> read_ranks(const json::Node& node, std::size_t least, std::size_t most) {
  std::vector<Rank> all;
  for (const json::Node& item : node.items(least, most)) {
    all.push_back(read_rank(item));
    if (std::count(all.begin(), all.end(), all.back()) > 1) item.fail(fmt::format("rank {} appears twice", all.back()));
  }
  return all;
}

FaultMoment read_moment(const json::Node& node) {
  std::vector<std::string_view> keys{"rank"};
  keys.insert(keys.end(), moment_names().begin(), moment_names().end());
  node.allow(keys);
  FaultMoment m{.rank = read_rank(node.at("rank"))};
  bool found = false;
  for (std::size_t i = 0; i < moment_names().size(); ++i)
    if (const auto n = node.find(moment_names()[i])) {
      if (std::exchange(found, true)) n->fail("is a second moment; one fault has one");
      m.what = FaultMoment::What(i);
      m.count = m.what == FaultMoment::What::bytes ? std::max<std::uint64_t>(1, n->bytes())
                                                   : std::uint64_t(n->integer(1, INT64_MAX));
    }
  if (!found)
    node.fail("names no moment, expected one of \"operations\", \"steps\", \"bytes\", \"agreements\", \"epochs\"");
  return m;
}

void read_when(const json::Node& node, Fault* f) {
  if (const auto n = node.find("at_us")) f->at = time_of(*n);
  if (const auto n = node.find("after")) f->after = read_moment(*n);
  if (const auto n = node.find("every_us")) {
    f->every = time_of(*n);
    if (f->every == 0) n->fail("found 0, expected a mean time between two faults");
    if (f->after) n->fail("is drawn over time; \"after\" is a moment of a rank, state one of the two");
    f->until = time_of(node.at("until_us"));
    if (f->until < f->at) node.at("until_us").fail("is before \"at_us\"");
    if (const Nanos least = (f->until - f->at) / kDrawnMax; f->every < least)
      n->fail(fmt::format("found {:.6g}, expected {:.6g} or more: \"until_us\" lets more than {} faults come",
                          double(f->every) / 1e3, double(least) / 1e3, kDrawnMax));
  } else if (const auto until = node.find("until_us")) {
    until->fail("belongs to \"every_us\", which is not stated; a fault's length is \"for_us\"");
  }
}

void read_whom(const json::Node& node, unsigned has, Fault* f) {
  const auto rank = node.find("rank"), ranks = node.find("ranks"), between = node.find("between");
  if (int(rank.has_value()) + int(ranks.has_value()) + int(between.has_value()) > 1)
    node.fail("has several of \"rank\", \"ranks\" and \"between\", expected one");
  if (rank) f->ranks = {read_rank(*rank)};
  if (ranks) f->ranks = read_ranks(*ranks, 1, kRanksMax);
  if (between) f->ranks = read_ranks(*between, 2, 2);
  for (const char* key : {"nic", "link", "switch"})
    if (const auto n = node.find(key)) {
      if (!f->link.empty()) n->fail("is a second place; one fault has one");
      if (between) n->fail("is a place in the cluster; \"between\" names two ranks, state one of the two");
      f->link = n->string();
      if (f->link.empty()) n->fail("found an empty name");
    }
  for (const char* key : {"node", "card"})
    if (const auto n = node.find(key)) f->place = std::uint32_t(n->integer(0, INT32_MAX));
  if (const auto n = node.find("one_way")) f->one_way = n->boolean();
  const bool open = f->ranks.empty() && f->link.empty() && !f->place;
  if (open && !f->drawn() && !(has & kProbability)) {
    const auto keys = keys_of(has & (kRank | kNode | kCard | kNic | kLink | kBetween | kSide | kSwitch));
    node.fail(fmt::format("does not say whom it hits, expected {}{}", fmt::join(keys.begin() + 5, keys.end(), ", "),
                          "; a fault that is drawn (\"every_us\") may leave that open"));
  }
}

Fault read_fault(const json::Node& node) {
  Fault f;
  f.kind = FaultKind(node.at("kind").one_of(fault_names()));
  const unsigned has = kKeysOf[std::size_t(f.kind)];
  node.allow(keys_of(has));
  read_when(node, &f);
  read_whom(node, has, &f);
  if (const auto n = node.find("for_us")) {
    f.lasts = time_of(*n);
    if (f.lasts == 0)
      n->fail(f.kind == FaultKind::pause ? "found 0, expected a time above 0"
                                         : "found 0; leave it out where it lasts for good");
  }
  if (f.kind == FaultKind::pause && f.lasts == 0) node.at("for_us");
  if (f.kind == FaultKind::late_start && f.after)
    node.at("after").fail("a process that starts late has no moments yet");
  if (has & kProbability) f.amount = node.at("probability").number(0, 1);
  if (has & kSlowdown) f.amount = node.at("slowdown").number(1, 1e6);
  if (has & kBandwidth) {
    const auto bandwidth = node.find("bandwidth_percent"), latency = node.find("latency_us");
    if (!bandwidth && !latency)
      node.fail("expected \"bandwidth_percent\" (of what it was), \"latency_us\" (added) or both");
    f.amount = bandwidth ? bandwidth->number(0.001, 100) / 100 : 1;
    if (latency) f.latency = time_of(*latency);
  }
  return f;
}

}  // namespace

std::vector<std::pair<Fault, json::Node>> read_faults(const json::Node& node) {
  std::vector<std::pair<Fault, json::Node>> all;
  for (const json::Node& item : node.items(0, kFaultsMax)) {
    Fault f = read_fault(item);
    f.stated = all.size();
    all.emplace_back(std::move(f), item);
  }
  return all;
}

RecoverySettings read_recovery(const json::Node& node) {
  node.allow({"policy", "detection_us", "helpers", "system_reports", "spares", "replace_after_us", "reroute_after_us",
              "wire", "frame_bytes", "credits", "link_slow", "link_avoid", "heal_us", "limit_us"},
             {"system_tells"});
  RecoverySettings s;
  if (const auto n = node.find("policy")) s.policy = FailurePolicy(n->one_of(policy_names()));
  if (const auto n = node.find("detection_us")) {
    s.detection = time_of(*n);
    if (s.detection < 1'000'000) n->fail("is shorter than 1 ms, which no detector of silence can hold");
  }
  if (const auto n = node.find("helpers")) s.helpers = std::uint32_t(n->integer(1, 64));
  if (const auto n = find_either(node, "system_reports", "system_tells")) s.system_reports = n->boolean();
  if (const auto n = node.find("spares")) {
    if (s.policy != FailurePolicy::spare) n->fail("belongs to the policy \"spare\"");
    s.spares = Rank(n->integer(1, kRanksMax));
  } else if (s.policy == FailurePolicy::spare) {
    node.at("spares");
  }
  if (const auto n = node.find("replace_after_us")) s.replace_after = time_of(*n);
  if (const auto n = node.find("reroute_after_us")) s.reroute_after = time_of(*n);
  if (const auto n = node.find("wire")) {
    static constexpr std::string_view kWires[] = {"datagrams", "connections"};
    s.connections = n->one_of(kWires) == 1;
  }
  if (const auto n = node.find("frame_bytes")) s.frame_bytes = std::uint32_t(n->bytes(1 << 24));
  if (s.frame_bytes == 0) node.at("frame_bytes").fail("found 0, expected at least 1");
  if (const auto n = node.find("credits")) s.credits = std::uint32_t(n->integer(1, 1 << 16));
  if (const auto n = node.find("link_slow")) {
    s.link_slow = std::uint32_t(n->integer(0, kLinkSlowMax));
    if (s.link_slow == 1) n->fail("found 1, expected 0 (nobody looks) or a factor of 2 at least");
  }
  if (const auto n = node.find("link_avoid")) {
    if (s.link_slow == 0) n->fail("is about links that are slow, which nobody looks for; state \"link_slow\"");
    s.link_avoid = n->boolean();
  }
  if (const auto n = node.find("heal_us")) s.heal = time_of(*n);
  if (const auto n = node.find("limit_us")) s.limit = time_of(*n);
  return s;
}

Json fault_json(const Fault& f) {
  const unsigned has = kKeysOf[std::size_t(f.kind)];
  const auto us = [](Nanos t) { return t % 1000 == 0 ? Json(t / 1000) : Json(double(t) / 1e3); };
  Json j = {{"kind", name(f.kind)}};
  if (f.at > 0 || !f.after) j["at_us"] = us(f.at);
  if (f.after) {
    j["after"] = {{"rank", f.after->rank}};
    j["after"][std::string(moment_names()[std::size_t(f.after->what)])] = f.after->count;
  }
  if (f.every > 0) j["every_us"] = us(f.every), j["until_us"] = us(f.until);
  if (f.lasts > 0) j["for_us"] = us(f.lasts);
  if (f.ranks.size() == 2 && (has & kBetween))
    j["between"] = f.ranks;
  else if (f.ranks.size() == 1 && (has & (kRank | kOne)))
    j["rank"] = f.ranks[0];
  else if (!f.ranks.empty())
    j["ranks"] = f.ranks;
  if (f.place) j[has & kNode ? "node" : "card"] = *f.place;
  if (!f.link.empty()) {
    const bool nic = (has & kNic) && f.link.find("->") == std::string::npos;
    j[has & kSwitch ? "switch" : nic ? "nic" : "link"] = f.link;
  }
  if (f.one_way) j["one_way"] = true;
  if (has & kProbability) j["probability"] = f.amount;
  if (has & kSlowdown) j["slowdown"] = f.amount;
  if (has & kBandwidth) {
    j["bandwidth_percent"] = f.amount * 100;
    if (f.latency > 0) j["latency_us"] = us(f.latency);
  }
  return j;
}

}  // namespace gccl::sim
