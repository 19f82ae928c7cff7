// What the calls of Communicator accept as buffers, and the checks of their sizes.
#pragma once

#include "gccl/cpp20.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "gccl/element.hpp"

namespace gccl {
inline namespace api {

// Says that a call's input already lies in its output buffer (GCCL_IN_PLACE).
struct InPlace {};
inline constexpr InPlace in_place;

// What a call that takes it as T&& need not keep alive: all but temporaries that own something.
template <class T>
concept Lasting = std::is_lvalue_reference_v<T> || std::ranges::borrowed_range<T> ||
    std::same_as<std::remove_cvref_t<T>, InPlace> || std::same_as<std::remove_cvref_t<T>, ReduceOp>;

// A buffer: std::span, std::vector, std::array, ... of elements that lie side by side.
template <class B>
concept ElementBuffer =
    std::ranges::contiguous_range<B> && std::ranges::sized_range<B> && Element<std::ranges::range_value_t<B>>;
// One that outlives the call: not a temporary container.
template <class B>
concept LastingBuffer = ElementBuffer<B> && Lasting<B>;
// ... and can be written to.
template <class B>
concept WritableBuffer =
    LastingBuffer<B> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<B>>>;

// An input, or in_place, for an output of the same elements.
template <class In, class Out>
concept InputFor = std::same_as<std::remove_cvref_t<In>, InPlace> ||
    (ElementBuffer<In>&& std::same_as<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>);
// ... that outlives the call.
template <class In, class Out>
concept LastingInputFor = InputFor<In, Out> && Lasting<In>;

// ReduceOp for elements that GCCL computes with, CustomOp<T> for any.
template <class O, class B>
concept OpFor = (std::same_as<std::remove_cvref_t<O>, ReduceOp> && Reducible<std::ranges::range_value_t<B>>) ||
                std::same_as<std::remove_cvref_t<O>, CustomOp<std::ranges::range_value_t<B>>>;
// ... that outlives the call.
template <class O, class B>
concept LastingOpFor = OpFor<O, B> && Lasting<O>;

// Lengths or displacements of each rank's block, in elements.
using Counts = std::span<const std::size_t>;
template <class C>
concept AnyCounts = std::convertible_to<C, Counts>;
// ... that outlive the call.
template <class C>
concept LastingCounts = AnyCounts<C> && Lasting<C>;

namespace api_detail {

inline GCCL_Op op_code(ReduceOp op) { return GCCL_Op(op); }
template <class T>
GCCL_Op op_code(const CustomOp<T>& op) {
  return op.code();
}

template <class B>
constexpr bool is_in_place = std::same_as<std::remove_cvref_t<B>, InPlace>;

// Where a buffer is, for the C interface.
template <class B>
auto pointer(B& buffer) {
  if constexpr (is_in_place<B>)
    return GCCL_IN_PLACE;
  else
    return std::ranges::data(buffer);
}
template <class B>
std::size_t count_of(const B& buffer) {
  return std::ranges::size(buffer);
}
template <class B>
GCCL_Dtype dtype_of_buffer(const B&) {
  return dtype_of<std::ranges::range_value_t<B>>();
}

// An argument of a collective that the library refuses before it looks at any element, in the place of one that does
// not fit: no collective takes GCCL_IN_PLACE for both buffers, nor goes without lengths.
template <class P>
P refused([[maybe_unused]] P argument) {
  if constexpr (std::same_as<P, const std::size_t*>)
    return nullptr;
  else if constexpr (std::convertible_to<void*, P>)
    return GCCL_IN_PLACE;
  else
    return argument;
}

// For what would be read, or written to, when the group carries the call out, and is gone by then.
inline void expect_no_group(
    const char* why =
        "a call in a group was given a temporary, which is gone when the group carries the call out: "
        "expected buffers, counts and operations that last until the group has ended") {
  if (GCCL_Group_depth() > 0) throw Error(GCCL_ERR_INVALID_USAGE, why);
}
inline void expect_count(const char* call, const char* buffer, std::size_t found, std::size_t expected) {
  if (found != expected)
    wrong(call,
          std::string(buffer) + " has " + std::to_string(found) + " elements, expected " + std::to_string(expected));
}
inline void expect_at_least(const char* call, const char* buffer, std::size_t found, std::size_t expected) {
  if (found < expected)
    wrong(call, std::string(buffer) + " has " + std::to_string(found) + " elements, expected at least " +
                    std::to_string(expected));
}
// n equal blocks.
inline void expect_blocks(const char* call, const char* buffer, std::size_t found, std::size_t n) {
  if (found % n != 0)
    wrong(call, std::string(buffer) + " has " + std::to_string(found) + " elements, expected a multiple of " +
                    std::to_string(n) + ", the number of ranks");
}
// The elements that n blocks reach over: side by side, or at their displacements.
inline std::size_t extent(const char* call, Counts counts, Counts displs, std::size_t n) {
  if (counts.size() != n || (!displs.empty() && displs.size() != n))
    wrong(call, std::to_string(counts.size()) + " counts and " + std::to_string(displs.size()) +
                    " displacements, expected " + std::to_string(n) + ", one for each rank (or no displacements)");
  std::size_t end = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (displs.empty())
      end += counts[i];
    else if (counts[i] > 0)
      end = std::max(end, displs[i] + counts[i]);
  return end;
}

}  // namespace api_detail
}  // namespace api
}  // namespace gccl
