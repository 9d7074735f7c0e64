// User-defined reduction: a function over elements of any trivially copyable type.
//
// Compare MPI_Op_create and MPI_Type_contiguous. The reductions of communicator.h take a
// UserReduceOp instead of a type and an operation. Every rank must pass one with the same tag and
// element length, or all ranks get a mismatch error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

namespace kolo::inline v0 {

// The longest element, in bytes. An element must also fit into a segment of the transport.
inline constexpr std::size_t kLongestElement = 65535;

struct UserReduceOp {
  // sizeof the element: 1 to kLongestElement.
  std::size_t element_bytes = 0;

  // out[i] = left[i] op right[i] for all i below `count`. If is_commutative is false, `left` is
  // from lower ranks than `right`. `out` may be the same memory as `left` or `right`; other
  // overlaps do not occur. Pointers are aligned as an element needs, up to 8 bytes, if the caller's
  // buffers are. For a larger alignment use memcpy.
  //
  // The function must be associative, and give the same result for the same elements on every rank.
  // It runs inside progress, on the thread that makes progress, once per part of the data. A
  // communicator makes one call at a time. It must not wait for an operation of its communicator.
  //
  // If it throws, the operation fails on all ranks that have not finished it, and later operations
  // fail on the other ranks. The job's first cause then names the rank, the operation and what().
  std::function<void(void* out, const void* left, const void* right, std::size_t count)> combine;

  // Whether left op right equals right op left. If not, operands are combined in the order of the
  // ranks, which not all algorithms support. The same on every rank.
  bool is_commutative = true;

  // Distinguishes functions in the check between peers; the same on every rank.
  std::uint16_t tag = 0;
};

// Makes a UserReduceOp of a function from two elements to one.
template <typename T, typename Combine>
UserReduceOp make_user_reduce_op(Combine combine, bool is_commutative = true,
                                 std::uint16_t tag = 0) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);
  UserReduceOp reducer;
  reducer.element_bytes = sizeof(T);
  reducer.is_commutative = is_commutative;
  reducer.tag = tag;
  reducer.combine = [combine = std::move(combine)](void* out, const void* left, const void* right,
                                                   std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      T one, other;
      std::memcpy(&one, static_cast<const std::byte*>(left) + i * sizeof(T), sizeof(T));
      std::memcpy(&other, static_cast<const std::byte*>(right) + i * sizeof(T), sizeof(T));
      const T result = combine(one, other);
      std::memcpy(static_cast<std::byte*>(out) + i * sizeof(T), &result, sizeof(T));
    }
  };
  return reducer;
}

}  // namespace kolo::inline v0
