// Store server whose thread the system cannot create.
#include <pthread.h>
#include <cerrno>
#include <cstddef>
#include <string>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/posix/thread.h"

#include "transports/rendezvous.h"

using namespace kolo;

namespace {

// Sets the stack size of threads that are created from here on.
class StackOf {
 public:
  explicit StackOf(std::size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, bytes);
    REQUIRE(pthread_setattr_default_np(&attributes) == 0);
    pthread_attr_destroy(&attributes);
  }
  ~StackOf() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  StackOf(const StackOf&) = delete;
  StackOf& operator=(const StackOf&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace

TEST_CASE("the error for a store server without memory for its thread names the limit to change") {
  std::string text;
  {
    const StackOf more_than_there_are_addresses(std::size_t{1} << 52);
    try {
      const TcpStoreServer server("127.0.0.1", 0);
    } catch (const std::exception& error) {
      text = error.what();
    }
  }
  CHECK_THAT(text, ContainsSubstring("the store's server") && ContainsSubstring("stack of") &&
                       ContainsSubstring("ulimit -s"));
  CHECK(TcpStoreServer("127.0.0.1", 0).port() != 0);
}

TEST_CASE(
    "the error for a process or thread that cannot be created names the limits on their number") {
  CHECK_THAT(posix::process_error_text(EAGAIN), ContainsSubstring("pids.max"));
  CHECK(posix::process_error_text(ENOMEM).find("pids.max") == std::string::npos);
}
