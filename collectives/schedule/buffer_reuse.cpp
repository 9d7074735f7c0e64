#include "collectives/schedule/buffer_reuse.h"

#include <algorithm>
#include <utility>

namespace kolo::inline v0 {
namespace {

bool is_plain_receive(StepKind kind) {
  return kind == StepKind::kReceive || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveAnswer;
}

const Operand& sent_operand(const Step& step) {
  return step.kind == StepKind::kSend ? step.in : step.out;
}

// When a step runs, among all steps on the same segments: by stage, then by index.
using Moment = std::pair<int, std::size_t>;

// What happens to a slice of a chunk in the caller's memory.
struct Fate {
  Moment received{-1, 0};  // when received data last overwrites it
  Moment reduced{-1, 0};   // when other data last overwrites it
  int ways_out = 0;        // number of sends before it is received
};

std::size_t slice_of(const Schedule& schedule, const Step& step) {
  return static_cast<std::size_t>(step.chunk * schedule.slices + step.slice);
}

std::vector<Fate> fates_of(const Schedule& schedule) {
  std::vector<Fate> fates(static_cast<std::size_t>(schedule.chunks * schedule.slices));
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.out.place == Place::kNone || step.out.place == Place::kScratch) continue;
    if (step.kind == StepKind::kCopy) continue;  // the same data: in place it changes nothing
    Fate& fate = fates[slice_of(schedule, step)];
    Moment& last = is_plain_receive(step.kind) ? fate.received : fate.reduced;
    last = std::max(last, {step.stage, i});
  }
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    Fate& fate = fates[slice_of(schedule, step)];
    if (step.kind == StepKind::kSend && Moment{step.stage, i} < fate.received) ++fate.ways_out;
  }
  return fates;
}

// True if the memory that step `index` sends may be overwritten while the send is in flight. Data
// that arrives after a sent sum need not depend on that sum.
bool must_copy(const Step& sending, std::size_t index, const Fate& fate) {
  if (sending.is_copied) return true;
  if (!sends_from_memory(sending)) return false;
  if (sent_operand(sending).place == Place::kScratch) return true;
  const Moment sent{sending.stage, index};
  const bool is_sum = sending.kind == StepKind::kReceiveReduceCopySend;
  return fate.reduced > sent || (fate.received > sent && (is_sum || fate.ways_out > 1));
}

}  // namespace

bool sends_from_memory(const Step& step) {
  return step.kind == StepKind::kSend || step.kind == StepKind::kReceiveReduceCopySend ||
         (step.kind == StepKind::kReceiveSend && step.out.place != Place::kNone);
}

std::vector<bool> sends_needing_copies(const Schedule& schedule) {
  const std::vector<Fate> fates = fates_of(schedule);
  std::vector<bool> copies;
  copies.reserve(schedule.steps.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    copies.push_back(must_copy(step, i, fates[slice_of(schedule, step)]));
  }
  return copies;
}

bool leaves_from_memory(const Schedule& schedule) {
  const std::vector<bool> copies = sends_needing_copies(schedule);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (sends_segment(step.kind) && (!sends_from_memory(step) || copies[i])) return false;
  }
  return true;
}

}  // namespace kolo::inline v0
