#include "transports/store/tables.h"

#include <utility>

namespace kolo::inline v0 {

namespace {

// Overflow is defined: from the largest number to the smallest, in all stores.
std::int64_t wrapping_add(std::int64_t one, std::int64_t other) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(one) +
                                   static_cast<std::uint64_t>(other));
}

template <typename Map>
void erase_prefix(Map& map, std::string_view prefix) {
  const auto first = map.lower_bound(prefix);
  auto last = first;
  while (last != map.end() && last->first.starts_with(prefix)) ++last;
  map.erase(first, last);
}

}  // namespace

const std::string* StoreTables::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const std::string& StoreTables::set(std::string_view key, std::string value) {
  return values_.insert_or_assign(std::string(key), std::move(value)).first->second;
}

std::int64_t StoreTables::add(std::string_view key, std::int64_t delta) {
  return counters_[std::string(key)] = sum(key, delta);
}

std::int64_t StoreTables::sum(std::string_view key, std::int64_t delta) const {
  const auto found = counters_.find(key);
  return found == counters_.end() ? delta : wrapping_add(found->second, delta);
}

void StoreTables::set_counter(std::string_view key, std::int64_t value) {
  counters_[std::string(key)] = value;
}

void StoreTables::retire(std::string_view prefix, std::int64_t users) {
  Retired& retired = retired_[std::string(prefix)];
  retired.users = users;
  if (++retired.calls < users) return;
  erase_prefix(values_, prefix);
  erase_prefix(counters_, prefix);
  erase_prefix(retired_, prefix);
}

std::size_t StoreTables::bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, value] : values_) sum += key.size() + value.size();
  for (const auto& [key, value] : counters_) sum += key.size() + sizeof value;
  return sum;
}

}  // namespace kolo::inline v0
