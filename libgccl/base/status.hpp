// What an operation that can fail for reasons outside this process returns.
#pragma once

#include <string>
#include <utility>

namespace gccl {

// Success, or what went wrong in words for a person.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // `code` is a GCCL_Result other than success; by default GCCL_ERR_INTERNAL.
  static Status error(std::string text, int code = 3) {
    Status s;
    s.text_ = std::move(text);
    s.code_ = code;
    return s;
  }

  // Where memory is too short for the text, the code with words that need none.
  static Status error_or_code(const char* text, int code) noexcept {
    try {
      return error(text, code);
    } catch (...) {
      return error("out of memory", code);  // within std::string itself
    }
  }
  Status copy_or_code() const noexcept { return ok() ? Status() : error_or_code(text_.c_str(), code_); }

  bool ok() const { return code_ == 0; }
  int code() const { return code_; }
  // Empty when ok().
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int code_ = 0;
};

// An argument or a setting is wrong, and nothing was started: GCCL_ERR_INVALID_ARGUMENT.
inline Status invalid(std::string text) { return Status::error(std::move(text), 4); }

// Whether a number that came from elsewhere is a GCCL_Result for a failure.
constexpr bool is_error(int code) { return (code >= 1 && code <= 6) || (code >= 100 && code <= 107); }

}  // namespace gccl
