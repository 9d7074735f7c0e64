// Recursive multiplying: all-reduce in few rounds, by exchanges in groups of up to four ranks.
//
// Idea. This is recursive doubling with factors that may be larger than two. The number of ranks is
// a product of factors: 16 = 4 * 4, 12 = 4 * 3, 8 = 4 * 2. In round k the ranks whose numbers
// differ only in digit k (in the base of factor k) form a *group*. Every member sends its partial
// sum to all others, and all combine them. After the round, as many neighbours as the product of
// the factors so far hold the same sum. The largest factors come first: neighbours are most likely
// on one host, and the last rounds, which may go between hosts, send the least.
//
// If n is not such a product, or has too many factors, surplus ranks send their data to a
// participant first (participants.h). The number of participants is the one with the fewest hops:
// for 7 ranks it is 4, in one round, and not 6 = 3 * 2.
//
// All members combine in the order of their numbers, ((m0 op m1) op m2) op m3. So the tree of sums,
// and its bits, are the same on every rank. A member's sum is that of neighbours in rank, so all is
// combined in the order of the ranks.
//
// Cost. For 16 ranks half the rounds of recursive doubling, at twice the bytes; six messages per
// rank where one-shot needs fifteen. So it is for short data, if a round is expensive (as among
// ranks that share cores, where each round is a change of ranks) and messages are not free.
// Receives are staged one turn behind their sends, so that longer data streams through. The partial
// sums wait in the output; what is sent from there is a copy.
//
// Source: Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for allreduce: now with
// simulation", Parallel Computing 69, 2017. (MPICH calls its variant recursive exchange.)
#include "collectives/algorithms/recursive_multiplying.h"

#include <array>

#include "collectives/algorithms/participants.h"
#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

constexpr std::array kFactors{4, 3, 2};

// The largest factor of `ranks`; 0: none of kFactors divides it.
constexpr int next_factor(int ranks) {
  for (const int factor : kFactors) {
    if (ranks % factor == 0) return factor;
  }
  return 0;
}

// The rounds of so many ranks; -1: the number is not a product of the factors.
constexpr int rounds_of(int ranks) {
  int rounds = 0;
  for (; ranks > 1; ++rounds) {
    const int factor = next_factor(ranks);
    if (factor == 0) return -1;
    ranks /= factor;
  }
  return rounds;
}

// The hops, including one from and one to surplus ranks, if there are any.
constexpr int hops_of(int size, int participants) {
  return rounds_of(participants) + (participants < size ? 2 : 0);
}

// The largest number of participants with the fewest hops. (Every such range has a power of two.)
constexpr int participants_of(int size) {
  int best = 0;
  for (int count = size; 2 * count >= size && count > 0; --count) {
    if (rounds_of(count) < 0) continue;
    if (best == 0 || hops_of(size, count) < hops_of(size, best)) best = count;
  }
  return best;
}

static_assert(participants_of(16) == 16 && rounds_of(16) == 2);
static_assert(participants_of(18) == 18 && participants_of(7) == 4);

// The members of a round: their numbers differ in one digit.
struct Group {
  int first;   // number of the first member
  int stride;  // between the numbers of neighbouring members
  int factor;  // number of members

  int number(int digit) const { return first + digit * stride; }
};

class Writer {
 public:
  explicit Writer(const ScheduleRequest& request)
      : rank_(request.rank), ranks_(request.size, participants_of(request.size)) {
    schedule_.collective = Collective::kAllReduce;
    schedule_.algorithm = "recursive_multiplying";
    schedule_.rank = rank_;
    schedule_.size = request.size;
    schedule_.contributions = request.size;
    schedule_.input = schedule_.output = {0, 1};
  }

  Schedule write() {
    if (schedule_.size == 1) {
      add(0, final(copy(input(0), output(0))));
    } else if (ranks_.is_surplus(rank_)) {
      add(0, send(rank_ - 1, input(0)));
      add(hops_of(schedule_.size, ranks_.count()), receive(rank_ - 1, output(0)));
    } else {
      take_part();
    }
    return schedule_;
  }

 private:
  void add(int stage, Step step) { schedule_.steps.push_back(at_stage(stage, step)); }

  void take_part() {
    int stage = ranks_.surplus() > 0 ? 1 : 0;
    Operand mine = input(0);
    if (ranks_.is_paired(rank_)) {
      add(stage, receive_reduce(rank_ + 1, mine, output(0)));
      mine = output(0);
    }
    const int number = ranks_.number(rank_);
    int stride = 1;
    for (int left = ranks_.count(); left > 1; ++stage) {
      const int factor = next_factor(left);
      const int digit = number / stride % factor;
      const Group group{number - digit * stride, stride, factor};
      left /= factor;
      give(stage, group, digit, mine);
      combine(stage + 1, group, digit, mine, left == 1);
      mine = output(0);
      stride *= factor;
    }
    if (ranks_.is_paired(rank_)) add(stage, send(rank_ + 1, output(0)));
  }

  // Sends to the next members first, so that no receiver is flooded.
  void give(int stage, const Group& group, int digit, Operand mine) {
    for (int k = 1; k < group.factor; ++k) {
      const int peer = ranks_.rank(group.number((digit + k) % group.factor));
      add(stage, copied(send(peer, mine)));
    }
  }

  // Combines the partial sums of all members into the output, in the order of their numbers.
  void combine(int stage, const Group& group, int digit, Operand mine, bool is_last_round) {
    const auto final_at = [&](int k, Step step) {
      return final_if(is_last_round && k + 1 == group.factor, step);
    };
    Operand so_far = mine;
    if (digit > 0) {
      combine_before(stage, group, digit, mine, is_last_round && digit + 1 == group.factor);
      so_far = output(0);
    }
    for (int k = digit + 1; k < group.factor; ++k) {
      const int peer = ranks_.rank(group.number(k));
      add(stage, final_at(k, receive_reduce(peer, so_far, output(0))));
      so_far = output(0);
    }
  }

  // Combines the partial sums of the members before this one, and then its own.
  void combine_before(int stage, const Group& group, int digit, Operand mine, bool is_final) {
    const int first = ranks_.rank(group.first);
    if (digit == 1) {
      return add(stage, final_if(is_final, in_last(receive_reduce(first, mine, output(0)))));
    }
    const Operand before = scratch(0);
    add(stage, receive(first, before));
    for (int k = 1; k < digit; ++k) {
      add(stage, receive_reduce(ranks_.rank(group.number(k)), before, before));
    }
    if (mine.place == Place::kInput) add(stage, copy(mine, output(0)));
    add(stage, final_if(is_final, reduce(before, output(0))));
  }

  int rank_;
  Participants ranks_;
  Schedule schedule_;
};

}  // namespace

Schedule recursive_multiplying_all_reduce(const ScheduleRequest& request) {
  return Writer(request).write();
}

std::size_t recursive_multiplying_all_reduce_sent(int rank, int size, std::size_t count) {
  const Participants ranks(size, participants_of(size));
  if (ranks.is_surplus(rank)) return count;
  int times = ranks.is_paired(rank) ? 1 : 0;
  for (int left = ranks.count(); left > 1; left /= next_factor(left)) {
    times += next_factor(left) - 1;
  }
  return static_cast<std::size_t>(times) * count;
}

int recursive_multiplying_all_reduce_hops(int size) { return hops_of(size, participants_of(size)); }

}  // namespace kolo::inline v0
