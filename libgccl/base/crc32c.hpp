// CRC32C (Castagnoli), the checksum of iSCSI, SCTP and ext4. RFC 3720, section 12.1 and appendix B.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gccl {

// The checksum of the bytes, after those whose checksum is `before`: crc32c(b, crc32c(a)) is that of a followed by b.
// By the processor's instruction (SSE4.2, ARMv8), where it has one: three chains at once, as each has a latency of
// three.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
// The same by a table, one byte at a time: for processors without the instruction, and to test it by.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace gccl
