#include "libgccl/json/writer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "libgccl/json/reader.hpp"

namespace gccl::json {

void JsonWriter::next_line() {
  out_ += '\n';
  out_.append(depth_, ' ');
}

void JsonWriter::begin() {
  if (std::exchange(has_key_, false)) return;
  if (!std::exchange(first_, false)) out_ += ',';
  if (depth_ > 0) next_line();
}

void JsonWriter::open(char bracket) {
  begin();
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!std::exchange(first_, false)) next_line();
  out_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  text(name);
  out_ += ": ";
  has_key_ = true;
}

void JsonWriter::null() {
  begin();
  out_ += "null";
}

void JsonWriter::boolean(bool v) {
  begin();
  out_ += v ? "true" : "false";
}

void JsonWriter::real(double v) {
  begin();
  out_ += format_value(v);
}

void JsonWriter::whole(std::int64_t v) {
  begin();
  out_ += std::to_string(v);
}

void JsonWriter::natural(std::uint64_t v) {
  begin();
  out_ += std::to_string(v);
}

void JsonWriter::text(std::string_view v) {
  begin();
  out_ += format_value(std::string(v));
}

}  // namespace gccl::json
