// The short way of blocking calls: most of a program's calls end here, within the thread that makes them and without an
// operation.
#pragma once

#include <array>

#include "libgccl/communicator/operations.hpp"

namespace gccl {

// With the communicator's lock held.
class ShortCalls {
 public:
  // Whose calls they are, handed in with each one: references kept here cost the shortest call three loads. The owner
  // is named by operations, and not looked into.
  struct Of {
    CommunicatorCore& owner;
    Team& team;
    Recorder& recorder;
    Operations& operations;
  };

  // A blocking call in all that decides how it is carried out.
  struct Key {
    std::uint8_t kind = 255;
    bool in_place = false;
    GCCL_Dtype dtype = 0;
    GCCL_Op op = 0;
    Rank root = 0;
    Count count = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Repeats the last call of its kind, when it was this one and its messages were small. False, and nothing done, when
  // it was not; else it is complete, or goes on as *later.
  bool repeat(Of of, const Key& key, const void* input, void* output, Operation** later);
  // A short send or receive while nothing else is in flight. False, and nothing done, where it is not that, or not
  // there within microseconds, or not what is expected.
  static bool transfer(Of of, const Descriptor& what, void* data);
  // Carries out a plan that has a program; `key`, when given, is what repeat() may repeat. Null where it is complete,
  // else as what it goes on.
  Operation* run(Of of, Work&& work, const std::shared_ptr<PreparedPlan>& plan, const Key* key);
  // What has been planned is no more.
  void forget() { repeats_ = {}; }

 private:
  static Operation* go_on(CommunicatorCore& owner, Operations& operations, Work&& work, const Replay& replay,
                          std::shared_ptr<PreparedPlan> plan, std::int64_t from_ns);

  struct Repeat {
    Key key;
    std::shared_ptr<PreparedPlan> plan;
    Work work;  // as it was, without its buffers
    std::uint64_t signature = 0;
    History::Call call{};
  };
  std::array<Repeat, 16> repeats_;  // by kind
};

}  // namespace gccl
