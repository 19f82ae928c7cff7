#include "cli/resumed.hpp"

#include <fmt/format.h>

#include <set>

#include "cli/output.hpp"

namespace gccl {

void say_known(const sim::Journal& journal, const std::vector<std::string>& keys) {
  if (journal.entries() + journal.damaged() == 0) return;
  std::set<std::string> used;
  std::size_t known = 0;
  for (const std::string& key : keys)
    if (journal.had(key)) ++known, used.insert(key);
  std::string text =
      fmt::format("{}: {} of {} points were finished before", journal.file().string(), known, keys.size());
  if (const std::size_t other = journal.entries() - used.size())
    text += fmt::format("; {} entr{} of another scenario, cluster, seed or program {} not used", other,
                        other == 1 ? "y" : "ies", other == 1 ? "is" : "are");
  if (journal.damaged())
    text += fmt::format("; {} damaged line{} left out", journal.damaged(), journal.damaged() == 1 ? " is" : "s are");
  write_stderr(fmt::format("gccl: {}\n", printable_line(text)));
}

void say_unwritten(const sim::Journal& journal) {
  if (!journal.error().empty())
    write_stderr(fmt::format("gccl: {}: cannot be written: {}; the points finished since are not in it\n",
                             printable_line(journal.file().string()), journal.error()));
}

}  // namespace gccl
