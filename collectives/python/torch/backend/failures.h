// Exceptions of torch.distributed for failures of kolo.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "collectives/c/kolo.h"

namespace kolo_torch {

// Names a process group in messages: group 0, rank 1 of 4.
struct GroupName {
  std::string name;
  int rank = 0;
  int size = 1;
};

std::string to_string(const GroupName& group);

// A failure of a kolo operation, as a DistBackendError. The caller's own mistakes (a bad root, for
// example) become a plain RuntimeError, as gloo's.
std::exception_ptr exception_of(const GroupName& group, std::string_view operation,
                                kolo_result result, std::string_view text);

// Throws unless the result is KOLO_OK. `communicator` null: the failure of this thread.
void require(const GroupName& group, std::string_view operation, kolo_result result,
             const kolo_communicator* communicator);

}  // namespace kolo_torch
