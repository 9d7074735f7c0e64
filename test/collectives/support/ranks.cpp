#include "test/collectives/support/ranks.h"

#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "test/support/sanitizers.h"
#include "transports/registry.h"

namespace kolo::test {

namespace {

// Transports over external libraries.
bool is_borrowed(std::string_view transport) { return transport == "ucx" || transport == "ofi"; }

}  // namespace

RankOutcome outcome_of(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {error.what(), error.code(), false, error.peer()};
  } catch (const std::invalid_argument& error) {
    return {error.what(), std::nullopt, true, kNoPeer};
  } catch (const std::exception& error) {
    return {error.what(), std::nullopt, false, kNoPeer};
  }
}

std::vector<RankOutcome> run_threads(int size, const RankBody& body) {
  const std::shared_ptr<Store> store = make_local_store();
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&outcomes, &body, &store, rank] {
      outcomes[static_cast<std::size_t>(rank)] = outcome_of([&] { body(rank, store); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void run_ranks(int size, const std::string& transport, const CommunicatorBody& body,
               CommunicatorOptions options) {
  options.transport = transport;
  const auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, size, store, options);
    body(communicator);
  });
  // Report other exceptions first: a kolo::Error may be just their consequence.
  for (const bool is_fate : {false, true}) {
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (outcomes[rank].text.empty() || outcomes[rank].code.has_value() != is_fate) continue;
      throw std::runtime_error("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                               " over " + transport + ": " + outcomes[rank].text);
    }
  }
}

void expect(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error(std::string(what));
}

// Under a sanitizer, most tests of the collectives leave out the transports over external
// libraries. These tests do not depend on the transport, the libraries are not instrumented, and
// they would take most of the time. The conformance suite covers them, and so do the tests that set
// TEST_BORROWED (CMakeLists.txt).
std::vector<std::string> transports_under_test() {
  const char* const set = std::getenv("TEST_BORROWED");
  const std::string_view borrowed = set == nullptr ? "" : set;
  std::vector<std::string> names;
  for (const std::string_view name : transport_names()) {
    if (!why_unusable(name).empty()) continue;  // for example without a device
    const bool is_wanted = is_borrowed(name)
                               ? borrowed == "alone" || (borrowed != "none" && !kIsSanitized)
                               : borrowed != "alone";
    if (is_wanted) names.emplace_back(name);
  }
  return names;
}

std::vector<int> sizes_over(const std::string& transport, std::vector<int> all,
                            std::vector<int> few) {
  return is_borrowed(transport) ? few : all;
}

}  // namespace kolo::test
