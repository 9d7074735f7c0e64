#include "transports/ofi/patience.h"

#include <map>
#include <memory>
#include <mutex>

namespace kolo::inline v0::ofi {
namespace {

struct Silent {
  std::mutex mutex;
  std::map<std::string, Clock::time_point> since;  // by process
};

// Never destroyed: communicators may end after static objects do.
Silent& silent() {
  static Silent* const all = std::make_unique<Silent>().release();
  return *all;
}

}  // namespace

void lose_patience_with(const std::string& process, Clock::time_point now) {
  const std::lock_guard lock(silent().mutex);
  std::erase_if(silent().since,
                [now](const auto& one) { return now - one.second >= kForgetAfter; });
  silent().since[process] = now;
}

bool has_patience_with(const std::string& process, Clock::time_point now) {
  const std::lock_guard lock(silent().mutex);
  const auto found = silent().since.find(process);
  return found == silent().since.end() || now - found->second >= kForgetAfter;
}

}  // namespace kolo::inline v0::ofi
