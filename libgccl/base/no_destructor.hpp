// A static object that is never destroyed: other statics' destructors and threads may still use it at exit. It lies in
// place, as destructors use such objects and must not need memory for the first use.
#pragma once

#include <cstddef>
#include <new>

namespace gccl {

template <class T>
class NoDestructor {
 public:
  NoDestructor() { ::new (room_) T; }
  NoDestructor(const NoDestructor&) = delete;
  NoDestructor& operator=(const NoDestructor&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(room_)); }
  T* operator->() { return &**this; }

 private:
  alignas(T) std::byte room_[sizeof(T)];
};

}  // namespace gccl
