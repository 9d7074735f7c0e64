#include "train/data/synthetic.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <vector>

#include "train/data/random.h"

namespace kolo::train {
namespace {

constexpr int kMostSide = 4096;
constexpr int kMostChannels = 3;
constexpr int kMostClasses = 1 << 20;
constexpr std::int64_t kPlaces = 65'521;  // in the buffer, where samples begin: a prime number
constexpr std::int64_t kStride = 7'919;   // between the places of adjacent samples

struct Form {
  ImageShape shape{32, 32, 3};
  int classes = 10;
};

class Synthetic final : public Dataset {
 public:
  Synthetic(Form form, std::int64_t size, std::uint64_t seed)
      : form_(form),
        size_(size),
        bytes_(static_cast<std::size_t>(form.shape.elements() + kPlaces)) {
    Random random(seed, Purpose::synthetic, 0);
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random.bits() >> 24);
  }

  std::string description() const override { return "synthetic"; }
  std::int64_t size() const override { return size_; }
  int classes() const override { return form_.classes; }
  ImageShape shape() const override { return form_.shape; }
  // Mean and deviation of uniform bytes.
  Normalization normalization() const override {
    return {{127.5f, 127.5f, 127.5f}, {73.9f, 73.9f, 73.9f}};
  }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    const std::int64_t place = index % kPlaces * kStride % kPlaces;
    std::memcpy(pixels.data(), bytes_.data() + place, pixels.size());
    return static_cast<int>(index % form_.classes);
  }

 private:
  Form form_;
  std::int64_t size_;
  std::vector<std::uint8_t> bytes_;
};

// Takes a number from 1 to `most` and the sign after it, if it is not the last, off `text`. Returns
// 0 if there is none.
int take_number(std::string_view& text, int most, char sign) {
  int number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (code != std::errc{} || number < 1 || number > most) return 0;
  if (text.empty()) return number;
  if (text.front() != sign || text.size() == 1) return 0;
  text.remove_prefix(1);
  return number;
}

Form parse_form(std::string_view argument) {
  Form form;
  if (argument.empty()) return form;
  std::string_view rest = argument;
  form.shape.height = take_number(rest, kMostSide, 'x');
  form.shape.width = take_number(rest, kMostSide, 'x');
  form.shape.channels = take_number(rest, kMostChannels, ':');
  if (!rest.empty()) form.classes = take_number(rest, kMostClasses, '\0');
  if (form.shape.elements() > 0 && form.classes > 0 && rest.empty()) return form;
  throw DataError(
      fmt::format("data set 'synthetic:{}': expected HEIGHTxWIDTHxCHANNELS or "
                  "HEIGHTxWIDTHxCHANNELS:CLASSES, such as synthetic:224x224x3:1000, with sides up "
                  "to {}, up to {} channels, and up to {} classes",
                  argument, kMostSide, kMostChannels, kMostClasses));
}

}  // namespace

std::unique_ptr<Dataset> open_synthetic(std::string_view argument, Split split,
                                        const DatasetOptions& options) {
  std::int64_t size = split == Split::train ? options.train_size : options.test_size;
  if (size == 0) size = split == Split::train ? kSyntheticTrainSize : kSyntheticTestSize;
  return std::make_unique<Synthetic>(parse_form(argument), size, options.seed);
}

}  // namespace kolo::train
