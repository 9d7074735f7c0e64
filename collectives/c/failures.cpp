// Results and failures of the C interface.
#include "collectives/c/handles.h"

namespace kolo::inline v0::c_interface {

namespace {

// Last failure of a function in this thread, and the text that kolo_last_failure() has returned.
thread_local Failure thread_failure;
thread_local std::string returned_text;

Failure failure_of_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return {result_of(error.code()), error.peer(), error.what()};
  } catch (const std::invalid_argument& error) {
    return {KOLO_ERROR_INVALID_ARGUMENT, KOLO_NO_PEER, error.what()};
  } catch (const std::bad_alloc&) {
    return {KOLO_ERROR_OUT_OF_MEMORY, KOLO_NO_PEER, "out of memory"};
  } catch (const std::length_error&) {
    return {KOLO_ERROR_OUT_OF_MEMORY, KOLO_NO_PEER, "a list is longer than memory can hold"};
  } catch (const std::exception& error) {
    return {KOLO_ERROR_OTHER, KOLO_NO_PEER, error.what()};
  } catch (...) {
    return {KOLO_ERROR_OTHER, KOLO_NO_PEER, "an exception that is not a std::exception"};
  }
}

// Default timeout of a store and of a bootstrap.
constexpr std::chrono::milliseconds kDefaultTimeout{30'000};

// A century, so that no deadline overflows.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 36'525);

}  // namespace

std::chrono::milliseconds timeout_of(std::int64_t timeout_ms) {
  if (timeout_ms < 0) refuse("timeout_ms is below 0");
  return std::chrono::milliseconds(timeout_ms);
}

Deadline deadline_in(std::int64_t timeout_ms) {
  const auto timeout = timeout_of(timeout_ms);
  return Clock::now() + (timeout.count() == 0 ? kDefaultTimeout : std::min(timeout, kLongest));
}

void expect_success(int status, const char* function, std::string_view key) {
  if (status == 0) return;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              "the caller's function " + std::string(function) + " failed with " +
                  std::to_string(status) + " for the key '" + std::string(key) +
                  "': kolo needs this store until the communicator is freed; see why it failed");
}

kolo_result result_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPeerLost:
      return KOLO_ERROR_PEER_LOST;
    case ErrorCode::kDeadline:
      return KOLO_ERROR_DEADLINE;
    case ErrorCode::kMismatch:
      return KOLO_ERROR_MISMATCH;
    case ErrorCode::kAborted:
      return KOLO_ERROR_ABORTED;
    case ErrorCode::kUnavailable:
      return KOLO_ERROR_UNAVAILABLE;
    case ErrorCode::kProtocol:
      return KOLO_ERROR_PROTOCOL;
    case ErrorCode::kSystem:
      return KOLO_ERROR_SYSTEM;
    case ErrorCode::kOutOfMemory:
      return KOLO_ERROR_OUT_OF_MEMORY;
  }
  return KOLO_ERROR_OTHER;
}

kolo_result remember(Failure failure, LastFailure* last) noexcept {
  const kolo_result result = failure.result;
  try {
    if (last != nullptr) last->set(failure);
    thread_failure = std::move(failure);
  } catch (...) {
    thread_failure = Failure{result, KOLO_NO_PEER, {}};  // no memory for the text
  }
  return result;
}

kolo_result remember_exception(LastFailure* last) noexcept {
  try {
    return remember(failure_of_exception(), last);
  } catch (...) {
    return remember({KOLO_ERROR_OUT_OF_MEMORY, KOLO_NO_PEER, {}}, last);
  }
}

}  // namespace kolo::inline v0::c_interface

using namespace kolo::c_interface;

kolo_failure kolo_last_failure(const kolo_communicator* communicator) {
  try {
    Failure failure = thread_failure;
    if (communicator != nullptr) {
      Shared& shared = *communicator->shared;
      shared.calls.enter(RunningCalls::Kind::kCall);
      failure = shared.last.get();
      shared.calls.leave(RunningCalls::Kind::kCall);
    }
    returned_text = failure.text;
    return {failure.result, failure.peer, returned_text.c_str()};
  } catch (...) {
    return {KOLO_ERROR_OUT_OF_MEMORY, KOLO_NO_PEER, "out of memory"};
  }
}

const char* kolo_result_name(kolo_result result) {
  switch (result) {
    case KOLO_OK:
      return "ok";
    case KOLO_ERROR_PEER_LOST:
      return "peer lost";
    case KOLO_ERROR_DEADLINE:
      return "deadline";
    case KOLO_ERROR_MISMATCH:
      return "mismatch";
    case KOLO_ERROR_ABORTED:
      return "aborted";
    case KOLO_ERROR_UNAVAILABLE:
      return "unavailable";
    case KOLO_ERROR_PROTOCOL:
      return "protocol";
    case KOLO_ERROR_SYSTEM:
      return "system";
    case KOLO_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case KOLO_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case KOLO_ERROR_OTHER:
      return "other";
    case KOLO_RESULT_RANGE:
      break;
  }
  return "unknown result";
}
