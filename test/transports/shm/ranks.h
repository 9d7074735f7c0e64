// Ranks as threads of the test, each with one end of the same shm transport, and waits with a
// deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/error.h"
#include "transports/registry.h"
#include "transports/rendezvous.h"
#include "transports/shm/transport.h"

namespace kolo::test {

inline Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

TransportRequest request_for(int rank, int size, std::shared_ptr<Store> store);

// Runs `body` on each of `size` ranks, and rethrows the first exception.
void run_ranks(int size, const std::function<void(int rank, const std::shared_ptr<Store>&)>& body,
               const std::shared_ptr<Store>& store = make_local_store());
void run_connected(int size, const std::function<void(Transport&)>& body,
                   const ShmSettings& settings = {});

// The connected ranks of one job, for one thread that runs them in turn.
std::vector<std::unique_ptr<Transport>> make_ranks(
    int size, const std::shared_ptr<Store>& store = make_local_store());

// Catch2's macros work on one thread only: on a rank a failure is an exception that run_ranks
// rethrows.
void expect(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE());
void expect_bug(const std::function<void()>& call, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

enum class Wait { kSpin, kSleep };

// Waits until `is_done` or the deadline; then the error names `what`. Wait::kSleep uses arm, poll,
// disarm.
void wait_until(Transport& transport, const std::function<bool()>& is_done, const std::string& what,
                Wait wait = Wait::kSpin);

// One segment of eight bytes, in one call.
void send(Transport& from, int to, std::uint64_t value);
std::uint64_t receive(Transport& rank, int from);

// The Error that `body` throws.
Error error_of(const std::function<void()>& body);

}  // namespace kolo::test
