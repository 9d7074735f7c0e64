// Key-value store of a caller of the C interface, as a table in this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "collectives/c/kolo_store.h"

namespace kolo::test {

// A key-value store in plain C functions, and how often it was freed.
struct Table {
  std::mutex mutex;
  std::map<std::string, std::string> values;
  std::map<std::string, std::int64_t> counters;
  std::atomic<int> frees = 0;
};

inline int set_value(void* table, const char* key, const void* value, size_t bytes) {
  auto& t = *static_cast<Table*>(table);
  const std::lock_guard lock(t.mutex);
  t.values[key].assign(static_cast<const char*>(value), bytes);
  return 0;
}

inline int get_value(void* table, const char* key, int* found,
                     void (*take)(void* taker, const void* value, size_t bytes), void* taker) {
  auto& t = *static_cast<Table*>(table);
  const std::lock_guard lock(t.mutex);
  const auto entry = t.values.find(key);
  *found = entry != t.values.end() ? 1 : 0;
  if (*found != 0) take(taker, entry->second.data(), entry->second.size());
  return 0;
}

inline int add_value(void* table, const char* key, int64_t delta, int64_t* sum) {
  auto& t = *static_cast<Table*>(table);
  const std::lock_guard lock(t.mutex);
  *sum = t.counters[key] += delta;
  return 0;
}

inline kolo_store_functions functions_of(Table& table) {
  kolo_store_functions functions = {};
  functions.size = sizeof functions;
  functions.set = set_value;
  functions.get = get_value;
  functions.add = add_value;
  functions.free = [](void* freed) { ++static_cast<Table*>(freed)->frees; };
  functions.context = &table;
  functions.name = "the table of the test";
  return functions;
}

}  // namespace kolo::test
