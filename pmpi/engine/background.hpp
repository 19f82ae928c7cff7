// Keeps GCCL's calls moving while the program computes, or waits in a part of MPI that does not know of them: a file, a
// window, a collective that MPI answers.
#pragma once

namespace gccl::pmpi::background {

// Makes the thread, once: it looks every half millisecond whether the program still drives progress while calls are in
// flight, and does so itself when not. It calls GCCL only, never MPI, and nothing of the program's. It sleeps while
// nothing is in flight, and takes no signals. False when the system has no thread to give.
bool start();
// A call is in flight.
void needed();
void main_was_here();
void stop();

// While one of these lives, the thread keeps off: a blocking call combines with MPI's functions or the program's own,
// which only the program's threads may run, and its thread makes the progress.
class KeepOff {
 public:
  explicit KeepOff(bool needed);
  ~KeepOff();
  KeepOff(const KeepOff&) = delete;
  KeepOff& operator=(const KeepOff&) = delete;

 private:
  const bool needed_;
};

}  // namespace gccl::pmpi::background
