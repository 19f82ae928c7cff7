#include "libgccl/topology/description.hpp"

#include <fmt/core.h>

#include "gccl/gccl.h"
#include "libgccl/base/regular_file.hpp"

namespace gccl::topology {
namespace {

constexpr std::size_t kFileBytesMax = 64u << 20;

Status wrong(const std::string& file, const std::string& what) {
  return Status::error(fmt::format("{}: {}", file, what), GCCL_ERR_INVALID_ARGUMENT);
}

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
  std::string text;
  if (Status s = read_regular_file(file, kFileBytesMax, &text); !s.ok()) return s;
  return read_description(text, file, out);
}

}  // namespace gccl::topology
