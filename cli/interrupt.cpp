#include "cli/interrupt.hpp"

#include <signal.h>

namespace gccl {
namespace {

sim::StopFlag stop_flag{false};
std::atomic<int> stop_signal{0};

void request_stop(int signal) {
  stop_signal = signal;
  stop_flag = true;
}

}  // namespace

const sim::StopFlag& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_flag;
}

int interrupted_code() { return stop_signal ? 128 + stop_signal : 0; }

}  // namespace gccl
