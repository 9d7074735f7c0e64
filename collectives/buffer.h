// Arguments of the Communicator's calls: elements in memory, and how they are reduced.
//
//   std::vector<float> gradient;
//   world.all_reduce(gradient, kolo::ReduceOp::kAverage);                       // a vector, array
//   world.all_reduce(std::span(gradient).first(100));                           // or span
//   world.all_reduce({address, count, kolo::ElementType::kBFloat16});           // or an address
//   world.reduce_scatter(gradient, {mine.data(), mine.size(), kolo::ElementType::kFloat32});
//
// All of them are plain values that borrow what they refer to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "element.h"
#include "user_reduce_op.h"

namespace kolo::inline v0 {

// Type of the elements of a buffer whose C++ type has no ElementType, such as a struct. Only a
// UserReduceOp for elements of the same length reduces them, and no other call takes them. To move
// such elements, pass their bytes: std::as_writable_bytes(span).
inline constexpr auto kUserElement = static_cast<ElementType>(0xff);

// Contiguous range of trivially copyable elements. The memory must outlive the range object, so a
// temporary vector or array is rejected; a span, and a vector or array in a variable, are accepted.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                       std::ranges::borrowed_range<Range> &&
                       std::is_trivially_copyable_v<std::ranges::range_value_t<Range>> &&
                       sizeof(std::ranges::range_value_t<Range>) <= kLongestElement;

template <typename Range>
concept WritableRange = ElementRange<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

template <typename T>
constexpr ElementType element_type_or_user() {
  if constexpr (std::is_same_v<T, std::byte>) {
    return ElementType::kUint8;
  } else if constexpr (requires { ElementTypeOf<T>::value; }) {
    return ElementTypeOf<T>::value;
  } else if constexpr (std::is_same_v<T, long long>) {
    return ElementType::kInt64;  // where std::int64_t is a long
  } else if constexpr (std::is_same_v<T, unsigned long long>) {
    return ElementType::kUint64;
  } else {
    return kUserElement;
  }
}

// Elements that a call writes, or reads and writes. Without memory (null), a buffer states a count
// only: some ranks of some calls need no more.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  std::uint32_t user_bytes = 0;  // length of a kUserElement

  constexpr Buffer() = default;
  constexpr Buffer(void* address, std::size_t elements, ElementType element)
      : data(address), count(elements), type(element) {}
  // Elements that `reducer` reduces, of any C++ type.
  Buffer(void* address, std::size_t elements, const UserReduceOp& reducer)
      : data(address),
        count(elements),
        type(kUserElement),
        user_bytes(static_cast<std::uint32_t>(reducer.element_bytes)) {}

  template <WritableRange Range>
  // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload)
  constexpr Buffer(Range&& range)
      : Buffer(std::ranges::data(range), std::ranges::size(range),
               element_type_or_user<std::ranges::range_value_t<Range>>()) {
    if (type == kUserElement) user_bytes = sizeof(std::ranges::range_value_t<Range>);
  }
};

// Elements that a call reads.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  std::uint32_t user_bytes = 0;  // length of a kUserElement

  constexpr ConstBuffer() = default;
  constexpr ConstBuffer(const void* address, std::size_t elements, ElementType element)
      : data(address), count(elements), type(element) {}
  ConstBuffer(const void* address, std::size_t elements, const UserReduceOp& reducer)
      : data(address),
        count(elements),
        type(kUserElement),
        user_bytes(static_cast<std::uint32_t>(reducer.element_bytes)) {}
  constexpr ConstBuffer(const Buffer& buffer)  // NOLINT(google-explicit-constructor)
      : data(buffer.data), count(buffer.count), type(buffer.type), user_bytes(buffer.user_bytes) {}

  template <ElementRange Range>
  // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload)
  constexpr ConstBuffer(Range&& range)
      : ConstBuffer(std::ranges::data(range), std::ranges::size(range),
                    element_type_or_user<std::ranges::range_value_t<Range>>()) {
    if (type == kUserElement) user_bytes = sizeof(std::ranges::range_value_t<Range>);
  }
};

// How elements are combined: by an operation, or by a user function.
//
// A user function is needed during the call only: an asynchronous operation keeps a copy until it
// is done, and a persistent operation until its Work is destroyed. Objects that the function refers
// to must live as long as that copy. If the function does not commute, the operation needs an
// algorithm that keeps the order of the ranks. The default is the cheapest of those. Naming another
// algorithm throws std::invalid_argument, which lists the possible ones. In mode kInvariant every
// user function is combined as ((x0 op x1) op x2) ...
class Reduction {
 public:
  constexpr Reduction(ReduceOp op) : op_(op) {}  // NOLINT(google-explicit-constructor)
  constexpr Reduction(const UserReduceOp& user)  // NOLINT(google-explicit-constructor)
      : op_(ReduceOp::kUser), user_(&user) {}

  constexpr ReduceOp op() const { return op_; }
  constexpr const UserReduceOp* user() const { return user_; }  // null: none

 private:
  ReduceOp op_;
  const UserReduceOp* user_ = nullptr;
};

// One number of elements per rank.
using Counts = std::span<const std::size_t>;

}  // namespace kolo::inline v0
