// A rank's dump (dump.hpp), from the histories of its communicators and the operations in flight.
#pragma once

#include <string>

#include "libgccl/communicator/operations.hpp"
#include "libgccl/communicator/record/dump.hpp"

namespace gccl {

// All with the lock of the communicator whose operations these are held.
DumpedCommunicator dumped(const Team& team, const Operations& operations);
// Before what is in flight is dropped, because the communicator has failed: later dumps say it, too.
void keep_unended(Team& team, const Operations& operations) noexcept;
// Writes what this rank was doing, on all communicators that no other thread stays busy with.
Status dump(const Team& team, const Operations& operations, const std::string& path, const std::string& reason);
// Where the environment asks for dumps: of the rank's first failure, and in the same world of later ones of
// communicators that went on meanwhile; and once for each signal.
void dump_failure(const Team& team, const Operations& operations) noexcept;
void dump_if_asked(const Team& team, const Operations& operations) noexcept;

}  // namespace gccl
