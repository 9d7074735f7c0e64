// Buffer sizes that kolo sets in UCX, and those left to the user. (The clause back_pressure over
// tcp tests that segments which fit are not held back.)
#include "transports/ucx/buffer_sizes.h"

#include <cstdlib>
#include <map>
#include <string>

#include "test/support/catch.h"

using namespace kolo::ucx;

namespace {

std::map<std::string, std::string>& said() {
  static std::map<std::string, std::string> words;
  return words;
}

template <unsigned minor_version>
Library library_1() {
  Library library{};
  library.get_version = [](unsigned* major, unsigned* minor, unsigned* release) {
    *major = 1;
    *minor = minor_version;
    *release = 0;
  };
  library.config_modify = [](ucp_config_t*, const char* name, const char* value) {
    said()[name] = value;
    return UCS_OK;
  };
  said().clear();
  return library;
}

std::size_t number_of(const char* name) { return std::stoul(said().at(name)); }

}  // namespace

TEST_CASE("a segment fits into a buffer of each available transport") {
  CHECK(set_buffer_sizes(library_1<13>(), nullptr, {"self", "posix", "tcp"}));
  CHECK(number_of("MM_SEG_SIZE") > kQueueBufferBytes);
  CHECK(number_of("RX_SEG_SIZE") > kTcpBufferBytes);
  CHECK(said().size() == 3U);
}

TEST_CASE("buffer sizes are set only for available transports") {
  CHECK_FALSE(set_buffer_sizes(library_1<13>(), nullptr, {"self", "rc_mlx5"}));
  CHECK(said().empty());
  CHECK(set_buffer_sizes(library_1<13>(), nullptr, {"sysv"}));
  CHECK(said().count("RX_SEG_SIZE") == 0U);
  CHECK(set_buffer_sizes(library_1<13>(), nullptr, {"tcp"}));
  CHECK(said().count("MM_SEG_SIZE") == 0U);
}

TEST_CASE("tcp's buffer size has a name of its own from UCX 1.17 on") {
  CHECK(set_buffer_sizes(library_1<17>(), nullptr, {"tcp"}));
  CHECK(number_of("TCP_RX_SEG_SIZE") > kTcpBufferBytes);
  CHECK(said().size() == 1U);
}

TEST_CASE("buffer sizes that the user sets are not changed") {
  REQUIRE(::setenv("UCX_TCP_RX_SEG_SIZE", "64k", 1) == 0);
  CHECK_FALSE(set_buffer_sizes(library_1<13>(), nullptr, {"tcp"}));
  CHECK(set_buffer_sizes(library_1<13>(), nullptr, {"tcp", "posix"}));
  REQUIRE(::unsetenv("UCX_TCP_RX_SEG_SIZE") == 0);
  CHECK(said().count("RX_SEG_SIZE") == 0U);
  CHECK(said().count("MM_SEG_SIZE") == 1U);
}
