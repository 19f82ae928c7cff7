// Output files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

// Opens standard streams that the caller closed, so that no file gets their numbers and what is printed with it;
// reading and writing them fails as on a closed one. For the start of main().
void reserve_standard_streams() noexcept;

// Throws json::InputError when the file certainly cannot be written: its folder does not exist or takes no file of such
// a name, or it is a folder itself. For use before long work.
void check_writable(const std::filesystem::path& file);

// check_writable for each, as far as it is not empty or "-"; and no two of them, nor one of the files that are read,
// may be one file, whatever they are called. Devices may.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::filesystem::path>& inputs);

// The target is the old or the new file, never a part of it, and links to it stay. What is no regular file (a pipe,
// /dev/null) or is open already (/dev/stdout) is written directly, and "-" is standard output. Throws json::InputError
// when writing fails.
void write_output(const std::filesystem::path& file, std::string_view text);
// One of several outputs: where it cannot be written says so, as `program`, and returns false, so that others still
// are.
bool output_written(const std::filesystem::path& file, std::string_view text, std::string_view program);

// Text for a terminal: control characters, which names from files may hold, become '?'. Line ends and tabs stay.
std::string printable(std::string_view text);
// The same for one line of it: line ends and tabs become '?' too.
std::string printable_line(std::string_view text);

// 0, or the error. Waits where the descriptor does not block.
int write_all(int fd, std::string_view text) noexcept;

// To standard error, as it is. Never fails: a full or closed standard error is no reason to end otherwise.
void write_stderr(std::string_view text) noexcept;

// To standard output, printable; a JSON document by escapes, so that nothing is lost. Throws json::InputError when that
// fails (a full disk, say); a reader that went away is no failure.
void write_stdout(std::string_view text);
// The same for what was printed to stdout.
void flush_stdout();

// Text between single quotes of any shell; and as one word, bare where no character is syntax.
std::string shell_quoted(std::string_view text);
std::string shell_word(const std::string& text);

}  // namespace gccl
