// The stream clauses on a device, over the installed driver: first with ranks as processes, as jobs
// run, then with ranks as threads of one process, which share a context of the device.
#include "test/support/catch.h"
#include "test/transports/cuda/stream_clauses.h"
#include "transports/cuda/library.h"

using namespace kolo;
using namespace kolo::test;

namespace {

bool has_device() {
  const std::string why = cuda::why_unusable(*cuda::installed_driver());
  if (why.empty()) return true;
  WARN("skipped: no device: " << why);
  return false;
}

}  // namespace

TEST_CASE("ranks as processes keep every stream clause on a device") {
  if (!has_device()) return;
  for (const StreamKind& kind : stream_kinds()) {
    if (!kind.joins_processes()) continue;
    DYNAMIC_SECTION(kind.name) { CHECK(prove_in_processes(kind, StreamDriver::kInstalled) == ""); }
  }
}

TEST_CASE("ranks as threads keep every stream clause on a device", "[threads]") {
  if (!has_device()) return;
  for (const StreamKind& kind : stream_kinds()) {
    DYNAMIC_SECTION(kind.name) {
      CHECK(prove_in_threads_of_a_process(kind, StreamDriver::kInstalled) == "");
    }
  }
}
