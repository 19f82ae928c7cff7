#include "libgccl/json/schema_of.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace gccl::json {
namespace {

using nlohmann::json;

// Ends the parse, by returning false, where the answer is known.
class Search : public json::json_sax_t {
 public:
  std::optional<std::string> found;

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(std::int64_t) override { return other(); }
  bool number_unsigned(std::uint64_t) override { return other(); }
  bool number_float(double, const std::string&) override { return other(); }
  bool binary(json::binary_t&) override { return other(); }
  bool string(std::string& text) override {
    if (!here_) return other();
    found = std::move(text);
    return false;
  }
  bool key(std::string& name) override {
    here_ = depth_ == 1 && name == "schema";
    return true;
  }
  bool start_object(std::size_t) override { return other() && ++depth_ > 0; }
  bool start_array(std::size_t) override { return other() && depth_++ > 0; }
  bool end_object() override { return --depth_ > 0; }
  bool end_array() override { return --depth_ > 0; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  bool other() const { return !here_; }  // a schema that is no text is none

  std::size_t depth_ = 0;
  bool here_ = false;  // the next value is the schema
};

}  // namespace

std::optional<std::string> schema_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  Search search;
  json::sax_parse(in, &search, json::input_format_t::json, false);
  return search.found;
}

}  // namespace gccl::json
