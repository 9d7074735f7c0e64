// Stores that hang: non-blocking calls return at once, and blocking calls time out once.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/store/hanging_server.h"
#include "test/transports/store/store_table.h"
#include "transports/error.h"
#include "transports/posix/byte_lock.h"
#include "transports/rendezvous.h"
#include "transports/store/all_gather.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr double kPatience = 20;  // timeout in s for the connection and for later waits

std::shared_ptr<Store> connect(const HangingServer& server, double seconds = kPatience) {
  return connect_tcp_store("127.0.0.1", server.port(), in_seconds(seconds), 0);
}

// The byte that ranks lock for writing. The test locks it to act as a process that hangs.
constexpr off_t kLogLock = off_t{1} << 40;

posix::Descriptor open_by_hand(const std::string& path) {
  posix::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(file.is_open());
  return file;
}

// The descriptor of `path` in this process.
int descriptor_of(const std::string& path) {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(each.path(), ignored) == path)
      return std::stoi(each.path().filename());
  }
  return -1;
}

}  // namespace

TEST_CASE("a server that hangs delays no note, query, failure report or leave") {
  HangingServer server;
  auto store = connect(server);
  store->join(0);
  store->note("key", "value");
  const auto answered = store->ask("key");
  REQUIRE(wait_for_answers(*store, {&answered, 1}, in_seconds(20)));
  CHECK(answered->value == "value");
  CHECK(store->silence().empty());
  server.hang();

  const auto start = Clock::now();
  const std::string more_than_sockets_take(1 << 20, 'x');
  const auto asked = store->ask("key");
  for (int i = 0; i < 20; ++i) store->note("key", more_than_sockets_take);
  CHECK_FALSE(store->failure());
  CHECK_FALSE(wait_for_answers(*store, {&asked, 1}, in_seconds(0.5)));
  CHECK_THAT(prefixed(store, "some/")->silence(),
             ContainsSubstring("rank 0, which serves the store at 127.0.0.1:") &&
                 ContainsSubstring(", has not answered for "));
  CHECK(store->post_failure("rank 0: over") == "rank 0: over");
  CHECK(store->failure() == "rank 0: over");
  CHECK(asked->has_come);  // the answer says that there is no value
  store->leave();
  store.reset();
  CHECK(Clock::now() - start < std::chrono::seconds(10));  // less than kPatience
}

// A machine that stalls for half a second here would look like a wait: hence several tries.
TEST_CASE("posting a failure does not wait longer for a server that is known to be silent") {
  bool is_any_soon = false;
  for (int i = 0; i < 5 && !is_any_soon; ++i) {
    HangingServer server;
    const auto store = connect(server);
    server.hang();
    const auto since = Clock::now();
    store->note("key", "value");
    while (store->silence().empty() && Clock::now() < since + std::chrono::seconds(20))
      std::this_thread::yield();
    CHECK(store->post_failure("rank 0: over") == "rank 0: over");
    is_any_soon = Clock::now() - since < std::chrono::seconds(1);
  }
  CHECK(is_any_soon);
}

TEST_CASE(
    "a server that hangs counts as gone after a while, even for a client that only wrote a note") {
  HangingServer server;
  const auto store = connect(server, 2);
  server.hang();
  store->note("key", "value");
  const auto deadline = in_seconds(20);
  while (!store->failure() && Clock::now() < deadline) std::this_thread::yield();
  CHECK_THAT(store->failure().value_or("none"),
             ContainsSubstring("rank 0 is gone, which serves the store") &&
                 ContainsSubstring("has not answered for 3.0 s"));
}

TEST_CASE("a rank waiting for others reports a server that hangs soon after the deadline") {
  HangingServer server;
  const auto store = connect(server);
  const auto other = connect(server);
  std::thread stopper([&] {
    other->get("here/1", in_seconds(20));
    server.hang();
  });
  const auto start = Clock::now();
  std::string said;
  try {
    exchange(*store, 1, 4, "here", "one", in_seconds(2), "join the job");
  } catch (const Error& error) {
    said = error.what();
  }
  stopper.join();
  CHECK_THAT(said, ContainsSubstring(" s for rank 0, at least, of 4 to join the job (" +
                                     store->describe() + ", which does not answer)"));
  CHECK(Clock::now() - start < std::chrono::seconds(10));  // less than kPatience
}

TEST_CASE(
    "a file store waits until the deadline for a lock that another process holds, and names the "
    "file") {
  const TemporaryFile file;
  auto store = open_file_store(file.path(), 2, in_seconds(2));
  const auto other = open_by_hand(file.path());
  REQUIRE(posix::lock_byte(other, kLogLock));
  CHECK_THROWS_WITH(open_file_store(file.path(), 2, in_seconds(0.1)),
                    ContainsSubstring(" s for the lock of the store in the file " + file.path()) &&
                        ContainsSubstring("fuser " + file.path()));
  CHECK_THROWS_WITH(store->set("key", "value"), ContainsSubstring("waited 3.0 s for the lock"));
}

TEST_CASE("a held file lock delays no note, query, failure report or leave") {
  const TemporaryFile file;
  auto store = open_file_store(file.path(), 2, in_seconds(kPatience));
  store->join(0);
  store->set("key", "old");
  const auto other = open_by_hand(file.path());
  REQUIRE(posix::lock_byte(other, kLogLock));
  const auto start = Clock::now();
  const auto before = store->ask("key");
  CHECK(before->has_come);
  CHECK(before->value == "old");
  store->note("key", "new");
  const auto after = store->ask("key");
  CHECK_FALSE(wait_for_answers(*store, {&after, 1}, in_seconds(0.05)));
  CHECK(store->post_failure("rank 0: over") == "rank 0: over");
  CHECK(store->failure() == "rank 0: over");
  SECTION("all writes arrive once the lock is released") {
    posix::unlock_byte(other, kLogLock);
    CHECK(store->failure() == "rank 0: over");
    CHECK(after->value == "new");
    const auto late = open_file_store(file.path(), 2, in_seconds(20));
    CHECK(late->try_get("key") == "new");
    CHECK(late->failure() == "rank 0: over");
  }
  SECTION("the end of the store does not wait for the lock") {
    CHECK_THROWS_WITH(store->leave(), ContainsSubstring(" s for the lock of "));
    store.reset();
    CHECK(Clock::now() - start < std::chrono::seconds(10));  // less than kPatience
  }
}

TEST_CASE("the last of two ranks removes the file, though the first one still has it open") {
  const TemporaryFile file;
  auto first = open_file_store(file.path(), 2, in_seconds(20));
  const posix::Descriptor still_open(::dup(descriptor_of(file.path())));
  REQUIRE(still_open.is_open());
  auto last = open_file_store(file.path(), 2, in_seconds(20));
  first.reset();
  CHECK(std::filesystem::exists(file.path()));
  last.reset();
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("a forked process that ends does not remove the file of the ranks that use it") {
  const TemporaryFile file;
  auto store = open_file_store(file.path(), 2, in_seconds(20));
  const pid_t child = ::fork();
  if (child == 0) {
    store.reset();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(std::filesystem::exists(file.path()));
  store->set("key", "value");
  CHECK(open_file_store(file.path(), 2, in_seconds(20))->try_get("key") == "value");
}

TEST_CASE("a store uses an empty file that existed before, and removes it") {
  const TemporaryFile file;
  posix::Descriptor(::open(file.path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)).close();
  auto store = open_file_store(file.path(), 2, in_seconds(20));
  store->set("key", "value");
  store.reset();
  CHECK_FALSE(std::filesystem::exists(file.path()));
}
