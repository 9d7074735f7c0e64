// UCX intercepts this process's memory mapping calls; other code must still be able to use them.
#include <unistd.h>

#include <memory>
#include <thread>

#include "test/support/catch.h"
#include "transports/posix/shared_memory.h"
#include "transports/ucx/transport.h"

using namespace kolo;

namespace {

std::unique_ptr<Transport> make(int rank, std::shared_ptr<Store> store) {
  return make_ucx({rank, 2, std::move(store), Clock::now() + std::chrono::seconds(60), 0, 2});
}

}  // namespace

TEST_CASE("shared pages become private while UCX is there") {
  const auto store = make_local_store();
  std::unique_ptr<Transport> other;
  std::thread rank_1([&] { other = make(1, store); });
  const auto transport = make(0, store);
  rank_1.join();
  const posix::SharedMemory memory(16384);
  const auto bytes = memory.bytes();
  const posix::SharedMemory theirs(posix::Descriptor(::dup(memory.descriptor())), 16384);
  bytes[5000] = std::byte{1};
  REQUIRE(posix::make_private(bytes.subspan(4096, 4096)));
  CHECK(bytes[5000] == std::byte{1});
  bytes[5000] = std::byte{2};
  CHECK(theirs.bytes()[5000] == std::byte{1});
}
