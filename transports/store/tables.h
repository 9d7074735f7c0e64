// Values and counters of a store, and the groups of keys that are no longer used.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kolo::inline v0 {

class StoreTables {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;
  using Counters = std::map<std::string, std::int64_t, std::less<>>;

  // Null if the key is not set.
  const std::string* find(std::string_view key) const;
  const std::string& set(std::string_view key, std::string value);

  // Adds to a counter that starts at 0; returns the new value. It wraps around.
  std::int64_t add(std::string_view key, std::int64_t delta);
  // The same without a change.
  std::int64_t sum(std::string_view key, std::int64_t delta) const;
  void set_counter(std::string_view key, std::int64_t value);

  // One of `users` has no more use for the keys that start with `prefix`. The last one's call
  // removes them.
  void retire(std::string_view prefix, std::int64_t users);

  const Values& values() const { return values_; }
  const Counters& counters() const { return counters_; }
  // The calls of retire(), by prefix. A prefix whose keys were removed is not listed.
  struct Retired {
    std::int64_t calls = 0;
    std::int64_t users = 0;
  };
  const std::map<std::string, Retired, std::less<>>& retired() const { return retired_; }

  // Bytes of all keys and values.
  std::size_t bytes() const;

 private:
  Values values_;
  Counters counters_;
  std::map<std::string, Retired, std::less<>> retired_;
};

}  // namespace kolo::inline v0
