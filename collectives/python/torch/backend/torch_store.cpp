#include "collectives/python/torch/backend/torch_store.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/python/torch/backend/failures.h"

namespace kolo_torch {
namespace {

// A store of torch is not meant for several threads at once. No function here blocks for long.
struct Connection {
  std::mutex mutex;
  c10::intrusive_ptr<c10d::Store> store;
};

// Runs `body` on the store. Another value than 0: it threw. The ranks' next step reports it.
template <typename Body>
int call(void* context, Body&& body) noexcept {
  auto* connection = static_cast<Connection*>(context);
  try {
    const std::lock_guard lock(connection->mutex);
    body(*connection->store);
    return 0;
  } catch (...) {
    return 1;
  }
}

int set(void* context, const char* key, const void* value, std::size_t bytes) {
  return call(context, [&](c10d::Store& store) {
    const auto* data = static_cast<const std::uint8_t*>(value);
    store.set(key, std::vector<std::uint8_t>(data, data + bytes));
  });
}

int get(void* context, const char* key, int* found,
        void (*take)(void* taker, const void* value, std::size_t bytes), void* taker) {
  return call(context, [&](c10d::Store& store) {
    *found = store.check({key}) ? 1 : 0;
    if (*found == 0) return;
    const std::vector<std::uint8_t> value = store.get(key);
    take(taker, value.data(), value.size());
  });
}

int add(void* context, const char* key, std::int64_t delta, std::int64_t* sum) {
  return call(context, [&](c10d::Store& store) { *sum = store.add(key, delta); });
}

int remove(void* context, const char* key) {
  return call(context, [&](c10d::Store& store) { store.deleteKey(key); });
}

void free(void* context) {
  const std::unique_ptr<Connection> owner(static_cast<Connection*>(context));
}

}  // namespace

c10::intrusive_ptr<c10d::Store> own_connection(const c10::intrusive_ptr<c10d::Store>& store) {
#ifdef KOLO_TORCH_HAS_STORE_CLONE
  return store->clone();
#else
  return store;
#endif
}

kolo_job_store* open_torch_store(const c10::intrusive_ptr<c10d::Store>& store) {
  auto connection = std::make_unique<Connection>();
  connection->store = own_connection(store);
  if (connection->store != store) {
    connection->store->setTimeout(std::chrono::seconds(3));  // of a store that has ended already
  }
  kolo_store_functions functions{};
  functions.size = sizeof functions;
  functions.set = set;
  functions.get = get;
  functions.add = add;
  functions.remove = remove;
  functions.free = free;
  functions.context = connection.get();
  functions.name = "the store of torch.distributed";
  kolo_job_store* made = nullptr;
  require({"(new)", 0, 1}, "init", kolo_store_from_functions(&functions, &made), nullptr);
  static_cast<void>(connection.release());
  return made;
}

}  // namespace kolo_torch
