// Output files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

// Throws json::InputError when the file certainly cannot be written: its folder does not exist or is not writable, or
// it is a folder itself. For use before long work.
void check_writable(const std::filesystem::path& file);

// check_writable for each, as far as it is not empty or "-"; and no two of them, nor one of the files that are read,
// may be one file, whatever they are called. Devices may.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::filesystem::path>& inputs);

// The target is the old or the new file, never a part of it. A target that is no regular file (a pipe, /dev/null) is
// written directly, and "-" is standard output. Throws json::InputError when writing fails.
void write_output(const std::filesystem::path& file, std::string_view text);

// Text for a terminal: control characters, which names from files may hold, become '?'. Line ends and tabs stay.
std::string printable(std::string text);

// To standard output, printable. Throws json::InputError when that fails (a full disk, say); a reader that went away is
// no failure.
void write_stdout(std::string_view text);
// The same for what was printed to stdout.
void flush_stdout();

}  // namespace gccl
