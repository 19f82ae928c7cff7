#include "libgccl/communicator/links/link_watch.hpp"

#include <fmt/core.h>

#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/base/processors.hpp"

namespace gccl {
namespace {

std::string rate_text(double bytes_per_second) {
  const double mb = bytes_per_second / 1e6;
  return fmt::format("{:.{}f} MB/s", mb, mb < 10 ? 1 : 0);
}

std::string pairs_text(const std::vector<SlowPair>& pairs) {
  std::string text;
  for (const SlowPair& p : pairs)
    text += fmt::format("{}the link between rank {} and rank {}", text.empty() ? "" : ", ", p.a, p.b);
  return text;
}

}  // namespace

LinkWatch::LinkWatch(Members members, double factor, double modelled, bool avoids)
    : members_(std::move(members)), reports_(members_.rank, members_.size(), factor, modelled, avoids, now_ns()) {}

// Another thread than last time may have polled elsewhere in between.
fault::LinkReport LinkWatch::report(Ports& ports, std::int64_t now_ns) {
  fault::LinkReport r = reports_.report(ports.take_arrivals(), now_ns);
  const std::uint64_t starved = starved_ns(), before = starved_ns_;
  if (starved > 0) starved_ns_ = starved;  // 0: the system did not say, for want of a descriptor, say
  if (std::exchange(reporter_, std::this_thread::get_id()) == std::this_thread::get_id() && starved > before)
    r.starved_ns = starved - before;
  return r;
}

std::vector<fault::LinkHealth::Link> LinkWatch::take(std::span<const fault::LinkReport> reports) {
  const std::vector<fault::LinkHealth::Link> changed = reports_.take(reports);
  for (const fault::LinkHealth::Link& l : changed) {
    const bool concerned = members_.rank == 0 || members_.rank == l.from || members_.rank == l.to;
    log_line(concerned ? kLogWarnings : kLogInfo,
             fmt::format(
                 "{}: the link {}", members_.name(members_.rank),
                 l.slow ? "is slow " + text(l)
                        : fmt::format("from {} to {} is no longer slow", members_.name(l.from), members_.name(l.to))));
  }
  if (plans_change() && members_.rank == 0)
    log_line(kLogInfo, to_avoid().empty() ? "calls are planned as if no link were slow"
                                          : fmt::format("calls are planned around {}", pairs_text(to_avoid())));
  return changed;
}

std::string LinkWatch::text(const fault::LinkHealth::Link& l) const {
  return fmt::format("from {} to {}, {} where {} are expected", members_.name(l.from), members_.name(l.to),
                     rate_text(l.rate), rate_text(l.expected));
}

std::string LinkWatch::text() const {
  std::string all;
  for (const fault::LinkHealth::Link& l : health().links())
    if (l.slow) all += fmt::format("{}{}", all.empty() ? "" : "; ", text(l));
  return all;
}

Work LinkExchange::work(const Descriptor& before) {
  Work w;
  w.what = before;
  w.what.purpose = Purpose::links;
  w.what.bytes = 0;
  w.call = {.kind = Collective::allgather, .count = sizeof mine};
  w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(&mine);
  w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(all.data());
  return w;
}

}  // namespace gccl
