// Ranks as threads: what every test of the communicator starts from.
//
// Catch2's checks belong to the main thread, so a rank reports by throwing; what it threw is kept
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
  std::string text;               // what() of what was thrown, empty where nothing was
  std::optional<ErrorCode> code;  // of a kolo::Error
  bool is_bug = false;            // std::invalid_argument
  int peer = kNoPeer;             // of a kolo::Error
};

// What comes of `body`.
RankOutcome outcome_of(const std::function<void()>& body);

using RankBody = std::function<void(int rank, std::shared_ptr<Store> store)>;

// Runs `body` once per rank, each in a thread of its own, over one store in this process.
std::vector<RankOutcome> run_threads(int size, const RankBody& body);

// The same with a communicator for every rank; throws what the first rank threw, with its number.
using CommunicatorBody = std::function<void(Communicator& communicator)>;
void run_ranks(int size, const std::string& transport, const CommunicatorBody& body,
               CommunicatorOptions options = {});

// Throws std::runtime_error with `what` unless it holds.
void expect(bool holds, std::string_view what);

// The same with a text that is made only where it is wanted: a check of every element that made one
// each time would spend most of a test on texts, and under a sanitizer minutes.
template <std::invocable What>
void expect(bool holds, const What& what) {
  if (!holds) expect(false, what());
}

// The transports to test over: all of this build that work among threads of one process; under a
// sanitizer only those that are kolo's own. TEST_BORROWED=alone: those that are not.
std::vector<std::string> transports_under_test();

// The job sizes of a long grid over `transport`: `all` over our own, `few` over those that borrow
// somebody's library (ucx, ofi). A job over these starts slowly, and what is proved for our own
// code need not be proved again. Under a sanitizer, alone, two, odd, and a power of two.
std::vector<int> sizes_over(const std::string& transport,
                            std::vector<int> all = all_or_few({1, 2, 3, 4, 5, 6, 7, 8, 9, 16},
                                                              {1, 2, 3, 5, 8}),
                            std::vector<int> few = {3, 8});

}  // namespace kolo::test
