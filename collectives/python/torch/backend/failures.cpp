#include "collectives/python/torch/backend/failures.h"

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace kolo_torch {

std::string to_string(const GroupName& group) {
  return c10::str("kolo group ", group.name, ", rank ", group.rank, " of ", group.size);
}

std::exception_ptr exception_of(const GroupName& group, std::string_view operation,
                                kolo_result result, std::string_view text) {
  const char* cause = result == KOLO_ERROR_DEADLINE ? ": Timed out in " : ": failed in ";
  const std::string message =
      c10::str(to_string(group), cause, operation, " (", kolo_result_name(result), "): ", text);
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  if (result == KOLO_ERROR_INVALID_ARGUMENT)
    return std::make_exception_ptr(c10::Error(here, message));
  return std::make_exception_ptr(c10::DistBackendError(here, message));
}

void require(const GroupName& group, std::string_view operation, kolo_result result,
             const kolo_communicator* communicator) {
  if (result == KOLO_OK) return;
  const kolo_failure failure = kolo_last_failure(communicator);
  std::rethrow_exception(exception_of(group, operation, result, failure.text));
}

}  // namespace kolo_torch
