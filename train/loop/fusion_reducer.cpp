#include "train/loop/fusion_reducer.h"

#include <algorithm>

#include "train/loop/seconds.h"

namespace kolo::train {
namespace {

constexpr std::size_t kWordBits = 64;

bool has_bit(const std::vector<std::uint64_t>& bits, std::size_t i) {
  return (bits[i / kWordBits] >> (i % kWordBits) & 1) != 0;
}

void set_bit(std::vector<std::uint64_t>& bits, std::size_t i) {
  bits[i / kWordBits] |= std::uint64_t{1} << (i % kWordBits);
}

}  // namespace

FusionReducer::FusionReducer(Communicator& communicator, Strategy& strategy,
                             tensor::Parameters& parameters, std::vector<Bucket> buckets)
    : GradientReducer(communicator, strategy, parameters, std::move(buckets)),
      control_(communicator.duplicate()),
      is_known_(buckets_.size()),
      is_queued_(buckets_.size()) {}

void FusionReducer::begin(const UpdateStep& step) {
  begin_record();
  begin_exchanges();
  begin_strategy(step);
  is_queued_.assign(buckets_.size(), false);
  reduced_ = 0;
  group_hops_ = 0;
  group_traffic_ = {};
}

void FusionReducer::gradient_ready(tensor::ParameterId id) {
  count_ready(id);
  const Clock::time_point start = Clock::now();
  while (step(false)) {
  }
  record_.in_backward += seconds_since(start);
}

void FusionReducer::all_ready() { ready_ = static_cast<int>(position_.size()); }

ExchangeRecord FusionReducer::finish(bool) {
  require_all_ready();
  while (reduced_ < buckets_.size() || !to_apply_.empty()) {
    const Clock::time_point start = Clock::now();
    if (reduced_ < buckets_.size() && !step(true)) work_.wait();
    record_.waiting += seconds_since(start);
    note("wait", start);
    if (needs_all_sums()) {
      to_apply_.clear();
      continue;
    }
    for (const std::size_t i : to_apply_) apply(i);
    to_apply_.clear();
  }
  if (needs_all_sums()) apply_all();
  record_.in_flight = seconds_in_flight();
  record_.hops = group_hops_;
  record_.formula = group_traffic_;
  return end_record();
}

bool FusionReducer::step(bool is_hurried) {
  if (stage_ == Stage::idle) {
    const bool is_due = is_hurried || Clock::now() - cycle_began_ >= kCycle;
    if (reduced_ == buckets_.size() || !is_due) return false;
    begin_cycle();
    return true;
  }
  if (!work_.test()) return false;
  work_.wait();  // throws its failure
  switch (stage_) {
    case Stage::idle:
      break;
    case Stage::agreeing:
      end_agreement();
      break;
    case Stage::gathering:
      tell();
      break;
    case Stage::telling:
      queue(bits_);
      begin_reducing();
      break;
    case Stage::reducing:
      end_group();
      reduce_next_group();
      break;
  }
  return true;
}

FusionReducer::Bits FusionReducer::ready_bits(bool is_known) const {
  Bits bits(buckets_.size() / kWordBits + 2);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (is_known_[i] == is_known && !is_queued_[i] && is_full(i)) set_bit(bits, i);
  }
  return bits;
}

// The flag is set where no unknown parameter is ready. If it is not set on all ranks, these are
// negotiated as well.
void FusionReducer::begin_cycle() {
  cycle_began_ = Clock::now();
  queue_.clear();
  const Bits unknown = ready_bits(false);
  const bool has_unknown = std::ranges::any_of(unknown, [](std::uint64_t word) { return word; });
  bits_ = ready_bits(true);
  bits_.back() = has_unknown ? 0 : 1;
  work_ = control_.all_reduce_async(std::span(bits_), ReduceOp::kBitAnd);
  stage_ = Stage::agreeing;
}

void FusionReducer::end_agreement() {
  const bool is_all_known = bits_.back() != 0;
  queue(bits_);
  if (is_all_known) return begin_reducing();
  bits_ = ready_bits(false);
  gathered_.resize(bits_.size() * static_cast<std::size_t>(control_.size()));
  work_ = control_.gather_async(std::span(bits_), std::span(gathered_));
  stage_ = Stage::gathering;
}

void FusionReducer::tell() {
  if (control_.rank() == 0) {
    for (std::size_t i = 0; i < gathered_.size(); ++i) bits_[i % bits_.size()] &= gathered_[i];
  }
  work_ = control_.broadcast_async(std::span(bits_));
  stage_ = Stage::telling;
}

void FusionReducer::queue(const Bits& bits) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (!has_bit(bits, i)) continue;
    is_known_[i] = true;
    is_queued_[i] = true;
    queue_.push_back(i);
  }
}

void FusionReducer::begin_reducing() {
  std::ranges::sort(queue_);
  group_end_ = 0;
  reduce_next_group();
}

// A parameter that is longer than the buffer is a group of its own.
void FusionReducer::reduce_next_group() {
  group_begin_ = group_end_;
  if (group_begin_ == queue_.size()) {
    stage_ = Stage::idle;
    return;
  }
  buffer_.clear();
  while (group_end_ < queue_.size()) {
    const std::size_t i = queue_[group_end_];
    const std::span<const float> gradients = gradients_of(i);
    const bool fits = (buffer_.size() + gradients.size()) * sizeof(float) <= kBufferBytes;
    if (!fits && group_end_ > group_begin_) break;
    buffer_.insert(buffer_.end(), gradients.begin(), gradients.end());
    begin_flight(i);
    ++group_end_;
  }
  work_ = strategy_.exchange_buffer(buffer_);
  stage_ = Stage::reducing;
}

void FusionReducer::end_group() {
  const Clock::time_point now = Clock::now();
  const auto count = static_cast<std::int64_t>(buffer_.size());
  group_hops_ += strategy_.hops(count);
  group_traffic_ += strategy_.traffic(count);
  strategy_.receive_buffer(buffer_);
  const float* sums = buffer_.data();
  for (std::size_t at = group_begin_; at < group_end_; ++at) {
    const std::size_t i = queue_[at];
    const std::span<float> gradients = gradients_of(i);
    std::copy_n(sums, gradients.size(), gradients.begin());
    sums += gradients.size();
    end_flight(i, now);
    to_apply_.push_back(i);
    ++reduced_;
  }
}

}  // namespace kolo::train
