// What cards this machine has.
#pragma once

#include "gccl/cpp20.hpp"

#include <string>
#include <vector>

#include "gccl/error.hpp"

namespace gccl {
inline namespace api {

// A thing that ranks run on. Today: the memory of one NUMA node and those of its processors that this process may use.
struct Device {
  int index;           // for DeviceManager::bind
  int kind;            // GCCL_DEVICE_CPU
  std::string name;    // the processor's model
  int numa, socket;    // the operating system's numbers; -1: unknown
  int cores, threads;  // physical cores, hardware threads
  std::uint64_t memory_bytes;
};

// The devices that this process may use. Needs no communicator; any thread may use it.
class DeviceManager {
 public:
  DeviceManager() {
    int count;
    check(GCCL_Device_count(&count));
    for (int i = 0; i < count; ++i) {
      GCCL_Device d{};
      d.struct_bytes = sizeof d;
      check(GCCL_Device_get(i, &d));
      devices_.push_back({i, d.kind, d.name, d.numa, d.socket, d.cores, d.threads, d.memory_bytes});
    }
  }

  // At least one.
  const std::vector<Device>& devices() const { return devices_; }
  // Binds the calling thread, and threads that it starts, to devices()[device].
  static void bind(int device) { check(GCCL_Device_bind(device)); }
  // The device that the calling thread is bound to; -1 when it may run on several.
  static int current() {
    int device;
    check(GCCL_Device_current(&device));
    return device;
  }

 private:
  std::vector<Device> devices_;
};

}  // namespace api
}  // namespace gccl
