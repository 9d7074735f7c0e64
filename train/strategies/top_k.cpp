#include "train/strategies/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace kolo::train {
namespace {

// A larger magnitude has larger bits. So one pass over the upper bits finds the group of the
// smallest element to send.
constexpr int kLowerBits = 19;
constexpr std::size_t kGroups = std::size_t{1} << (31 - kLowerBits);

// Rounded up, at least one.
std::size_t elements_sent(std::int64_t elements, double sent_part) {
  const double count = std::ceil(static_cast<double>(elements) * sent_part);
  return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1,
                                 static_cast<std::size_t>(elements));
}

std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU; }

}  // namespace

std::vector<std::int32_t> largest_elements(std::span<const float> values, std::size_t count) {
  count = std::min(count, values.size());
  std::vector<std::int32_t> found;
  if (count == 0) return found;
  std::vector<std::size_t> in_group(kGroups);
  for (const float value : values) ++in_group[magnitude(value) >> kLowerBits];
  std::size_t border = kGroups - 1;  // the group of the smallest element to send
  std::size_t above = 0;             // elements in larger groups
  while (above + in_group[border] < count) above += in_group[border--];
  std::vector<std::uint32_t> at_border;
  at_border.reserve(in_group[border]);
  for (const float value : values) {
    if (magnitude(value) >> kLowerBits == border) at_border.push_back(magnitude(value));
  }
  const auto last = at_border.begin() + static_cast<std::ptrdiff_t>(count - above - 1);
  std::ranges::nth_element(at_border, last, std::greater{});
  const std::uint32_t least = *last;
  std::size_t equal = 1 + static_cast<std::size_t>(std::count(at_border.begin(), last, least));
  found.reserve(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t one = magnitude(values[i]);
    if (one < least || (one == least && equal == 0)) continue;
    if (one == least) --equal;
    found.push_back(static_cast<std::int32_t>(i));
  }
  return found;
}

TopK::TopK(Communicator& communicator, std::span<const Bucket> buckets, std::size_t elements,
           double sent_part)
    : communicator_(communicator), sent_part_(sent_part), unsent_(elements) {
  for (const Bucket& bucket : buckets) exchanges_.push_back({bucket.range, {}});
}

std::size_t TopK::bytes_sent(std::int64_t elements, double sent_part) {
  return elements_sent(elements, sent_part) * sizeof(Choice);
}

Work TopK::exchange(std::size_t i, std::span<const float> gradients) {
  const tensor::Range range = exchanges_[i].range;
  const std::span<float> rest = std::span(unsent_).subspan(static_cast<std::size_t>(range.begin),
                                                           static_cast<std::size_t>(range.count));
  std::vector<Choice>& all = exchanges_[i].choices;
  for (std::size_t at = 0; at < rest.size(); ++at) rest[at] += gradients[at];
  const std::size_t count = elements_sent(static_cast<std::int64_t>(rest.size()), sent_part_);
  all.resize(count * static_cast<std::size_t>(communicator_.size()));
  const std::span<Choice> mine =
      std::span(all).subspan(count * static_cast<std::size_t>(communicator_.rank()), count);
  std::size_t next = 0;
  for (const std::int32_t index : largest_elements(rest, count)) {
    float& value = rest[static_cast<std::size_t>(index)];
    mine[next++] = {index, value};
    value = 0;
  }
  CallOptions call;
  call.algorithm = "ring";
  return communicator_.all_gather_async(std::as_writable_bytes(mine),
                                        std::as_writable_bytes(std::span(all)), call);
}

void TopK::receive(std::size_t i, std::span<float> gradients) {
  std::ranges::fill(gradients, 0.0F);
  for (const Choice& one : exchanges_[i].choices)
    gradients[static_cast<std::size_t>(one.index)] += one.value;
}

}  // namespace kolo::train
