// Python's pickles of plain data, as JSON documents: written for programs that read nothing else, and read without ever
// running what is in them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gccl::json {

// Protocol 2, which every Python 3 loads: dictionaries, lists, texts, numbers, true, false and None.
std::string to_pickle(const nlohmann::json& value);

// Protocols 2 to 5. Tuples and sets become lists, bytes texts, keys that are no texts their texts. Not ok, and `error`
// says where and what: an opcode that names, builds or calls something (a pickle can run any program), bytes that are
// no pickle, values nested deeper than 100 or more than 20 million.
bool from_pickle(std::string_view bytes, nlohmann::json* out, std::string* error);

}  // namespace gccl::json
