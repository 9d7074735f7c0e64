// System libraries that are opened at their first use.
#include <csignal>
#include <string>

#include "test/support/catch.h"
#include "transports/posix/library.h"

namespace kolo {

extern "C" {
using Answer = int();
}

TEST_CASE("a library opened on demand gives its functions and does not change signal handlers") {
  const auto before = std::signal(SIGTERM, SIG_IGN);
  const posix::InstalledLibrary library(KOLO_TAKES_SIGNALS);
  const auto meanwhile = std::signal(SIGTERM, before);
  CHECK(library.why().empty());
  CHECK(meanwhile == SIG_IGN);
  Answer* answer = nullptr;
  REQUIRE(library.find("kolo_answer", answer));
  CHECK(answer() == 42);
  CHECK(!library.find("kolo_question", answer));
  CHECK(answer == nullptr);
}

TEST_CASE("the error for a missing library names it") {
  const posix::InstalledLibrary library("libkolo-is-not-there.so.7");
  CHECK(library.why().find("libkolo-is-not-there.so.7") != std::string::npos);
}

TEST_CASE("is_loaded() does not load the library") {
  CHECK_FALSE(posix::is_loaded(KOLO_UNDEFINED));
  CHECK_FALSE(posix::is_loaded(KOLO_UNDEFINED));
  CHECK(posix::is_loaded("libc.so.6"));
}

}  // namespace kolo
