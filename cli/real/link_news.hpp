// What the library says in this process's log about slow links.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::real {

// By ranks of the communicator.
struct LinkNews {
  enum class What : std::uint8_t { slow, recovered, planned } what{};
  Rank from = 0, to = 0;                          // of a link
  double rate = 0, expected = 0;                  // bytes a second, where it is slow
  std::vector<std::pair<Rank, Rank>> pairs = {};  // planned around
};

// Of one line; nothing where it is about something else.
std::optional<LinkNews> link_news(std::string_view line);

// Standard error of this process, which the coordinator keeps in memory (rank_log.hpp).
class OwnLog {
 public:
  // What was said since the last time.
  std::vector<LinkNews> take();

 private:
  std::size_t read_ = 0;
  std::string rest_;  // of a line
};

}  // namespace gccl::real
