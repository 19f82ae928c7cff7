// Included first by every C++ header here: before C++20 it says so and ends the compilation, which would go on for
// hundreds of lines.
#pragma once

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201709L  // g++ 10 says so for C++20
#error "gccl.hpp needs C++20: compile with -std=c++20, or include gccl/gccl.h"
#include "gccl/needs C++20"  // no such file: a fatal error, where #error alone would let compilers go on
#endif
