#include "train/experiment/turns.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace kolo::train {

Turns::Turns(const std::vector<int>& ranks) : arms_(ranks.size()) {
  for (std::size_t i = 0; i < ranks.size(); ++i) arms_[i].ranks = ranks[i];
}

void Turns::waits(std::size_t arm) { set(arm, State::waiting); }

void Turns::ended(std::size_t arm) { set(arm, State::ended); }

void Turns::set(std::size_t arm, State state) {
  const std::lock_guard lock(mutex_);
  arms_[arm].state = state;
  if (std::ranges::any_of(arms_, [](const Arm& one) { return one.state == State::busy; })) return;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    Arm& candidate = arms_[(next_ + i) % arms_.size()];
    if (candidate.state != State::waiting) continue;
    candidate.state = State::busy;
    next_ = (next_ + i + 1) % arms_.size();
    // A pipe takes so few bytes at once. If the ranks are gone, they need none.
    const std::string bytes(static_cast<std::size_t>(candidate.ranks), 't');
    while (write(candidate.pipe.writing_end(), bytes.data(), bytes.size()) < 0 && errno == EINTR) {
    }
    return;
  }
}

void wait_for_turn(int descriptor) {
  char turn = 0;
  while (read(descriptor, &turn, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace kolo::train
