// The arguments of a call, checked and turned into work. For calls.cpp, where small calls are a matter of nanoseconds.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>

#include "libgccl/api/handles.hpp"
#include "libgccl/schedule/region.hpp"

namespace gccl {

inline std::byte* bytes_of(const void* p) { return static_cast<std::byte*>(const_cast<void*>(p)); }

// The address so many elements behind one that a caller gave, to compare with another: it may be no buffer's at all.
inline std::uintptr_t address(const void* base, std::size_t elements = 0, std::size_t element_bytes = 0) {
  return reinterpret_cast<std::uintptr_t>(base) + elements * element_bytes;
}

inline Status null_buffer(const char* name, Count count) {
  return invalid(fmt::format("{} is null: expected a buffer of {} elements", name, count));
}

// What can be expressed in bytes, and as the end of a region.
inline std::size_t elements_max(std::size_t element_bytes) {
  return std::min(std::size_t(PTRDIFF_MAX) / element_bytes, std::size_t(Region::kEndMax));
}

inline Status countable(std::size_t count, std::size_t element_bytes, Rank ranks) {
  const std::size_t most = elements_max(element_bytes) / ranks;
  return count <= most ? Status() : invalid(fmt::format("count is {}: expected at most {}", count, most));
}

// The checks that all calls share, and what they fill in.
class Builder {
 public:
  Builder(CommunicatorCore& c, Collective kind, std::size_t count, GCCL_Dtype dtype, std::optional<GCCL_Op> op,
          int root)
      : c_(c), root_(root) {
    work_.what = {
        .kind = std::uint8_t(kind), .dtype = dtype, .op = op.value_or(kNoOp), .root = Rank(root), .count = count};
    work_.call.kind = kind;
    work_.call.count = count;
    work_.call.root = Rank(root);
    status_ = elements_of(dtype, op, &work_.elements);
    if (status_.ok() && (root < 0 || Rank(root) >= c.size()))
      status_ = invalid(fmt::format("root is {}: expected 0 to {}", root, c.size() - 1));
    if (!status_.ok()) return;  // an element of an unknown type has no length
    status_ = countable(count, work_.elements.bytes, c.size());
  }

  // This rank has such a buffer.
  bool has(const Held& held) const { return held.by(c_.rank(), Rank(root_)); }
  bool in_place(const void* given, std::uintptr_t same) {
    if (given != GCCL_IN_PLACE && (!given || address(given) != same)) return false;
    work_.call.in_place = true;
    return true;
  }
  // `count` elements are read or written there.
  void input(const void* buffer, const char* name, Count count) { place(Buffer::input, buffer, name, count); }
  void output(void* buffer, const char* name, Count count) { place(Buffer::output, buffer, name, count); }
  bool ok() const { return status_.ok(); }
  void fail(const std::string& text) {
    if (status_.ok()) status_ = invalid(text);
  }
  // Blocks that end where elements_max() allows it.
  void blocks(const char* name, const std::size_t* counts, const std::size_t* places) {
    if (!status_.ok()) return;
    const std::size_t most = elements_max(work_.elements.bytes);
    std::size_t end = 0;
    for (Rank r = 0; r < c_.size() && status_.ok(); ++r) {
      if (places && counts[r]) end = places[r];
      if (end > most || counts[r] > most - end)
        status_ = invalid(
            fmt::format("{}[{}] is {}, at element {}: expected an end of at most {}", name, r, counts[r], end, most));
      end += counts[r];
    }
  }
  // Whether the caller's array of a length for each rank may be read: not where there is none, nor where the call will
  // not be carried out, as it may be as long as there were ranks before. Then go() says which it is.
  bool readable(const std::size_t* counts, const char* name, bool non_blocking) {
    if (!counts) fail(fmt::format("{} is null: expected {} lengths", name, c_.size()));
    return counts && !handed_back(non_blocking);
  }
  Work& work() { return work_; }
  std::uint32_t element_bytes() const { return work_.elements.bytes; }
  Rank n() const { return c_.size(); }
  Rank me() const { return c_.rank(); }
  // Bytes of user data as nccl-tests counts them.
  void counted(Count elements) { work_.what.bytes = elements * work_.elements.bytes; }

  // The call is like any other of the same key: repeat() may repeat it. Types and operations of the caller's own may be
  // freed, and others get their numbers.
  void repeatable(const CommunicatorCore::Key& key) {
    assert(key.kind == work_.what.kind);
    if (!user_defined(key.dtype) && !user_defined(key.op)) key_ = &key;
  }

  // Carries it out, or begins it where there is a request to give.
  GCCL_Result go(GCCL_Request* request, bool non_blocking) {
    if (non_blocking && !request) fail("request is null: expected where to store the request");
    assert(!status_.ok() || work_.elements.bytes > 0);
    const bool back = handed_back(non_blocking);
    if (back && once(non_blocking)) return failed(c_.survival().refused());
    if (!status_.ok() && !back)
      return failed(Status::error(fmt::format("{}: {}", kind_name(work_.what.kind), status_.text()), status_.code()));
    if (non_blocking) {
      Operation* op = nullptr;
      const Status s = c_.start(std::move(work_), &op);
      *request = handle_of(op);
      return s.ok() ? GCCL_SUCCESS : failed_on(c_, s);
    }
    if (current_group()) return run_in_group(*current_group(), c_, std::move(work_));
    const Status s = work_.what.point_to_point() ? c_.survival().transfer(std::move(work_))
                                                 : c_.survival().call(std::move(work_), key_);
    return s.ok() ? GCCL_SUCCESS : failed(s);
  }

 private:
  // No recovery carries it out again.
  bool once(bool non_blocking) const { return non_blocking || current_group() || work_.what.point_to_point(); }
  // It is not carried out, whatever its arguments, which may go by numbers that ranks no longer have.
  bool handed_back(bool non_blocking) const {
    const Survival& s = c_.survival();
    return once(non_blocking) ? s.refuses() : s.hands_back(work_.what);
  }
  void place(Buffer which, const void* buffer, const char* name, Count count) {
    if (!buffer && count > 0 && status_.ok()) status_ = null_buffer(name, count);
    if (buffer == GCCL_IN_PLACE && status_.ok())
      status_ = invalid(fmt::format("{} is GCCL_IN_PLACE, which this call does not take there", name));
    work_.memory.base[std::size_t(which)] = bytes_of(buffer);
  }

  CommunicatorCore& c_;
  int root_;
  Work work_;
  const CommunicatorCore::Key* key_ = nullptr;
  Status status_;
};

}  // namespace gccl
