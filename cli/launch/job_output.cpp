#include "cli/launch/job_output.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gccl::launch {

void JobOutput::add(Fd out, Fd err, const std::string& tag) {
  for (auto& [fd, to] : {std::pair(&out, &out_), std::pair(&err, &err_)}) {
    fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    pipes_.push_back({std::move(*fd), TaggedStream(tag, to), INT64_MAX});
  }
}

void JobOutput::wait_for_room(std::vector<pollfd>& polled) const {
  for (const Output* o : {&out_, &err_}) polled.push_back({o->waits() ? o->descriptor() : -1, POLLOUT, 0});
}

void JobOutput::wait_for(std::vector<pollfd>& polled) const {
  wait_for_room(polled);
  for (const Pipe& p : pipes_)
    polled.push_back({p.lines.to().waits() || p.reads_left == 0 ? -1 : p.from.get(), POLLIN, 0});
}

bool JobOutput::pass_on(std::span<const pollfd> polled) {
  flush();
  const std::span<const pollfd> read = polled.subspan(kOutputs);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    Pipe& p = pipes_[i];
    const bool reads = read[i].revents != 0 && !p.lines.to().waits();
    if (reads) --p.reads_left;
    if (!(reads ? p.lines.drain(p.from.get()) : !p.lines.to().error())) continue;
    if (kept != i) pipes_[kept] = std::move(p);
    ++kept;
  }
  pipes_.erase(pipes_.begin() + std::ptrdiff_t(kept), pipes_.end());
  return std::ranges::any_of(read, [](const pollfd& p) { return p.revents != 0; });
}

void JobOutput::flush() {
  out_.flush();
  err_.flush();
}

void JobOutput::read_what_pipes_hold() {
  constexpr std::int64_t kPipeBytesMax = 1 << 20;  // fs.pipe-max-size
  for (Pipe& p : pipes_) p.reads_left = kPipeBytesMax / TaggedStream::kReadBytes;
}

void JobOutput::finish() {
  for (Pipe& p : pipes_) p.lines.finish();
}

int JobOutput::new_failure() {
  if (failed_) return 0;
  for (const Output* o : {&out_, &err_})
    if (o->error() != 0 && o->error() != EPIPE) {
      failed_ = o;
      return o->error();
    }
  return 0;
}

}  // namespace gccl::launch
