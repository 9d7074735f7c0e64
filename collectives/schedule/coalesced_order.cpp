#include "collectives/schedule/coalesced_order.h"

#include <algorithm>
#include <utility>

namespace kolo::inline v0 {
namespace {

// By stage, then by index.
std::vector<std::size_t> in_stages(const Schedule& schedule) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (schedule.steps[i].slice == 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return schedule.steps[i].stage; });
  return order;
}

// Compares chunks, not places: input and output may be the same memory.
bool writes_what_is_read(const Step& writing, const Step& reading) {
  return writing.out.place != Place::kNone && writing.out.chunk == reading.in.chunk;
}

class Order {
 public:
  Order(const Schedule& schedule, int credit)
      : steps_(schedule.steps),
        order_(in_stages(schedule)),
        sent_(static_cast<std::size_t>(schedule.size)) {
    for (const std::size_t i : order_) {
      if (sends_segment(steps_[i].kind)) ++sent_to(steps_[i].to);
    }
    for (std::size_t place = 1; place < order_.size(); ++place) {
      const Step& step = steps_[order_[place]];
      if (step.kind != StepKind::kSend || sent_to(step.to) < 2 || sent_to(step.to) >= credit) {
        continue;  // less than the credit, since the header may travel alone
      }
      move_up(place);
    }
  }

  std::vector<std::size_t> take() { return std::move(order_); }

 private:
  int& sent_to(int peer) { return sent_[static_cast<std::size_t>(peer)]; }

  // Moves the send behind the last send to the same peer, if no step between writes its data.
  void move_up(std::size_t place) {
    const Step& sending = steps_[order_[place]];
    for (std::size_t before = place; before-- > 0;) {
      const Step& earlier = steps_[order_[before]];
      if (sends_segment(earlier.kind) && earlier.to == sending.to) {
        const auto at = [&](std::size_t i) {
          return order_.begin() + static_cast<std::ptrdiff_t>(i);
        };
        std::rotate(at(before + 1), at(place), at(place + 1));
        return;
      }
      if (writes_what_is_read(earlier, sending)) return;
    }
  }

  const std::vector<Step>& steps_;
  std::vector<std::size_t> order_;
  std::vector<int> sent_;  // segments, by peer
};

}  // namespace

std::vector<std::size_t> coalesced_order(const Schedule& schedule, int credit) {
  return Order(schedule, credit).take();
}

bool is_coalesced_with_next(const Step& first, const Step& second) {
  return first.kind == StepKind::kSend && second.kind == StepKind::kSend && first.to == second.to;
}

Schedule coalesced_schedule(const Schedule& schedule, int credit) {
  Schedule brief = schedule;
  brief.slices = 1;
  brief.steps.clear();
  for (const std::size_t i : coalesced_order(schedule, credit)) {
    brief.steps.push_back(schedule.steps[i]);
    brief.steps.back().stage = 0;
  }
  return brief;
}

}  // namespace kolo::inline v0
