// Ranks of the C interface as threads.
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "collectives/c/kolo.h"
#include "collectives/c/kolo_store.h"

namespace kolo::test {

// Throws the text of the failure unless the result is KOLO_OK. Ranks are threads, and Catch2's
// checks belong to the main thread.
inline void expect_ok(kolo_result result, const char* what = "") {
  if (result == KOLO_OK) return;
  throw std::runtime_error(std::string(what) + " " + kolo_result_name(result) + ": " +
                           kolo_last_failure(nullptr).text);
}

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Runs `body` once per rank, each in a thread. Returns what each has thrown; empty: nothing.
inline std::vector<std::string> run_c_threads(int size, const std::function<void(int rank)>& body) {
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return thrown;
}

inline std::vector<std::string> none(int size) {
  return std::vector<std::string>(static_cast<std::size_t>(size));
}

// The same with a communicator for each rank, which meets over a store of this process. A body
// starts once all ranks have a communicator. Else the failure of a fast rank could end
// kolo_create() of a slow one.
using CBody = std::function<void(kolo_communicator* world)>;
inline std::vector<std::string> run_c_ranks(int size, const char* transport, const CBody& body) {
  kolo_job_store* store = nullptr;
  expect_ok(kolo_store_local(&store));
  std::barrier all_made(size);
  auto thrown = run_c_threads(size, [&](int rank) {
    kolo_options options = {};
    options.size = sizeof options;
    options.transport = transport;
    kolo_communicator* world = nullptr;
    const kolo_result made = kolo_create(&options, rank, size, store, &world);
    all_made.arrive_and_wait();
    expect_ok(made, "kolo_create");
    try {
      body(world);
    } catch (const std::exception& error) {
      kolo_abort(world, error.what());
      kolo_free(world);
      throw;
    }
    kolo_free(world);
  });
  kolo_store_free(store);
  return thrown;
}

inline void sum_ranks(kolo_communicator* world) {
  std::int32_t value = kolo_rank(world) + 1;
  expect_ok(kolo_all_reduce(world, &value, &value, 1, KOLO_INT32, KOLO_SUM, nullptr, nullptr));
  const int size = kolo_size(world);
  expect(value == size * (size + 1) / 2, "another sum");
}

inline std::string failure_of(const kolo_communicator* communicator = nullptr) {
  return kolo_last_failure(communicator).text;
}

}  // namespace kolo::test
