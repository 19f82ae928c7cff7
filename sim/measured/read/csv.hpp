// CSV by RFC 4180: fields between commas, or semicolons or tabs, quoted where they hold one, quotes or line ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gccl::sim {

struct CsvRecord {
  std::size_t line = 0;  // on which it begins
  std::vector<std::string> fields;
};

// What separates the fields of a first line: a comma, a semicolon or a tab, whichever there are most of.
char separator_of(std::string_view first_line);

// Every record; lines without any character are none. Takes LF and CR LF, and a UTF-8 byte order mark. Blanks around a
// field are no part of it unless they are quoted. Throws json::InputError ("FILE:LINE: ..."): a quote inside a field
// that does not begin with one, text behind a closing quote, a quote that is never closed. `first_line`: the number of
// the text's first line in the file.
std::vector<CsvRecord> read_csv(std::string_view text, const std::string& file, std::size_t first_line = 1,
                                char separator = ',');

}  // namespace gccl::sim
