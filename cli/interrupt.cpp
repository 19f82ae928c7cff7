#include "cli/interrupt.hpp"

#include <signal.h>

namespace gccl {
namespace {

Interrupts own;
Interrupts* noted = &own;

void request_stop(int signal) {
  noted->signal = signal;
  noted->stop = true;
}

}  // namespace

const sim::StopFlag& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return noted->stop;
}

int interrupted_code() { return noted->signal ? 128 + noted->signal : 0; }

Interrupts& interrupts() { return *noted; }
void share_interrupts(Interrupts& with) { noted = &with; }

}  // namespace gccl
