// Words written and waited for on a stream: how many driver calls they take, and in which order
// they run.
#include "transports/cuda/pending_writes.h"

#include "test/support/catch.h"
#include "test/transports/cuda/fake_driver.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::test;

namespace {

struct Words {
  FakeMachine machine;
  std::shared_ptr<FakeDriver> driver = machine.process();
  Device device{driver, 0};
  alignas(8) std::array<std::uint64_t, 4> words{};
  Address at = device.register_host(std::as_writable_bytes(std::span(words)));
  cuda::Stream stream = driver->make_stream();
  PendingWrites writes{device};

  ~Words() { device.unregister_host(std::as_writable_bytes(std::span(words)).data()); }
  WordOperation write_of(std::size_t word) const { return write_word(at + 8 * word, 1); }
  WordOperation wait_of(std::size_t word) const { return wait_for_word(at + 8 * word, 1); }
  int calls() const { return driver->calls("word_operations"); }
};

}  // namespace

TEST_CASE("writes that are not held back reach the driver at once") {
  Words words;
  words.writes.write(words.write_of(0), words.stream);
  words.writes.write(words.write_of(1), words.stream);
  CHECK(words.calls() == 2);
  CHECK(words.words[1] == 1);
}

TEST_CASE("writes that are held back go to the driver in one call with the next wait, before it") {
  Words words;
  words.writes.hold(words.stream);
  words.writes.write(words.write_of(0), words.stream);
  words.writes.write(words.write_of(1), words.stream);
  CHECK(words.calls() == 0);
  words.writes.wait(words.wait_of(2), words.stream);
  CHECK(words.calls() == 1);
  CHECK(words.words[0] + words.words[1] == 2);
  CHECK_FALSE(words.machine.run());
  words.writes.write(words.write_of(3), words.stream);
  words.writes.release();
  CHECK(words.calls() == 2);
  CHECK(words.words[3] == 0);
  words.device.run(words.write_of(2), words.driver->make_stream());
  CHECK(words.words[3] == 1);
}

TEST_CASE("a write on another stream is not held back, and those before it go first") {
  Words words;
  words.writes.hold(words.stream);
  words.writes.write(words.write_of(0), words.stream);
  words.writes.write(words.write_of(1), words.driver->make_stream());
  CHECK(words.calls() == 2);
  CHECK(words.words[0] + words.words[1] == 2);
  words.writes.flush();
  CHECK(words.calls() == 2);
}

TEST_CASE("writes beyond the driver's limit for one call go in several") {
  Words words;
  words.writes.hold(words.stream);
  for (std::size_t i = 0; i < kMostWordOperations + 1; ++i)
    words.writes.write(words.write_of(0), words.stream);
  CHECK(words.calls() == 1);
  words.writes.wait(words.wait_of(0), words.stream);
  CHECK(words.calls() == 2);
  CHECK(words.machine.violations().empty());
}
