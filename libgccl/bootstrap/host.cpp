#include "libgccl/bootstrap/host.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include "libgccl/base/machine.hpp"

namespace gccl {
namespace {

std::string file_or_none(const char* path) {
  const std::string file = file_identity(path);
  return file.empty() ? "none" : file;
}

std::string boot_or_name() {
  if (std::string id = boot_id(); !id.empty()) return id;
  char name[65] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string host_identity() {
  return fmt::format("{}/{}/{}", boot_or_name(), file_or_none("/dev/shm"), file_or_none(kProcessNamespace));
}

}  // namespace gccl
