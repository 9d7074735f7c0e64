// The UCX pipe in builds without UCX.
#include "bench/p2p/pipe.h"
#include "transports/error.h"

namespace kolo::bench {

std::unique_ptr<Pipe> make_ucx_pipe(const PipeRequest&) {
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              "this build has no UCX; install libucx-dev and configure again");
}

}  // namespace kolo::bench
