// One process that is several ranks, each on a device of its own.
#pragma once

#include "gccl/cpp20.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gccl/communicator.hpp"
#include "gccl/devices.hpp"

namespace gccl {
inline namespace api {

// Which ranks a process is, and on which devices.
struct DistConfig {
  std::vector<int> ranks;  // of this process
  std::vector<int>
      devices;    // devices[i] for ranks[i], numbers of DeviceManager; empty: in turns, i modulo their number
  Config config;  // its rank is not looked at, its allgather must be empty
};

// A rank as every rank sees it.
struct RankInfo {
  int rank;
  int node;        // numbered from 0 in the order of their lowest ranks
  int local_rank;  // among the ranks of its node, by rank
  int device;      // as its process numbers them
};

// The ranks of this process. The destructor frees their communicators, all at once as one thread could not.
class CommunicationGroup {
 public:
  // Collective over all ranks of the job, here and in other processes.
  explicit CommunicationGroup(const DistConfig& dist) : devices_(dist.devices) {
    api_detail::expect_no_group(
        "a CommunicationGroup was made in a group of calls, which would carry its exchange out "
        "too late: expected it outside of groups");
    const int n = int(dist.ranks.size());
    const int devices = int(DeviceManager().devices().size());
    if (devices_.empty())
      for (int i = 0; i < n; ++i) devices_.push_back(i % devices);
    if (devices_.size() != dist.ranks.size())
      api_detail::wrong("communication group", std::to_string(devices_.size()) + " devices for " + std::to_string(n) +
                                                   " ranks, expected one for each");
    for (const int d : devices_)
      if (d < 0 || d >= devices)
        api_detail::wrong("communication group",
                          "device " + std::to_string(d) + ", expected 0 to " + std::to_string(devices - 1));
    const GCCL_Config c = dist.config.c();
    std::vector<GCCL_Comm> worlds(dist.ranks.size(), GCCL_COMM_NULL);
    check(GCCL_Init_ranks(worlds.data(), dist.ranks.data(), n, &c));
    for (const GCCL_Comm w : worlds) worlds_.emplace_back(w);
    try {
      exchange_infos();
    } catch (...) {
      abort();
      free();
      throw;
    }
  }
  CommunicationGroup(CommunicationGroup&&) = default;
  CommunicationGroup& operator=(CommunicationGroup&&) = delete;
  ~CommunicationGroup() {
    if (std::uncaught_exceptions() > exceptions_) abort();
    free();
  }

  // Ranks of the job; ranks of this process, in the order of DistConfig.
  int size() const { return int(infos_.size()); }
  int local_size() const { return int(worlds_.size()); }
  const Communicator& operator[](int i) const { return worlds_.at(std::size_t(i)); }
  int device(int i) const { return devices_.at(std::size_t(i)); }
  // By rank.
  const std::vector<RankInfo>& infos() const { return infos_; }

  // Calls f(i, communicator) for each rank of this process, one after the other in this thread; the blocking calls that
  // they make are carried out together, after the last of them: what the calls were given must last until then, as in
  // gccl::grouped, and split, create and free are for in_parallel (GCCL_Group_start).
  template <class F>
  void grouped(F f) const {
    api::grouped([&] {
      for (int i = 0; i < local_size(); ++i) f(i, (*this)[i]);
    });
  }
  // Calls f(i, communicator) for each rank of this process, each in a thread of its own that is bound to the rank's
  // device. Returns when all have ended. An exception of one aborts all communicators; the first is thrown on.
  template <class F>
  void in_parallel(F f) const {
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::exception_ptr first;
    const auto failed = [&] {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      abort();
    };
    try {
      for (int i = 0; i < local_size(); ++i)
        threads.emplace_back([&, i] {
          try {
            DeviceManager::bind(device(i));
            f(i, (*this)[i]);
          } catch (...) {
            failed();
          }
        });
    } catch (...) {  // no thread for this rank
      failed();
    }
    for (std::thread& t : threads) t.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  void exchange_infos() {
    const std::size_t n = std::size_t(worlds_.front().size());
    const std::vector<int> nodes = worlds_.front().nodes();
    std::vector<std::vector<int>> device_of_rank(worlds_.size(), std::vector<int>(n));
    grouped([&](int i, const Communicator& c) {
      c.allgather(std::span(&devices_[std::size_t(i)], 1), device_of_rank[std::size_t(i)]);
    });
    std::vector<int> ranks_on(n, 0);
    for (std::size_t r = 0; r < n; ++r)
      infos_.push_back({int(r), nodes[r], ranks_on[std::size_t(nodes[r])]++, device_of_rank.front()[r]});
  }
  void abort() const noexcept {
    for (const Communicator& c : worlds_) GCCL_Abort(c.get(), 1);
  }
  void free() noexcept {
    std::vector<std::thread> threads;
    try {
      for (Communicator& c : worlds_) threads.emplace_back([&c] { c = Communicator(); });
    } catch (...) {  // no thread: one after the other, and so without waiting
      abort();
    }
    for (std::thread& t : threads) t.join();
    worlds_.clear();
  }

  std::vector<Communicator> worlds_;
  std::vector<int> devices_;
  std::vector<RankInfo> infos_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace api
}  // namespace gccl
