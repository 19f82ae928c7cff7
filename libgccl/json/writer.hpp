// Documents that are written value by value, as JSON or as one of Python's pickles, and never held as a tree: the
// destructor of an array or object of nlohmann's allocates memory, and so ends the process where there is none.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace gccl::json {

// What is written is appended to a text of the caller's. Within an object each value comes after its key.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}
  virtual ~Writer() = default;

  template <class F>
  void object(F members) {
    open('{');
    members();
    close('}');
  }
  template <class F>
  void array(F elements) {
    open('[');
    elements();
    close(']');
  }
  virtual void key(std::string_view name) = 0;
  virtual void null() = 0;
  template <class T>
  void value(const T& v) {
    if constexpr (std::same_as<T, bool>)
      boolean(v);
    else if constexpr (std::floating_point<T>)
      real(v);
    else if constexpr (std::signed_integral<T>)
      whole(v);
    else if constexpr (std::unsigned_integral<T>)
      natural(v);
    else
      text(v);
  }
  // In an object.
  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

 protected:
  virtual void open(char bracket) = 0;
  virtual void close(char bracket) = 0;
  virtual void boolean(bool v) = 0;
  virtual void real(double v) = 0;
  virtual void whole(std::int64_t v) = 0;
  virtual void natural(std::uint64_t v) = 0;
  virtual void text(std::string_view v) = 0;

  std::string& out_;
};

// JSON, indented by a space a level, as format_value() writes it where keys come in order.
class JsonWriter : public Writer {
 public:
  using Writer::Writer;
  void key(std::string_view name) override;
  void null() override;

 protected:
  void open(char bracket) override;
  void close(char bracket) override;
  void boolean(bool v) override;
  void real(double v) override;
  void whole(std::int64_t v) override;
  void natural(std::uint64_t v) override;
  void text(std::string_view v) override;

 private:
  void begin();  // a key, or a value that has none
  void next_line();

  std::size_t depth_ = 0;
  bool first_ = true;  // in its object or array
  bool has_key_ = false;
};

}  // namespace gccl::json
