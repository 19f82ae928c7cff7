// Numbers and strings as bytes in a message, big-endian; and back, from bytes that may be anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

class BytesOut {
 public:
  BytesOut& u8(std::uint8_t x) { return number(x, 1); }
  BytesOut& u16(std::uint16_t x) { return number(x, 2); }
  BytesOut& u32(std::uint32_t x) { return number(x, 4); }
  BytesOut& u64(std::uint64_t x) { return number(x, 8); }
  BytesOut& raw(std::span<const std::byte> x) {
    bytes_.insert(bytes_.end(), x.begin(), x.end());
    return *this;
  }
  BytesOut& raw(std::string_view x) { return raw(std::as_bytes(std::span(x))); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  BytesOut& number(std::uint64_t x, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes_.push_back(std::byte(x >> shift));
    return *this;
  }
  std::vector<std::byte> bytes_;
};

// Reading past the end gives zeros, and !ok() from then on.
class BytesIn {
 public:
  explicit BytesIn(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::uint8_t u8() { return std::uint8_t(number(1)); }
  std::uint16_t u16() { return std::uint16_t(number(2)); }
  std::uint32_t u32() { return std::uint32_t(number(4)); }
  std::uint64_t u64() { return number(8); }
  // A view into the bytes; empty past the end.
  std::span<const std::byte> raw(std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const auto head = rest_.first(size);
    rest_ = rest_.subspan(size);
    return head;
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::uint64_t number(std::size_t size) {
    std::uint64_t x = 0;
    for (const std::byte b : raw(size)) x = x << 8 | std::uint64_t(b);
    return x;
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

inline bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  const auto prefix = std::as_bytes(std::span(text));
  return bytes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gccl
