#include "bench/device/kernel_bandwidth.h"

#include <algorithm>

#include "bench/device/kernel_operands.h"

namespace kolo::bench {
namespace {

constexpr int kWarmUps = 3;
constexpr std::size_t kFetched = 16 * kOperandPeriod;  // at a time

}  // namespace

const char* to_string(KernelForm form) {
  switch (form) {
    case KernelForm::kInPlace:
      return "in_place";
    case KernelForm::kApart:
      return "apart";
    case KernelForm::kTwice:
      return "twice";
  }
  return "unknown form";
}

KernelArrays::KernelArrays(ElementType type, std::size_t bytes)
    : type_(type),
      bytes_(bytes),
      expected_(kOperandPeriod),
      fetched_(std::min(bytes, kFetched)),
      fresh_(bytes),
      mine_(bytes),
      theirs_(bytes),
      other_(bytes) {
  device::load(type);
  const auto local = operand_period(type, 1);
  const auto incoming = operand_period(type, 2);
  fill(fresh_, local);
  fill(theirs_, incoming);
  reduce_kernel(type, ReduceOp::kSum)(expected_.data(), nullptr, local.data(), incoming.data(),
                                      kOperandPeriod / element_bytes(type), 1);
}

// One period from the host; the device doubles it until the buffer is full.
void KernelArrays::fill(const device::Buffer& buffer, const std::vector<std::byte>& period) {
  std::size_t filled = std::min(bytes_, period.size());
  device::copy(buffer.data(), period.data(), filled, stream_);
  while (filled < bytes_) {
    const std::size_t more = std::min(filled, bytes_ - filled);
    device::copy(buffer.data() + filled, buffer.data(), more, stream_);
    filled += more;
  }
  device::wait(stream_);
}

device::Pass KernelArrays::pass(KernelForm form) const {
  return {form == KernelForm::kApart ? other_.data() : mine_.data(),
          form == KernelForm::kTwice ? other_.data() : nullptr, mine_.data(), theirs_.data(),
          bytes_ / element_bytes(type_)};
}

double KernelArrays::run_kernel_us(KernelForm form) {
  device::copy(mine_.data(), fresh_.data(), bytes_, stream_);
  start_.record(stream_);
  device::reduce(type_, ReduceOp::kSum, pass(form), stream_);
  end_.record(stream_);
  device::wait(stream_);
  return end_.microseconds_since(start_);
}

double KernelArrays::run_copy_us() {
  start_.record(stream_);
  device::copy(other_.data(), fresh_.data(), bytes_, stream_);
  end_.record(stream_);
  device::wait(stream_);
  return end_.microseconds_since(start_);
}

std::uint64_t KernelArrays::count_wrong(const void* array) {
  std::uint64_t wrong = 0;
  for (std::size_t done = 0; done < bytes_; done += fetched_.size()) {
    const std::size_t piece = std::min(fetched_.size(), bytes_ - done);
    device::copy(fetched_.data(), static_cast<const std::byte*>(array) + done, piece, stream_);
    device::wait(stream_);
    wrong += count_wrong_elements(type_, std::span(fetched_).first(piece), expected_);
  }
  return wrong;
}

std::uint64_t KernelArrays::count_wrong(KernelForm form) {
  const device::Pass checked = pass(form);
  return count_wrong(checked.out) + (checked.copy == nullptr ? 0 : count_wrong(checked.copy));
}

KernelResult KernelArrays::measure(KernelForm form, int iterations) {
  std::vector<double> kernel_us, copy_us;
  for (int i = 0; i < kWarmUps + iterations; ++i) {
    kernel_us.push_back(run_kernel_us(form));
    copy_us.push_back(run_copy_us());
  }
  kernel_us.erase(kernel_us.begin(), kernel_us.begin() + kWarmUps);
  copy_us.erase(copy_us.begin(), copy_us.begin() + kWarmUps);
  KernelResult result;
  result.kernel_us = quantiles(kernel_us);
  result.copy_us = quantiles(copy_us);
  result.kernel_bytes = bytes_ * (form == KernelForm::kTwice ? 4 : 3);
  result.copy_bytes = bytes_ * 2;
  run_kernel_us(form);  // once more, since a copy has overwritten a result
  result.wrong = count_wrong(form);
  return result;
}

}  // namespace kolo::bench
