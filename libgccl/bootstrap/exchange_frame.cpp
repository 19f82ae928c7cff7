#include "libgccl/bootstrap/exchange_frame.hpp"

#include <algorithm>

#include "gccl/gccl.h"

namespace gccl {
namespace {
constexpr std::string_view kContribution = "gcc1", kAnswer = "gca1";
}

std::vector<std::byte> Contribution::head() const {
  return BytesOut().raw(kContribution).u64(std::uint64_t(limit_ms)).u64(std::uint64_t(remaining_ms)).u64(bytes).take();
}

bool Contribution::parse(std::span<const std::byte> head, Contribution* out) {
  if (head.size() != kHeadBytes || !starts_with(head, kContribution)) return false;
  BytesIn in(head.subspan(kContribution.size()));
  out->limit_ms = std::int64_t(in.u64());
  out->remaining_ms = std::int64_t(in.u64());
  out->bytes = in.u64();
  return out->limit_ms >= 0 && out->remaining_ms >= 0;
}

std::vector<std::byte> Answer::head() const { return BytesOut().raw(kAnswer).u32(code).u64(bytes).take(); }

bool Answer::parse(std::span<const std::byte> head, std::uint64_t data_bytes, Answer* out) {
  if (head.size() != kHeadBytes || !starts_with(head, kAnswer)) return false;
  BytesIn in(head.subspan(kAnswer.size()));
  out->code = in.u32();
  out->bytes = in.u64();
  return out->code == 0 ? out->bytes == data_bytes : out->bytes <= kTextBytesMax;
}

Status Answer::status(std::span<const std::byte> text) const {
  return Status::error(to_text(text), is_error(int(code)) ? int(code) : GCCL_ERR_REMOTE);
}

std::vector<std::byte> error_answer(const Status& status) {
  const auto text = std::string_view(status.text()).substr(0, Answer::kTextBytesMax);
  return BytesOut().raw(Answer{std::uint32_t(status.code()), text.size()}.head()).raw(text).take();
}

}  // namespace gccl
