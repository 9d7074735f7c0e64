#include "transports/launch/report_once.h"

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string_view>
#include <thread>

#include "transports/error.h"
#include "transports/settings.h"

namespace kolo::inline v0::launch {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kStoreAnswers{2};
// How long the reporting rank may take; after that it counts as dead.
constexpr auto kSayingTakes = 10s;
constexpr std::string_view kIsSaid = "failure is said";
constexpr std::string_view kWasSaid = "failure was said";

// Null without a launcher's store, or if the launcher is gone.
std::shared_ptr<Store> launchers_store() noexcept {
  try {
    const LaunchEnvironment who = launch_environment();
    if (who.size < 2 || !read_settings().store.starts_with("tcp:")) return nullptr;
    return store_from_environment(who, Clock::now() + kStoreAnswers);
  } catch (const std::exception&) {  // also if the environment itself is invalid
    return nullptr;
  }
}

}  // namespace

bool is_first_to_report(Store& store) {
  try {
    return store.add(kIsSaid, 1) == 1;
  } catch (const Error&) {
    return true;
  }
}

void report_for_all(Store& store, const std::string& line, int code) {
  std::cerr << line << std::endl;
  try {
    store.add(kWasSaid, code);
  } catch (const Error&) {
    // The store is gone, so no rank waits.
  }
}

int wait_until_reported(Store& store) noexcept {
  try {
    const auto deadline = Clock::now() + kSayingTakes;
    while (Clock::now() < deadline) {
      if (const auto code = store.add(kWasSaid, 0); code != 0) return static_cast<int>(code);
      std::this_thread::sleep_for(1ms);
    }
  } catch (const std::exception&) {
    // The job is over.
  }
  return 1;
}

int refuse_once(const std::string& line, int code) noexcept {
  const std::shared_ptr<Store> store = launchers_store();
  if (store && !is_first_to_report(*store)) return wait_until_reported(*store);
  if (store) {
    report_for_all(*store, line, code);
  } else {
    std::cerr << line << std::endl;
  }
  return code;
}

}  // namespace kolo::inline v0::launch
