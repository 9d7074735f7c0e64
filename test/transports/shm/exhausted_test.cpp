// Ranks that share memory while the process has no file descriptor left: what can go on does, and
// what cannot says so.
#include <sys/resource.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// As long as it lives this process can open nothing more.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    rlimit none = old_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_{};
};

}  // namespace

TEST_CASE("who has no descriptor left is told so at the first use, and goes on once there is one") {
  const auto ranks = make_ranks(3);
  send(*ranks[0], 1, 5);
  CHECK(receive(*ranks[1], 0) == 5);
  {
    const NoMoreDescriptors none;
    for (int i = 0; i < 1000; ++i) ranks[1]->progress();
    send(*ranks[0], 1, 6);
    CHECK(receive(*ranks[1], 0) == 6);
    const Error error = error_of([&] { send(*ranks[0], 2, 7); });
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0: ") && ContainsSubstring("ulimit -n"));
    const Error waiting = error_of([&] { receive(*ranks[2], 1); });
    CHECK(waiting.code() == ErrorCode::kUnavailable);
  }
  send(*ranks[0], 2, 8);
  CHECK(receive(*ranks[2], 0) == 8);
  send(*ranks[1], 2, 9);
  CHECK(receive(*ranks[2], 1) == 9);
}
