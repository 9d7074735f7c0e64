// Who takes part, where an algorithm wants another number of ranks than there are.
//
// `surplus()` ranks are too many. The first 2 * surplus() ranks stand in pairs: the upper of a
// pair, a *surplus* rank, gives its data to the lower beforehand, and has the result from it
// afterwards. The others have *numbers* in the order of their ranks; so neighbours in number hold
// what neighbours in rank have given, and a reduction in the order of numbers is one in the order
// of ranks.
#pragma once

namespace kolo {

class Participants {
 public:
  // `count` of `size` ranks, and at least half of them.
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

}  // namespace kolo
