// shm ranks in a process without free file descriptors: independent work continues, and everything
// else reports the reason.
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "test/transports/support/descriptor_limit.h"
#include "test/transports/support/unix_clients.h"
#include "transports/error.h"
#include "transports/posix/shared_memory.h"
#include "transports/shm/address.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Sets the limit on the length of files while it lives.
class LongestFile {
 public:
  explicit LongestFile(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LongestFile() { ::setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  rlimit old_{};
};

}  // namespace

TEST_CASE("shared memory that exceeds the file size limit is an error, not a signal") {
  const auto ranks = make_ranks(2);
  {
    const LongestFile longest(64 * 1024);
    CHECK(posix::why_no_shared_memory().empty());
    const Error error = error_of([&] { send(*ranks[0], 1, 5); });
    CHECK_THAT(error.what(), ContainsSubstring("rank 0: ") && ContainsSubstring("ulimit -f"));
  }
  {
    const LongestFile longest(0);
    CHECK_THAT(posix::why_no_shared_memory(), ContainsSubstring("ulimit -f"));
  }
  send(*ranks[0], 1, 6);
  CHECK(receive(*ranks[1], 0) == 6);
}

TEST_CASE(
    "a rank without a free descriptor reports it at the first use, and continues once one is "
    "free") {
  const auto ranks = make_ranks(3);
  send(*ranks[0], 1, 5);
  CHECK(receive(*ranks[1], 0) == 5);
  {
    const DescriptorLimit none;
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

TEST_CASE("an idle rank that cannot accept a peer for lack of descriptors knows the reason") {
  const auto ranks = make_ranks(2);
  send(*ranks[0], 1, 5);
  Channel& channel = ranks[1]->channel(0);
  {
    const DescriptorLimit none;
    const auto has_reason = [&] { return !channel.why_unconnected().empty(); };
    wait_until(*ranks[1], has_reason, "a look at the listener");
    CHECK_THAT(channel.why_unconnected(),
               ContainsSubstring("no file descriptor is left to share memory") &&
                   ContainsSubstring("ulimit -n"));
  }
  CHECK(receive(*ranks[1], 0) == 5);
  CHECK(channel.why_unconnected().empty());
}

TEST_CASE("silent unknown clients give up their descriptors for a connecting shm rank") {
  const auto store = make_local_store();
  const auto ranks = make_ranks(2, store);
  const std::string listener = shm::address_from_text(store->get("address/1", soon()), 1).socket;
  const auto unknown_clients = silent_clients(listener, 8, [&] { ranks[1]->progress(); });
  send(*ranks[0], 1, 5);
  {
    const DescriptorLimit none;
    CHECK(receive(*ranks[1], 0) == 5);
  }
  CHECK(is_hung_up(unknown_clients.front()));
  CHECK_FALSE(is_hung_up(unknown_clients.back()));
  send(*ranks[1], 0, 6);
  CHECK(receive(*ranks[0], 1) == 6);
}
