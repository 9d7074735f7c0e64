#include "test/transports/shm/ranks.h"

#include <poll.h>
#include <sched.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace kolo::test {

TransportRequest request_for(int rank, int size, std::shared_ptr<Store> store) {
  TransportRequest request;
  request.rank = rank;
  request.size = size;
  request.store = std::move(store);
  request.deadline = soon();
  return request;
}

void run_ranks(int size, const std::function<void(int rank, const std::shared_ptr<Store>&)>& body,
               const std::shared_ptr<Store>& store) {
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        body(rank, store);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  if (first) std::rethrow_exception(first);
}

void run_connected(int size, const std::function<void(Transport&)>& body,
                   const ShmSettings& settings) {
  run_ranks(size, [&](int rank, const std::shared_ptr<Store>& store) {
    const auto transport = make_shm(request_for(rank, size, store), settings);
    body(*transport);
  });
}

std::vector<std::unique_ptr<Transport>> make_ranks(int size, const std::shared_ptr<Store>& store) {
  std::vector<std::unique_ptr<Transport>> ranks(static_cast<std::size_t>(size));
  const auto make = [&](int rank, const std::shared_ptr<Store>&) {
    ranks[static_cast<std::size_t>(rank)] = make_shm(request_for(rank, size, store));
  };
  run_ranks(size, make, store);
  return ranks;
}

void expect(bool holds, const char* file, int line) {
  if (!holds)
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": it does not hold");
}

void expect_bug(const std::function<void()>& call, const char* file, int line) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return;
  }
  expect(false, file, line);
}

void wait_until(Transport& transport, const std::function<bool()>& is_done, const std::string& what,
                Wait wait) {
  const auto deadline = soon();
  for (unsigned turn = 1; !is_done(); ++turn) {
    transport.progress();
    if (turn % 64 == 0 && Clock::now() > deadline)
      throw std::runtime_error("waited in vain: " + what);
    if (wait == Wait::kSpin) {
      if (turn % 64 == 0) ::sched_yield();
      continue;
    }
    if (is_done()) return;
    if (!transport.arm()) continue;
    pollfd watched{transport.descriptor(), POLLIN, 0};
    const int ready = ::poll(&watched, 1, 20'000);
    transport.disarm();
    if (ready == 0) throw std::runtime_error("slept for 20 s and was not woken: " + what);
  }
}

void send(Transport& from, int to, std::uint64_t value) {
  expect(from.channel(to).send(std::as_bytes(std::span(&value, 1))));
}

std::uint64_t receive(Transport& rank, int from) {
  std::uint64_t value = 0;
  wait_until(
      rank,
      [&] { return rank.channel(from).receive(std::as_writable_bytes(std::span(&value, 1))); },
      "a segment");
  return value;
}

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("no error came");
}

}  // namespace kolo::test
