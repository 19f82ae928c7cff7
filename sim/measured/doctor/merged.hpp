// The dumps of a job side by side, and what is looked for in them. For doctor's own files alone.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/measured/doctor/doctor.hpp"

namespace gccl::sim {

using Ranks = std::set<std::uint32_t>;

// A group, with what each rank did in it.
struct MergedGroup {
  std::string name;
  Ranks ranks;
  std::map<std::uint32_t, const DumpedGroup*> of;

  const DumpedCall* call(std::uint32_t rank, std::uint64_t sequence) const;
  // The number of the rank's latest call; none: its dump does not say.
  std::optional<std::uint64_t> last(std::uint32_t rank) const;
  bool has_failed() const;
  // By a call that had ended on one rank before it began on another, which it cannot.
  bool clocks_differ() const;
};

// All dumps of one job. Throws json::InputError where they do not belong together.
struct MergedDumps {
  explicit MergedDumps(const std::vector<DumpOfRank>& dumps);

  std::map<std::uint32_t, const DumpOfRank*> of;
  std::vector<MergedGroup> groups;
  // Ranks that made calls after their dump was written, without which others' would not have ended. Where they were
  // when the others wrote theirs is not known.
  Ranks outdated;
  std::vector<MergedGroup> current;  // the groups without what those said

  bool says_where(std::uint32_t rank) const { return of.contains(rank) && !outdated.contains(rank); }
  // Where a rank waits instead, by its messages and its calls, but not those in one group.
  std::string elsewhere(const MergedGroup* but, std::uint32_t rank) const;
  // Why nobody knows where they are, and what they have done in a group that their dumps do not have.
  std::string why_silent(const Ranks& ranks) const;
  std::string why_unknown(const Ranks& ranks) const;
};

struct Findings {
  nlohmann::json list = nlohmann::json::array();
  std::map<std::uint32_t, Ranks> wait_for;  // of ranks that wait: for whom
  void add(const char* kind, const MergedGroup& g, std::uint64_t sequence, const Ranks& ranks,
           const std::string& words) {
    list.push_back({{"kind", kind}, {"group", g.name}, {"sequence", sequence}, {"ranks", ranks}, {"text", words}});
  }
};

// True where some rank calls something else than the others: what comes after that says nothing.
bool find_difference(const MergedGroup& g, Findings& out);
// The first call that has not ended everywhere, and why. `idle`: where no thread is known to wait for it.
void find_waiting(const MergedDumps& all, const MergedGroup& g, Findings& out, Findings& idle);
// The same of messages: of those between two ranks the first says what is wrong.
void find_waiting_messages(const MergedDumps& all, const MergedGroup& g, Findings& out, Findings& idle);
void find_slow(const MergedGroup& g, Findings& out);

// "rank 1", "ranks 1, 2"; what fits to one and to many.
std::string ranks_text(const Ranks& ranks);
const char* verb(const Ranks& ranks, const char* one, const char* many);
// "to send 10 x f32 to rank 1"
std::string waiting_text(const DumpedMessage& m);

}  // namespace gccl::sim
