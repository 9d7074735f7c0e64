#include "train/report/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>

namespace kolo::train {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reversed
constexpr std::uint32_t kMask = 0xA282EAD8;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// Files are little endian, as all machines that kolo runs on.
static_assert(std::endian::native == std::endian::little);
template <typename Number>
std::string raw(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7U) bytes += static_cast<char>(0x80U | (number & 0x7FU));
  return bytes + static_cast<char>(number);
}

// Keys of fields: number * 8 + kind; kinds: 0 varint, 1 eight bytes, 2 with a length, 5 four bytes.
std::string with_length(char key, const std::string& bytes) {
  return key + varint(bytes.size()) + bytes;
}

std::string masked(const std::string& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return raw<std::uint32_t>(((crc >> 15U) | (crc << 17U)) + kMask);
}

std::string record(const std::string& data) {
  const std::string length = raw<std::uint64_t>(data.size());
  return length + masked(length) + data + masked(data);
}

std::string event(const Scalar& scalar) {
  const std::string value = with_length('\x0a', scalar.tag) + '\x15' + raw(scalar.value);
  return '\x09' + raw(scalar.wall_time) + '\x10' + varint(static_cast<std::uint64_t>(scalar.step)) +
         with_length('\x2a', with_length('\x0a', value));
}

}  // namespace

std::uint32_t crc32c(const std::string& bytes) {
  std::uint32_t value = ~0U;
  for (const char byte : bytes)
    value = (value >> 8U) ^ kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU];
  return ~value;
}

std::string event_file(const std::vector<Scalar>& scalars, double start) {
  std::string bytes = record('\x09' + raw(start) + with_length('\x1a', "brain.Event:2"));
  for (const Scalar& scalar : scalars) bytes += record(event(scalar));
  return bytes;
}

std::vector<Scalar> scalars_of(const std::vector<EpochRecord>& epochs, double end) {
  std::vector<Scalar> scalars;
  for (const EpochRecord& epoch : epochs) {
    const double time = end - epochs.back().training_seconds + epoch.training_seconds;
    const auto add = [&](const char* tag, double value) {
      scalars.push_back({tag, epoch.iterations, time, static_cast<float>(value)});
    };
    add("loss/train", epoch.train_loss);
    add("accuracy/train", epoch.train_accuracy);
    add("learning rate", epoch.learning_rate);
    if (!epoch.is_evaluated) continue;
    add("loss/test", epoch.test_loss);
    add("accuracy/test", epoch.test_accuracy);
  }
  return scalars;
}

}  // namespace kolo::train
