#include "libgccl/bootstrap/store_url.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <string_view>

namespace gccl {

Status parse_store(const std::string& url, StoreUrl* out) {
  constexpr std::string_view kTcp = "tcp://", kFile = "file://";
  *out = {};
  const std::string wrong = fmt::format("the store is \"{}\", expected \"tcp://HOST:PORT\" or \"file:///PATH\"", url);
  if (url.starts_with(kTcp)) {
    HostPort at;
    if (Status s = parse_host_port(std::string_view(url).substr(kTcp.size()), &at); !s.ok())
      return invalid(fmt::format("{}: {}", wrong, s.text()));
    out->at = std::move(at);
    return {};
  }
  if (!url.starts_with(kFile)) return invalid(wrong);
  const std::string path = url.substr(kFile.size());
  if (!path.starts_with("/")) return invalid(fmt::format("{}: the path must be absolute", wrong));
  if (path == "/") return invalid(fmt::format("{}: the path is missing", wrong));
  out->prefix = file_store_prefix(path);
  return {};
}

std::string file_store_prefix(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  return path + (path.ends_with('/') ? "gccl" : "/gccl");
}

}  // namespace gccl
