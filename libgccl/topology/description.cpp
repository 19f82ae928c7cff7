#include "libgccl/topology/description.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gccl/gccl.h"

namespace gccl::topology {
namespace {

constexpr std::size_t kFileBytesMax = 64u << 20;

Status wrong(const std::string& file, const std::string& what) {
  return Status::error(fmt::format("{}: {}", file, what), GCCL_ERR_INVALID_ARGUMENT);
}

struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

}  // namespace

Status read_description(std::string_view text, const std::string& file, Description* out) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);  // UTF-8's byte order mark
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return wrong(file, "is empty, expected a cluster description or NCCL's topology XML");
  if (text[first] == '{') return read_cluster_json(text, file, out);
  if (text[first] == '<') return read_nccl_xml(text, file, out);
  return wrong(file, "begins with neither '{' nor '<', expected a cluster description (JSON) or NCCL's topology XML");
}

Status load_description(const std::string& file, Description* out) {
  const std::unique_ptr<std::FILE, Close> f(std::fopen(file.c_str(), "rbe"));
  if (!f) return wrong(file, std::strerror(errno));
  std::string text;
  char piece[65536];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, f.get())) > 0;) {
    text.append(piece, n);
    if (text.size() > kFileBytesMax) return wrong(file, "has more than 64 MiB, too much for a topology");
  }
  if (std::ferror(f.get())) return wrong(file, std::strerror(errno));
  return read_description(text, file, out);
}

}  // namespace gccl::topology
