// Messages of a TCP store made from fuzzer input: complete messages, so that more than the first
// header is reached, and any bytes.
#pragma once

#include <string>

#include "test/fuzz/input.h"
#include "transports/store/wire.h"

namespace kolo::fuzz {

// Small numbers, or any numbers.
inline std::int64_t number_of(Input& input) {
  const auto small = input.number<std::int8_t>();
  return small == -128 ? input.number<std::int64_t>() : small;
}

// `id`: the number to which the message's own id is relative.
inline std::string speech_of(Input& input, std::uint64_t id) {
  constexpr unsigned kKinds = static_cast<unsigned>(store_wire::Kind::kLast);
  const unsigned kind = input.below(kKinds + 2);
  if (kind == 0) return input.short_text();
  store_wire::Message message;
  message.kind = static_cast<store_wire::Kind>(kind);
  message.id = id + static_cast<std::uint64_t>(input.number<std::int8_t>());
  message.number = number_of(input);
  message.key = input.short_text();
  message.value = input.short_text();
  if (kind <= kKinds) return store_wire::encode(message);
  message.kind = store_wire::Kind::kSet;  // a long message
  message.value.resize(5000);
  return store_wire::encode(message);
}

}  // namespace kolo::fuzz
