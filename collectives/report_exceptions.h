// Passes an exception of one rank on to the other ranks.
//
//     kolo::report_exceptions(communicator, [&] { train(communicator); });
//
// The destructor of a communicator cannot see the exception that ends a rank. So without this, or
// abort() in a handler, the other ranks learn only that the rank has left by an exception.
#pragma once

#include <exception>
#include <string_view>
#include <utility>

#include "communicator.h"

namespace kolo::inline v0 {

// Calls `body`, and returns its result. If an exception leaves it, its what() becomes the job's
// failure, as by abort(), unless there is one already. The exception then goes on to the caller.
template <typename Body>
decltype(auto) report_exceptions(Communicator& communicator, Body&& body) {
  const auto report = [&](std::string_view what) noexcept {
    try {
      communicator.abort(what);
    } catch (...) {
      // `body` has moved the communicator away.
    }
  };
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& error) {
    report(error.what());
    throw;
  } catch (...) {
    report("an exception was thrown that is not a std::exception");
    throw;
  }
}

}  // namespace kolo::inline v0
