// Python's pickles of plain data, as JSON documents: written for programs that read nothing else, and read without ever
// running what is in them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "libgccl/json/writer.hpp"

namespace gccl::json {

// Protocol 2, which every Python 3 loads: dictionaries, lists, texts, numbers, true, false and None.
class PickleWriter : public Writer {
 public:
  explicit PickleWriter(std::string* out);
  // After the one value of the pickle.
  void end() { out_ += '.'; }
  void key(std::string_view name) override { text(name); }
  void null() override { out_ += 'N'; }

 protected:
  void open(char bracket) override;
  void close(char bracket) override;
  void boolean(bool v) override { out_ += v ? '\x88' : '\x89'; }
  void real(double v) override;
  void whole(std::int64_t v) override;
  void natural(std::uint64_t v) override;
  void text(std::string_view v) override;
};

// Protocols 2 to 5. Tuples and sets become lists, bytes texts, keys that are no texts their texts. Not ok, and `error`
// says where and what: an opcode that names, builds or calls something (a pickle can run any program), bytes that are
// no pickle, values nested deeper than 100 or more than 20 million.
bool from_pickle(std::string_view bytes, nlohmann::json* out, std::string* error);

}  // namespace gccl::json
