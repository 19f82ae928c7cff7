#include "libgccl/net/refusal_log.hpp"

#include <fmt/core.h>

#include <utility>

#include "libgccl/base/log.hpp"

namespace gccl {

RefusalLog::RefusalLog(std::string who, std::function<void(const std::string&)> write)
    : who_(std::move(who)), write_(std::move(write)) {
  if (!write_) write_ = [](const std::string& line) { log_line(kLogWarnings, line); };
}

void RefusalLog::refused(const SocketAddress& peer, const std::string& reason, Clock::time_point now) {
  if (now - period_begin_ >= kPeriod) {
    if (unreported_ > 0) write_(fmt::format("{}: refused {} more", who_, unreported_));
    period_begin_ = now, lines_ = 0, unreported_ = 0;
  }
  if (lines_ == kLinesPerPeriod) {
    ++unreported_;
    return;
  }
  ++lines_;
  write_(fmt::format("{}: refused {}: {}", who_, peer.valid() ? peer.text() : "a connection", reason));
}

}  // namespace gccl
