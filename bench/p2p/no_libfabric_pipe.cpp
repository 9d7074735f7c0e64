// The libfabric pipe in builds without libfabric.
#include "bench/p2p/pipe.h"
#include "transports/error.h"

namespace kolo::bench {

std::unique_ptr<Pipe> make_libfabric_pipe(const PipeRequest&) {
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              "this build has no libfabric; install libfabric-dev and configure again");
}

std::vector<std::string> bare_libfabric_providers() { return {}; }

}  // namespace kolo::bench
