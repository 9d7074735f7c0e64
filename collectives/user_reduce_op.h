// A reduction of the caller's own: a function over elements of any trivially copyable type.
//
// What MPI_Op_create and MPI_Type_contiguous are for: the reductions of communicator.h take a
// UserReduceOp where they otherwise take a type and an operation. Every rank gives one of the same
// tag and element length, or all hear of the mismatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

namespace kolo {

// The longest element of a UserReduceOp; nor may it be longer than a segment of the transport.
inline constexpr std::size_t kLongestElement = 65535;

struct UserReduceOp {
  // sizeof an element: 1 to kLongestElement.
  std::size_t element_bytes = 0;

  // out[i] = left[i] op right[i] for all i below `count`. Left stands for lower ranks, where
  // is_commutative is false. `out` may be `left`, or `right`; otherwise the three are apart. All
  // are as aligned as an element needs up to 8 bytes, and where the caller's buffers are; beyond
  // that, use memcpy.
  //
  // op must be associative, and give the same result for the same elements on every rank. Called
  // inside progress, on the thread that makes it, one call at a time for a communicator, and for a
  // part of the data each time. What it throws ends the operation on all ranks that have not
  // finished it, and later ones on the others: the job's first cause says which rank, in which
  // operation, and what(). It must not wait for an operation of its
  // communicator.
  std::function<void(void* out, const void* left, const void* right, std::size_t count)> combine;

  // Whether left op right is right op left. Where not, operands are combined in the order of the
  // ranks, which not every algorithm can. The same on every rank.
  bool is_commutative = true;

  // Tells functions apart: the same on every rank.
  std::uint16_t tag = 0;
};

// Of a function from two elements to one.
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

}  // namespace kolo
