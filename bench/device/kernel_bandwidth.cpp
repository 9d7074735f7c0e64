#include "bench/device/kernel_bandwidth.h"

#include <cstring>
#include <vector>

#include "collectives/reduce/device/kernels.h"

namespace kolo::bench {
namespace {

constexpr int kWarmUps = 3;

template <typename T>
void write_one(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

void write_element(ElementType type, std::byte* to, int value) {
  const auto number = static_cast<float>(value);
  switch (type) {
    case ElementType::kFloat32:
      return write_one(to, number);
    case ElementType::kFloat64:
      return write_one(to, static_cast<double>(value));
    case ElementType::kBFloat16:
      return write_one(to, to_bfloat16(number));
    case ElementType::kFloat16:
      return write_one(to, to_float16(number));
    case ElementType::kFloat8E4M3:
      return write_one(to, to_float8_e4m3(number));
    case ElementType::kFloat8E5M2:
      return write_one(to, to_float8_e5m2(number));
    default:
      break;
  }
  // Integers of any length: devices and hosts are little-endian.
  const std::int64_t wide = value;
  std::memcpy(to, &wide, element_bytes(type));
}

// Small numbers, so that every type can hold the sum of two.
std::vector<std::byte> numbers(ElementType type, std::size_t count, std::uint32_t seed) {
  const std::size_t length = element_bytes(type);
  std::vector<std::byte> all(count * length);
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    write_element(type, all.data() + i * length, static_cast<int>(state >> 29));
  }
  return all;
}

std::uint64_t count_wrong(ElementType type, const std::vector<std::byte>& found,
                          const std::vector<std::byte>& expected) {
  const std::size_t length = element_bytes(type);
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < found.size(); at += length) {
    if (std::memcmp(found.data() + at, expected.data() + at, length) != 0) ++wrong;
  }
  return wrong;
}

class Round {
 public:
  explicit Round(const KernelRequest& contest)
      : contest_(contest),
        count_(contest.bytes / element_bytes(contest.type)),
        local_(numbers(contest.type, count_, 1)),
        incoming_(numbers(contest.type, count_, 2)),
        fresh_(contest.bytes),
        mine_(contest.bytes),
        theirs_(contest.bytes),
        other_(contest.bytes) {
    device::load(contest.type);
    device::copy(fresh_.data(), local_.data(), local_.size(), stream_);
    device::copy(theirs_.data(), incoming_.data(), incoming_.size(), stream_);
  }

  void run(std::vector<double>& kernel_us, std::vector<double>& copy_us) {
    device::copy(mine_.data(), fresh_.data(), local_.size(), stream_);
    start_.record(stream_);
    device::reduce(contest_.type, ReduceOp::kSum, pass(), stream_);
    end_.record(stream_);
    device::wait(stream_);
    kernel_us.push_back(end_.microseconds_since(start_));
    fetch_if_last(kernel_us.size());
    start_.record(stream_);
    device::copy(other_.data(), fresh_.data(), local_.size(), stream_);
    end_.record(stream_);
    device::wait(stream_);
    copy_us.push_back(end_.microseconds_since(start_));
  }

  std::uint64_t wrong() const {
    std::vector<std::byte> expected(local_.size());
    reduce_kernel(contest_.type, ReduceOp::kSum)(expected.data(), nullptr, local_.data(),
                                                 incoming_.data(), count_, 1);
    std::uint64_t wrong = count_wrong(contest_.type, result_, expected);
    if (!copied_.empty()) wrong += count_wrong(contest_.type, copied_, expected);
    return wrong;
  }

 private:
  device::Pass pass() const {
    const bool is_apart = contest_.form == KernelForm::kApart;
    return {is_apart ? other_.data() : mine_.data(),
            contest_.form == KernelForm::kTwice ? other_.data() : nullptr, mine_.data(),
            theirs_.data(), count_};
  }

  void fetch_if_last(std::size_t round) {
    if (round != static_cast<std::size_t>(contest_.iterations + kWarmUps)) return;
    result_.resize(local_.size());
    device::copy(result_.data(), pass().out, result_.size(), stream_);
    if (pass().copy != nullptr) {
      copied_.resize(local_.size());
      device::copy(copied_.data(), pass().copy, copied_.size(), stream_);
    }
    device::wait(stream_);
  }

  KernelRequest contest_;
  std::size_t count_;
  std::vector<std::byte> local_, incoming_, result_, copied_;
  device::Buffer fresh_, mine_, theirs_, other_;
  device::OwnStream stream_;
  device::Event start_, end_;
};

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

KernelResult measure_kernel(const KernelRequest& contest) {
  Round round(contest);
  std::vector<double> kernel_us, copy_us;
  for (int i = 0; i < kWarmUps + contest.iterations; ++i) round.run(kernel_us, copy_us);
  kernel_us.erase(kernel_us.begin(), kernel_us.begin() + kWarmUps);
  copy_us.erase(copy_us.begin(), copy_us.begin() + kWarmUps);
  KernelResult result;
  result.kernel_us = quantiles(kernel_us);
  result.copy_us = quantiles(copy_us);
  result.kernel_bytes = contest.bytes * (contest.form == KernelForm::kTwice ? 4 : 3);
  result.copy_bytes = contest.bytes * 2;
  result.wrong = round.wrong();
  return result;
}

}  // namespace kolo::bench
