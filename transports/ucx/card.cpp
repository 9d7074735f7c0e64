// Lines: the form's name and version; identity; lifeline; token, segment_bytes, the address in hex;
// a sum over all of that. UCX reads an address without looking whether it is one.
#include "transports/ucx/card.h"

#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "transports/error.h"

namespace kolo::ucx {

namespace {

constexpr const char* kForm = "kolo-ucx 2";

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<int> digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return std::nullopt;
}

std::optional<std::string> from_hex(const std::string& text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = digit(text[i]);
    const auto low = digit(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high * 16 + *low);
  }
  return bytes;
}

// FNV-1a.
std::uint64_t sum_of(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : text) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return sum;
}

std::string body_of(const Card& card) {
  return fmt::format("{}\n{}\n{}\n{} {} {} {}\n", kForm, card.identity, card.lifeline, card.token,
                     card.segment_bytes, card.host_bytes, to_hex(card.address));
}

}  // namespace

std::string to_text(const Card& card) {
  const std::string body = body_of(card);
  return fmt::format("{}{:016x}\n", body, sum_of(body));
}

Card card_from_text(const std::string& text, int rank) {
  std::istringstream stream(text);
  Card card;
  std::string form;
  std::string address;
  std::getline(stream, form);
  std::getline(stream, card.identity);
  std::getline(stream, card.lifeline);
  stream >> card.token >> card.segment_bytes >> card.host_bytes >> address;
  const auto bytes = from_hex(address);
  if (stream && bytes && !bytes->empty() && form == kForm) {
    card.address = *bytes;
    if (to_text(card) == text) return card;
  }
  throw Error(ErrorCode::kProtocol, rank,
              fmt::format("rank {} published an unreadable ucx address: is it another version of "
                          "kolo?",
                          rank));
}

}  // namespace kolo::ucx
