// Ranks as threads: the base of every test of the communicator.
//
// Catch2's checks belong to the main thread, so a rank reports by throwing. Its exception is kept
// per rank.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "test/support/sanitizers.h"
#include "transports/error.h"

namespace kolo::test {

struct RankOutcome {
  std::string text;               // what() of the exception; empty if none was thrown
  std::optional<ErrorCode> code;  // if it was a kolo::Error
  bool is_bug = false;            // if it was std::invalid_argument
  int peer = kNoPeer;             // if it was a kolo::Error
};

// Runs `body` and returns its outcome.
RankOutcome outcome_of(const std::function<void()>& body);

using RankBody = std::function<void(int rank, std::shared_ptr<Store> store)>;

// Runs `body` once per rank, each in a thread of its own, with one store in this process.
std::vector<RankOutcome> run_threads(int size, const RankBody& body);

// The same with a communicator for every rank. Throws the error of the first failed rank, with its
// number.
using CommunicatorBody = std::function<void(Communicator& communicator)>;
void run_ranks(int size, const std::string& transport, const CommunicatorBody& body,
               CommunicatorOptions options = {});

// Throws std::runtime_error with `what` unless the condition holds.
void expect(bool holds, std::string_view what);

// The same with a text that is made on failure only. A text for every checked element would take
// most of a test's time, and minutes under a sanitizer.
template <std::invocable What>
void expect(bool holds, const What& what) {
  if (!holds) expect(false, what());
}

// The transports to test: all of this build that work among threads of one process. Under a
// sanitizer only kolo's own; with TEST_BORROWED=alone only those over external libraries.
std::vector<std::string> transports_under_test();

// The job sizes of a long grid over `transport`: `all` over kolo's own transports, `few` over those
// that need an external library (ucx, ofi). Jobs over the latter start slowly and run the same kolo
// code. Under a sanitizer: 1, 2, an odd size, and a power of two.
std::vector<int> sizes_over(const std::string& transport,
                            std::vector<int> all = all_or_few({1, 2, 3, 4, 5, 6, 7, 8, 9, 16},
                                                              {1, 2, 3, 5, 8}),
                            std::vector<int> few = {3, 8});

}  // namespace kolo::test
