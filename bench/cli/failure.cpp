#include "bench/cli/failure.h"

#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "collectives/engine/failure_text.h"
#include "transports/error.h"
#include "transports/launch/report_once.h"

namespace kolo::bench {
namespace {

using namespace std::chrono_literals;

// Time that the news of a rank's death may need. A library that does not know kolo's store can
// notice the closed connection earlier.
constexpr auto kCauseTakes = 200ms;

constexpr std::string_view kLessMemory = "; a smaller --max-bytes or fewer --ranks need less";

void wait_for_news(Store& store) {
  const auto deadline = Clock::now() + kCauseTakes;
  while (!store.failure() && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
}

std::string first_cause(Store& store, int rank, const std::exception& failure) {
  const bool is_ours = dynamic_cast<const Error*>(&failure) != nullptr ||
                       dynamic_cast<const std::invalid_argument*>(&failure) != nullptr;
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
  const std::string own =
      is_ours ? failure.what()
              : by_rank(rank, failure.what()) + std::string(is_memory ? kLessMemory : "");
  try {
    if (!is_ours) wait_for_news(store);
    return failure_from(store.post_failure(own)).what();
  } catch (const Error&) {
    return own;  // the store is gone as well
  }
}

}  // namespace

void fail_together(Store& store, int rank, Audience audience, const std::exception& failure) {
  const std::string cause = first_cause(store, rank, failure);
  if (audience == Audience::kOneForAll && !launch::is_first_to_report(store))
    throw ReportedByAnotherRank();
  if (dynamic_cast<const std::invalid_argument*>(&failure) != nullptr)
    throw std::invalid_argument(cause);
  throw std::runtime_error(cause);
}

void report_for_all(Store& store, const std::string& text, int code) {
  launch::report_for_all(store, "kolo-bench: " + text, code);
}

}  // namespace kolo::bench
