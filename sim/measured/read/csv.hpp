// CSV by RFC 4180: fields between commas, quoted where they hold commas, quotes or line ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gccl::sim {

struct CsvRecord {
  std::size_t line = 0;  // on which it begins
  std::vector<std::string> fields;
};

// Every record; lines without any character are none. Takes LF and CR LF, and a UTF-8 byte order mark. Throws
// json::InputError ("FILE:LINE: ..."): a quote inside a field that does not begin with one, text behind a closing
// quote, a quote that is never closed. `first_line`: the number of the text's first line in the file.
std::vector<CsvRecord> read_csv(std::string_view text, const std::string& file, std::size_t first_line = 1);

}  // namespace gccl::sim
