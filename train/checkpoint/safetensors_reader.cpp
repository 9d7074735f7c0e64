#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "train/checkpoint/safetensors.h"

namespace kolo::train {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers of files are read as they are");

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kLengthBytes = 8;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                             {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                             {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

float from_half(std::uint16_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero, or subnormal: fraction * 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? size : -size;
  }
  const std::uint32_t widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (widened << 23U) | (fraction << 13U));
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// Calls put(i, number) for each element of raw bytes.
template <typename Number, typename Put>
void for_each_number(std::span<const char> bytes, Put put) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(Number); ++i) {
    Number number{};
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    put(i, number);
  }
}

// The product of a shape and the size of an element. False if it does not fit into 64 bits.
bool bytes_of(const StoredTensor& tensor, std::uint64_t element, std::uint64_t& bytes) {
  bytes = element;
  for (const std::int64_t side : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(side), &bytes)) return false;
  }
  return true;
}

std::uint64_t natural(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) throw std::invalid_argument("expected whole numbers");
  return value.get<std::uint64_t>();
}

StoredTensor tensor_from(const std::string& name, const nlohmann::json& entry) {
  StoredTensor tensor{name, entry.at("dtype").get<std::string>(), {}, 0, 0};
  const nlohmann::json& offsets = entry.at("data_offsets");
  if (!entry.at("shape").is_array() || !offsets.is_array() || offsets.size() != 2)
    throw std::invalid_argument("expected a list of sides and two offsets");
  for (const nlohmann::json& side : entry.at("shape")) {
    const std::uint64_t length = natural(side);
    if (length > std::numeric_limits<std::int64_t>::max())
      throw std::invalid_argument("a side is too long");
    tensor.shape.push_back(static_cast<std::int64_t>(length));
  }
  tensor.begin = natural(offsets[0]);
  tensor.end = natural(offsets[1]);
  const auto* const dtype = std::ranges::find(kDtypes, tensor.dtype, &Dtype::name);
  if (dtype == std::end(kDtypes))
    throw std::invalid_argument(fmt::format("unknown dtype '{}'", tensor.dtype));
  std::uint64_t bytes = 0;
  if (!bytes_of(tensor, dtype->bytes, bytes) || tensor.end < tensor.begin ||
      tensor.end - tensor.begin != bytes)
    throw std::invalid_argument(fmt::format("its offsets {} and {} do not fit {} of {}",
                                            tensor.begin, tensor.end, tensor.dtype,
                                            shape_text(tensor.shape)));
  return tensor;
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  return shape.empty() ? "a scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  std::error_code code;
  const bool is_file = std::filesystem::is_regular_file(path, code);
  const std::uint64_t size = is_file ? std::filesystem::file_size(path, code) : 0;
  if (code) refuse(code.message());
  if (!is_file) refuse("it is not a file");
  errno = 0;
  file_.open(path, std::ios::binary);
  std::array<char, kLengthBytes> length{};
  if (!file_) refuse(std::strerror(errno));
  if (size < kLengthBytes || !file_.read(length.data(), kLengthBytes))
    refuse(fmt::format("it has {} bytes, which is no safetensors file", size));
  const auto header = std::bit_cast<std::uint64_t>(length);
  if (header > kLongestHeader)
    refuse(
        fmt::format("its header would have {} bytes, and {} are allowed; it is no safetensors "
                    "file",
                    header, kLongestHeader));
  if (header > size - kLengthBytes)
    refuse(fmt::format("its header has {} bytes, but the file only {}; it is truncated", header,
                       size));
  std::string text(header, '\0');
  if (!file_.read(text.data(), static_cast<std::streamsize>(header))) refuse("it cannot be read");
  data_begin_ = kLengthBytes + header;
  parse_header(text, size - data_begin_);
}

void SafetensorsFile::parse_header(std::string_view text, std::uint64_t data_bytes) {
  std::set<std::string> names;
  std::string twice;
  const auto note_names = [&](int depth, nlohmann::json::parse_event_t event,
                              nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key &&
        !names.insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  const nlohmann::json header = nlohmann::json::parse(text, note_names, false);
  if (!header.is_object()) refuse("its header is not a JSON object; it is damaged");
  if (!twice.empty()) refuse(fmt::format("tensor '{}' is there twice", twice));
  for (const auto& [name, entry] : header.items()) {
    try {
      if (name == "__metadata__") {
        metadata_ = entry.get<std::map<std::string, std::string>>();
      } else {
        tensors_.push_back(tensor_from(name, entry));
      }
    } catch (const std::exception& error) {  // of nlohmann::json, too
      refuse(fmt::format("the header's entry '{}' is damaged: {}", name, error.what()));
    }
  }
  std::ranges::sort(tensors_, {},
                    [](const StoredTensor& tensor) { return std::pair(tensor.begin, tensor.end); });
  std::uint64_t end = 0;
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.begin != end)
      refuse(fmt::format("tensor '{}' begins at byte {} of the data, not {}: there is {}",
                         tensor.name, tensor.begin, end,
                         tensor.begin < end ? "an overlap" : "a hole"));
    end = tensor.end;
  }
  if (end != data_bytes)
    refuse(fmt::format("its tensors have {} bytes, but the file has {} of data; it is {}", end,
                       data_bytes, data_bytes < end ? "truncated" : "damaged"));
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::span<float> out) {
  std::vector<char> bytes(tensor.end - tensor.begin);
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(data_begin_ + tensor.begin));
  if (!file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    refuse(fmt::format("tensor '{}' cannot be read", tensor.name));
  const auto* const dtype = std::ranges::find(kDtypes, tensor.dtype, &Dtype::name);
  if (out.size() != bytes.size() / dtype->bytes)
    refuse(fmt::format("tensor '{}' has {} elements, not {}", tensor.name,
                       bytes.size() / dtype->bytes, out.size()));
  if (tensor.dtype == "F32") {
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (tensor.dtype == "F64") {
    for_each_number<double>(bytes, [&](auto i, auto x) { out[i] = static_cast<float>(x); });
  } else if (tensor.dtype == "I64") {
    for_each_number<std::int64_t>(bytes, [&](auto i, auto x) { out[i] = static_cast<float>(x); });
  } else if (tensor.dtype == "F16") {
    for_each_number<std::uint16_t>(bytes, [&](auto i, auto x) { out[i] = from_half(x); });
  } else if (tensor.dtype == "BF16") {
    for_each_number<std::uint16_t>(bytes, [&](auto i, auto x) { out[i] = from_bfloat(x); });
  } else {
    refuse(fmt::format("tensor '{}' is {}; expected one of F32, F64, F16, BF16, I64", tensor.name,
                       tensor.dtype));
  }
}

void SafetensorsFile::refuse(const std::string& reason) const {
  throw CheckpointError(fmt::format("{}: {}", path_, reason));
}

}  // namespace kolo::train
