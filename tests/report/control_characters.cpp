// Which characters of names are shown as something else.
#include "libgccl/base/control_characters.hpp"

#include <doctest/doctest.h>

#include <string>

using gccl::control_bytes;
using gccl::without_control;

// Unicode 15: general category Cc, and what has Bidi_Control without the three marks, which names in Hebrew and Arabic
// need.
TEST_CASE("control characters are found among all others, also where a text ends too early") {
  for (const char* text : {"\x01", "\n", "\x1f", "\x7f"}) CHECK(control_bytes(text) == 1);
  CHECK(control_bytes(std::string_view("\0", 1)) == 1);
  for (const char* text : {"\u0080", "\u009b", "\u009f"}) CHECK(control_bytes(text) == 2);
  for (const char* text : {"\u202a", "\u202e", "\u2066", "\u2069"}) CHECK(control_bytes(text) == 3);
  for (const char* text :
       {"",       " ",      "~",      "\u00a0",     "\u061c", "\u200e", "\u200f",   "\u2028",   "\u2029", "\u202f",
        "\u2065", "\u206a", "\u05d0", "\U0001f600", "\xc2",   "\xe2",   "\xe2\x80", "\xe2\x81", "\xff",   "\x80"})
    CHECK_MESSAGE(control_bytes(text) == 0, text);
  CHECK(without_control("a\u202eb\x1b\u05d0\u200fc\n", '?') == "a?b?\u05d0\u200fc?");
  CHECK(without_control("a\n\tb\r", ' ', "\n\t") == "a\n\tb ");
}
