#include "transports/ucx/reserved_descriptors.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <algorithm>
#include <cerrno>
#include <vector>

#include "transports/error.h"
#include "transports/posix/descriptor.h"
#include "transports/transport.h"

namespace kolo::inline v0::ucx {

namespace {

// Count of reservations of this process, since descriptors belong to the process.
struct Promises {
  std::mutex mutex;
  int count = 0;
};

Promises& promises() {
  static Promises all;
  return all;
}

// Checks that `needed` descriptors are free beside the `promised` ones.
void require_descriptors(int needed, int promised) {
  std::vector<posix::Descriptor> free;
  while (static_cast<int>(free.size()) < needed + promised) {
    posix::Descriptor next(::eventfd(0, EFD_CLOEXEC));
    if (!next.is_open()) {
      const std::string why = posix::error_text(errno);
      const int count = std::max(static_cast<int>(free.size()) - promised, 0);
      free.clear();
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  fmt::format("UCX may need {} more file descriptors here, and can have {}: {}; or "
                              "choose another transport (KOLO_TRANSPORT)",
                              needed, count, why));
    }
    free.push_back(std::move(next));
  }
}

}  // namespace

ReservedDescriptors::ReservedDescriptors(int at_once, int later) : counting_(promises().mutex) {
  require_descriptors(at_once + later, promises().count);
  promises().count += later;
  later_ = later;
}

ReservedDescriptors::~ReservedDescriptors() {
  if (!counting_.owns_lock()) counting_.lock();
  promises().count -= later_;
}

}  // namespace kolo::inline v0::ucx
