// Clauses on threads: a transport belongs to one thread at a time; transports of one process may be
// on different threads; any thread may allocate memory.
#include <atomic>
#include <thread>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

// Runs `body` on a new thread and joins it; throws its error.
void on_another_thread(const std::function<void()>& body) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

void passed_from_thread_to_thread(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    for (int i = 0; i < 10; ++i) {
      on_another_thread(
          [&] { rank.send_pattern(peer, i, 5000, i % 2 == 0 ? Out::kSlot : Out::kSend); });
      on_another_thread(
          [&] { rank.expect_pattern(peer, i, 5000, i % 3 == 0 ? In::kView : In::kReceive); });
      on_another_thread([&] { rank.drain(peer); });
    }
    rank.meet("done");
    on_another_thread([&] { rank.drop_transport(); });
  });
}

void memory_from_any_thread(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([&] {
        try {
          for (int i = 0; i < 20; ++i) {
            const auto memory = rank.transport().allocate(10'000);
            memory[9'999] = std::byte{1};
          }
        } catch (const std::exception&) {
          ++bad;
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      rank.send_pattern(peer, i, 5000);
      rank.expect_pattern(peer, i, 5000);
      rank.drain(peer);
    }
    for (auto& thread : threads) thread.join();
    expect(bad == 0, "memory for every thread");
  });
}

}  // namespace kolo::inline v0::conformance
