// The host identity when a process has no descriptor left to read it.
#include <sys/resource.h>

#include <string>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"

namespace kolo::test {

TEST_CASE("a process without descriptors gets an error instead of another host's identity") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string text;
  try {
    text = posix::host_identity();
  } catch (const Error& error) {
    text = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(text.find("raise the limit with ulimit -n") != std::string::npos);
  CHECK_FALSE(posix::host_identity().empty());
}

}  // namespace kolo::test
