// Frees and closings that a device would delay until its streams have finished: none is made while
// a stream waits for a peer, and none is lost.
#include "transports/cuda/deferred_frees.h"

#include <thread>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"
#include "transports/cuda/batches.h"
#include "transports/cuda/side_stream.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::test;

namespace {

struct One {
  FakeMachine machine;
  std::shared_ptr<FakeDriver> driver = machine.process();
  Device device{driver, 0};
  alignas(8) std::byte words[8] = {};
  Address word = device.register_host(words);
  cuda::Stream stream = driver->make_stream();

  void write_1() { device.run(write_word(word, 1), driver->make_stream()); }
  void wait_in(Batches& batches, std::uint64_t value) {
    batches.wait([&] { device.run(wait_for_word(word, value), stream); });
  }
};

}  // namespace

TEST_CASE("the fake machine reports calls that may wait while a stream of the context waits") {
  FakeMachine machine(2);
  const auto driver = machine.process();
  const auto other = machine.process();
  const Device device(driver, 0);
  const Device second(driver, 1);
  const Device elsewhere(other, 0);
  alignas(8) std::byte words[8] = {};
  const Address word = device.register_host(words);
  std::byte* const pinned = device.allocate_host(64);
  std::byte* const memory = device.allocate(64);
  device.run(wait_for_word(word, 1), driver->make_stream());
  second.free(second.allocate(64));
  elsewhere.free(elsewhere.allocate(64));
  driver->free(reinterpret_cast<Address>(driver->make_memory(64, FakeDriver::Kind::kPool)));
  CHECK(machine.violations().empty());
  device.free(memory);
  device.free_host(pinned);
  device.free(device.allocate(64));
  machine.allocations_wait = false;
  std::byte* const other_memory = device.allocate(64);
  CHECK(machine.violations().size() == 4);
  CHECK_THAT(machine.violations()[0],
             ContainsSubstring("free while a stream of the context waits"));
  CHECK_THAT(machine.violations()[2], ContainsSubstring(": allocate while a stream"));
  device.run(write_word(word, 1), driver->make_stream());
  device.free(other_memory);
  device.unregister_host(words);
  CHECK(machine.violations().size() == 4);
}

TEST_CASE("the fake machine reports a kernel that is first used while a stream waits") {
  FakeMachine machine;
  machine.loads_lazily = true;
  const auto driver = machine.process();
  const Device device(driver, 0);
  alignas(8) std::byte words[8] = {};
  const Address word = device.register_host(words);
  std::byte* const memory = device.allocate(64);
  const cuda::Stream stream = driver->make_stream();
  driver->load_kernel("loaded before");
  device.copy(memory, memory + 32, 8, stream);
  device.run(wait_for_word(word, 1), stream);
  driver->load_kernel("loaded before");
  device.copy(memory, memory + 32, 8, stream);
  CHECK(machine.violations().empty());
  driver->load_kernel("late");
  device.copy(memory, reinterpret_cast<std::byte*>(word), 8, stream);
  CHECK(machine.violations().size() == 2);
  CHECK_THAT(machine.violations()[0],
             ContainsSubstring("loading of 'late' while a stream of the context waits"));
  CHECK_THAT(machine.violations()[1], ContainsSubstring("'copy from host to device'"));
  device.run(write_word(word, 1), driver->make_stream());
  device.free(memory);
  device.unregister_host(words);
}

TEST_CASE("memory is freed when no batch waits for a peer, in the order of the calls") {
  One one;
  std::byte* const memory = one.device.allocate(64);
  std::byte* const pinned = one.device.allocate_host(64);
  int done = 0;
  {
    Batches batches(one.device);
    batches.begin(one.stream, false);
    one.device.free(one.device.allocate(64));
    CHECK(one.driver->calls("free") == 1);  // nothing waits yet
    one.wait_in(batches, 1);
    one.device.free(memory);
    one.device.free_host(pinned);
    one.device.after_frees([&] { done = one.driver->calls("free_host"); });
    CHECK_FALSE(one.device.frees().run_all());
    batches.end();
    CHECK_FALSE(one.device.frees().run_all());
    CHECK(one.driver->calls("free") == 1);
    one.write_1();
    CHECK(one.driver->calls("free") == 1);
    batches.begin(one.stream, false);
    CHECK(one.driver->calls("free") == 2);
    CHECK(done == 1);
    batches.end();
  }
  one.device.unregister_host(one.words);
  CHECK(one.machine.violations().empty());
  CHECK(one.machine.left_over() == "a context of device 0; ");
}

TEST_CASE("inside a batch memory is freed once all its waits are over") {
  One one;
  std::byte* const first = one.device.allocate(64);
  std::byte* const second = one.device.allocate(64);
  Batches batches(one.device);
  batches.begin(one.stream, false);
  one.wait_in(batches, 1);
  one.device.free(first);
  CHECK(one.driver->calls("free") == 0);
  one.write_1();
  CHECK(one.device.frees().run_all());
  CHECK(one.driver->calls("free") == 1);
  one.wait_in(batches, 2);
  one.device.free(second);
  CHECK(one.driver->calls("free") == 1);
  one.device.run(write_word(one.word, 2), one.driver->make_stream());
  batches.end();
  CHECK(one.device.frees().run_all());
  one.device.unregister_host(one.words);
  CHECK(one.machine.violations().empty());
}

TEST_CASE("a side stream that waits holds up frees, and its end lets them run") {
  One one;
  std::byte* const memory = one.device.allocate(64);
  {
    SideStream aside(one.device);
    const cuda::Stream sender = aside.after(one.stream);
    one.device.run(wait_for_word(one.word, 1), sender);
    one.device.free(memory);
    aside.mark();
    CHECK_FALSE(one.device.frees().run_all());
    one.write_1();
    CHECK(one.driver->calls("free") == 0);
  }
  CHECK(one.driver->calls("free") == 1);
  one.device.unregister_host(one.words);
  CHECK(one.machine.violations().empty());
}

TEST_CASE("a context and registered memory stay until the calls put off are over") {
  One one;
  auto device = std::make_unique<Device>(one.driver, 0);
  auto memory = std::make_shared<std::vector<std::byte>>(64);
  const std::weak_ptr<std::vector<std::byte>> kept = memory;
  device->register_host(*memory);
  std::byte* const data = memory->data();
  Batches batches(one.device);
  batches.begin(one.stream, false);
  one.wait_in(batches, 1);
  device->unregister_host(data, std::move(memory));
  device.reset();
  CHECK_FALSE(kept.expired());
  one.write_1();
  batches.end();
  CHECK(one.device.frees().run_all());
  CHECK(kept.expired());
  CHECK(one.driver->calls("release_context") == 1);
  one.device.unregister_host(one.words);
  CHECK(one.machine.violations().empty());
}

namespace {

// Rank 1 receives from rank 0, while its stream may wait for rank 2.
struct Three {
  Three() {
    for (const FakeRank& rank : ranks) streams.push_back(rank.driver->make_stream());
    begin();
  }
  StreamChannel& channel(std::size_t rank, int peer) { return ranks[rank].stream_to(peer); }
  void begin() {
    channel(0, 1).begin(streams[0]);
    channel(1, 0).begin(streams[1]);
    channel(1, 2).begin(streams[1]);
    channel(2, 1).begin(streams[2]);
  }
  void end() {
    channel(0, 1).end(streams[0]);
    channel(1, 0).end(streams[1]);
    channel(1, 2).end(streams[1]);
    channel(2, 1).end(streams[2]);
  }
  void wait_for_rank_2() {
    channel(1, 2).view(streams[1], 8);
    channel(1, 2).release(streams[1]);
  }
  void answer() {
    channel(2, 1).reserve(streams[2], 8);
    channel(2, 1).commit(streams[2], kPlain);
  }
  bool send(std::byte* memory) { return channel(0, 1).send(streams[0], {memory, kBytes}, kPlain); }
  bool receive() { return channel(1, 0).receive(streams[1], {into, kBytes}, kPlain); }

  static constexpr std::size_t kBytes = 10'000;

  FakeMachine machine;
  std::vector<FakeRank> ranks = make_fake_ranks(machine, 3);
  std::vector<cuda::Stream> streams;
  std::byte* from = ranks[0].driver->make_memory(kBytes, FakeDriver::Kind::kDevice);
  std::byte* into = ranks[1].driver->make_memory(kBytes, FakeDriver::Kind::kDevice);
};

}  // namespace

TEST_CASE("a mapping of freed memory is closed between operations, not while a stream waits") {
  Three three;
  FakeDriver& receiver = *three.ranks[1].driver;
  REQUIRE(three.send(three.from));
  REQUIRE(three.receive());
  three.end();
  three.begin();
  three.wait_for_rank_2();
  std::byte* const other =
      three.ranks[0].driver->make_memory(three.kBytes, FakeDriver::Kind::kDevice);
  three.ranks[0].driver->replace(three.from);  // the next sends tell the receiver
  for (int i = 0; i < 2; ++i) {
    REQUIRE(three.send(other));
    REQUIRE(three.receive());
  }
  CHECK(receiver.calls("ipc_close") == 0);
  three.answer();
  CHECK(three.machine.run());
  three.end();
  three.begin();
  CHECK(receiver.calls("ipc_close") == 1);
  three.end();
  close_together(three.ranks);
  CHECK(three.machine.violations().empty());
}

TEST_CASE("memory in place of freed memory is received once the old mapping can be closed") {
  Three three;
  FakeDriver& receiver = *three.ranks[1].driver;
  REQUIRE(three.send(three.from));
  REQUIRE(three.receive());
  three.end();
  three.begin();
  three.wait_for_rank_2();
  three.ranks[0].driver->replace(three.from);
  REQUIRE(three.send(three.from));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(three.receive());
  CHECK_FALSE(three.ranks[1].transport->arm());
  CHECK(receiver.calls("ipc_close") == 0);
  three.answer();
  CHECK(three.receive());
  CHECK(receiver.calls("ipc_close") == 1);
  CHECK(three.machine.run());
  three.end();
  close_together(three.ranks);
  CHECK(three.machine.violations().empty());
}
