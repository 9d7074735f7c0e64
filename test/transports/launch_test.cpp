// A launcher whose rank is stopped before it has become its program.
#include <pthread.h>
#include <unistd.h>

#include <csignal>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/launch.h"

namespace kolo::test {
namespace {

// Of the processes that this one forks, the second: the launcher's guardian is the first, then come
// the ranks.
int forks_until_stop = -1;

void stop_the_second() {
  if (forks_until_stop == 0) raise(SIGSTOP);
}

}  // namespace

TEST_CASE("a rank that somebody stops before it starts its program is killed and said") {
  forks_until_stop = 2;
  pthread_atfork([] { --forks_until_stop; }, nullptr, stop_the_second);
  LaunchRequest request;
  request.command = {"true"};
  try {
    launch_ranks(request);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kSystem);
    CHECK_THAT(error.what(), ContainsSubstring("was stopped before it could start its program"));
  }
}

}  // namespace kolo::test
