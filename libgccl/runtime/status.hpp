// What an operation that can fail for reasons outside this process returns.
#pragma once

#include <string>
#include <utility>

namespace gccl {

// Success, or what went wrong in words for a person.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status error(std::string text) {
    Status s;
    s.text_ = std::move(text);
    s.ok_ = false;
    return s;
  }

  bool ok() const { return ok_; }
  // Empty when ok().
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool ok_ = true;
};

}  // namespace gccl
