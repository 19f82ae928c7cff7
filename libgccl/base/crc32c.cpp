#include "libgccl/base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define GCCL_CRC32C_TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define GCCL_CRC32C_TARGET __attribute__((target("+crc")))
#endif

namespace gccl {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 with its bits reversed

constexpr std::array<std::uint32_t, 256> kByteTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}();

#ifdef GCCL_CRC32C_TARGET

// What `Bytes` zero bytes make of a register: linear over its bits, so one table for each of its four bytes.
struct ZeroBytes {
  std::uint32_t table[4][256];

  explicit constexpr ZeroBytes(std::size_t bytes) : table() {
    std::uint32_t column[32] = {};  // of the linear map: what becomes of each bit; first for one zero byte
    for (int bit = 0; bit < 32; ++bit) {
      const std::uint32_t crc = std::uint32_t(1) << bit;
      column[bit] = (crc >> 8) ^ kByteTable[crc & 255];
    }
    for (; bytes > 1; bytes /= 2) {  // a power of two: the map is squared
      std::uint32_t squared[32] = {};
      for (int bit = 0; bit < 32; ++bit) squared[bit] = apply(column, column[bit]);
      for (int bit = 0; bit < 32; ++bit) column[bit] = squared[bit];
    }
    for (int byte = 0; byte < 4; ++byte)
      for (std::uint32_t i = 0; i < 256; ++i) table[byte][i] = apply(column, i << (8 * byte));
  }
  static constexpr std::uint32_t apply(const std::uint32_t* column, std::uint32_t x) {
    std::uint32_t sum = 0;
    for (int bit = 0; x; x >>= 1, ++bit)
      if (x & 1) sum ^= column[bit];
    return sum;
  }
  std::uint32_t operator()(std::uint32_t crc) const {
    return table[0][crc & 255] ^ table[1][(crc >> 8) & 255] ^ table[2][(crc >> 16) & 255] ^ table[3][crc >> 24];
  }
};

// Long blocks make the joining cheap, short ones leave less to one chain alone.
constexpr std::size_t kLongBlock = 4096, kShortBlock = 256;
constexpr ZeroBytes kAfterLong(kLongBlock), kAfterShort(kShortBlock);

#if defined(__x86_64__)
GCCL_CRC32C_TARGET inline std::uint64_t step8(std::uint64_t crc, std::uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
GCCL_CRC32C_TARGET inline std::uint32_t step1(std::uint32_t crc, std::uint8_t byte) { return _mm_crc32_u8(crc, byte); }
bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }
#else
GCCL_CRC32C_TARGET inline std::uint64_t step8(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(std::uint32_t(crc), word);
}
GCCL_CRC32C_TARGET inline std::uint32_t step1(std::uint32_t crc, std::uint8_t byte) { return __crc32cb(crc, byte); }
bool has_instruction() { return getauxval(AT_HWCAP) & HWCAP_CRC32; }
#endif

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <std::size_t Block>
GCCL_CRC32C_TARGET std::uint64_t three_chains(std::uint64_t crc, const std::byte*& at, std::size_t& left,
                                              const ZeroBytes& after_block) {
  for (; left >= 3 * Block; left -= 3 * Block, at += 3 * Block) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < Block; i += 8) {
      crc = step8(crc, word_at(at + i));
      second = step8(second, word_at(at + Block + i));
      third = step8(third, word_at(at + 2 * Block + i));
    }
    crc = after_block(std::uint32_t(crc)) ^ second;
    crc = after_block(std::uint32_t(crc)) ^ third;
  }
  return crc;
}

GCCL_CRC32C_TARGET std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t before) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t crc = ~before;
  crc = three_chains<kLongBlock>(crc, at, left, kAfterLong);
  crc = three_chains<kShortBlock>(crc, at, left, kAfterShort);
  for (; left >= 8; left -= 8, at += 8) crc = step8(crc, word_at(at));
  std::uint32_t rest = std::uint32_t(crc);
  for (; left > 0; --left, ++at) rest = step1(rest, std::uint8_t(*at));
  return ~rest;
}

#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kByteTable[(crc ^ std::uint32_t(b)) & 255];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#ifdef GCCL_CRC32C_TARGET
  static const bool hardware = has_instruction();
  if (hardware) return by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace gccl
