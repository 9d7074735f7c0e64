// Participants of an algorithm that runs on fewer ranks than there are, such as a power of two.
//
// `surplus()` ranks are too many. The first 2 * surplus() ranks form pairs. The upper rank of a
// pair, a *surplus* rank, sends its data to the lower rank first, and receives the result from it
// at the end. All other ranks are *participants*, with *numbers* in the order of their ranks. So a
// reduction in the order of numbers is one in the order of ranks.
#pragma once

namespace kolo::inline v0 {

class Participants {
 public:
  // `count` of `size` ranks participate; at least half of them.
  constexpr Participants(int size, int count) : count_(count), surplus_(size - count) {}

  constexpr int count() const { return count_; }
  constexpr int surplus() const { return surplus_; }
  constexpr bool is_paired(int rank) const { return rank < 2 * surplus_; }
  constexpr bool is_surplus(int rank) const { return is_paired(rank) && rank % 2 == 1; }
  constexpr int number(int rank) const { return is_paired(rank) ? rank / 2 : rank - surplus_; }
  constexpr int rank(int number) const {
    return number < surplus_ ? 2 * number : number + surplus_;
  }

 private:
  int count_;
  int surplus_;
};

}  // namespace kolo::inline v0
