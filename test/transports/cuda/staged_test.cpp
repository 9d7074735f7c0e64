// Staged transport: the same wire format as the host's channel, and its cost in memory, copies and
// sleep.
#include "transports/base/staged.h"

#include <poll.h>
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/stream_kinds.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr StreamKind kOverInproc{"staged over inproc", "inproc"};
constexpr std::size_t kLengths[] = {0, 1, 64, 1000, 4095, 4096, 4096, 3, 0, 4096};

// Rank 0 is a host rank with the plain transport, rank 1 has a device.
struct Mixed {
  explicit Mixed(std::string_view host) {
    auto hosts = make_hosts(host, 2);
    plain = std::move(hosts[0]);
    driver = machine.process();
    staged = stage(std::move(hosts[1]), driver);
    on = driver->make_stream();
    stream().begin(on);
  }
  StreamChannel& stream() { return *staged->channel(0).stream(); }
  Channel& host() { return plain->channel(1); }

  void until(const std::function<bool()>& is_done) {
    const Deadline deadline = Clock::now() + std::chrono::seconds(60);
    while (!is_done()) {
      if (Clock::now() > deadline) throw std::runtime_error("not done in a minute");
      plain->progress();
      staged->progress();
    }
  }
  void finish() {
    until([this] { return machine.run(); });
  }
  std::byte* memory(std::size_t bytes, int seed) {
    std::byte* const made =
        driver->make_memory(std::max<std::size_t>(bytes, 1), FakeDriver::Kind::kDevice);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = StreamRanks::value(i, seed);
    return made;
  }
  // Everything ends before the machine.
  void close() {
    stream().end(on);
    std::thread closing([this] { plain.reset(); });
    staged.reset();
    closing.join();
    CHECK(machine.run());
    CHECK(machine.violations().empty());
  }

  FakeMachine machine;
  std::shared_ptr<FakeDriver> driver;
  std::unique_ptr<Transport> plain;
  std::unique_ptr<Transport> staged;
  cuda::Stream on = nullptr;
};

std::vector<std::byte> filled(std::size_t bytes, int seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = StreamRanks::value(i, seed);
  return made;
}

void over_all_hosts(const std::function<void(Mixed&)>& body) {
  for (const StreamKind& kind : stream_kinds()) {
    if (!kind.is_staged) continue;
    DYNAMIC_SECTION(kind.host) {
      Mixed mixed(kind.host);
      body(mixed);
      mixed.close();
    }
  }
}

}  // namespace

TEST_CASE("a rank without a device sends to a rank with one, segment by segment") {
  over_all_hosts([](Mixed& mixed) {
    for (const bool is_slot : {false, true}) {
      std::vector<std::byte*> got;
      int seed = 0;
      for (const std::size_t bytes : kLengths) {
        // By view, or by receive into the caller's memory, whatever the peer does.
        got.push_back(mixed.memory(bytes, 99));
        if (got.size() % 2 == 0) {
          REQUIRE(mixed.stream().receive(mixed.on, {got.back(), bytes}, kPlain));
        } else {
          const std::byte* const seen = mixed.stream().view(mixed.on, bytes);
          mixed.driver->launch(mixed.on, {{got.back(), bytes}, {seen, bytes}},
                               [bytes](const std::vector<std::byte*>& at) {
                                 std::copy(at[1], at[1] + bytes, at[0]);
                               });
          mixed.stream().release(mixed.on);
        }
      }
      for (const std::size_t bytes : kLengths) {
        const auto data = filled(bytes, ++seed);
        if (is_slot) {
          std::byte* slot = nullptr;
          mixed.until([&] { return (slot = mixed.host().reserve(bytes)) != nullptr; });
          std::copy(data.begin(), data.end(), slot);
          mixed.host().commit(kPlain);
        } else {
          mixed.until([&] { return mixed.host().send(data, kPlain); });
          mixed.until([&] { return mixed.host().is_drained(); });
        }
      }
      mixed.finish();
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(StreamRanks::is_filled(got[i], kLengths[i], static_cast<int>(i) + 1));
    }
    CHECK(mixed.staged->channel(0).statistics().segments_received == 2 * std::size(kLengths));
  });
}

TEST_CASE("a rank with a device sends to a rank without one, one segment for every piece") {
  over_all_hosts([](Mixed& mixed) {
    std::vector<std::size_t> pieces;
    int seed = 0;
    for (const std::size_t bytes : kLengths) {
      std::byte* const slot = mixed.stream().reserve(mixed.on, bytes);
      REQUIRE(slot != nullptr);
      mixed.driver->launch(
          mixed.on, {{slot, bytes}, {mixed.memory(bytes, ++seed), bytes}},
          [bytes](const std::vector<std::byte*>& at) { std::copy(at[1], at[1] + bytes, at[0]); });
      mixed.stream().commit(mixed.on, kPlain);
    }
    constexpr std::size_t kLong = 10 * kStreamSegment + 77;
    std::byte* const whole = mixed.memory(kLong, 50);
    REQUIRE(mixed.stream().send(mixed.on, {whole, kLong}, kPlain));
    for (std::size_t i = 0; i < std::size(kLengths); ++i) {
      const std::byte* segment = nullptr;
      mixed.until([&] { return (segment = mixed.host().view(kLengths[i])) != nullptr; });
      CHECK(StreamRanks::is_filled(segment, kLengths[i], static_cast<int>(i) + 1));
      mixed.host().release();
    }
    std::vector<std::byte> got(kLong);
    for (std::size_t begin = 0; begin < kLong; begin += kStreamSegment) {
      const std::size_t bytes = std::min(kStreamSegment, kLong - begin);
      mixed.until([&] { return mixed.host().receive({got.data() + begin, bytes}, kPlain); });
    }
    CHECK(StreamRanks::is_filled(got.data(), kLong, 50));
    CHECK(mixed.staged->channel(0).statistics().segments_sent == std::size(kLengths) + 11);
    mixed.finish();
  });
}

TEST_CASE("the host's and the stream's calls on one channel run in the order of the calls") {
  over_all_hosts([](Mixed& mixed) {
    Channel& own = mixed.staged->channel(0);
    std::vector<std::byte> data = filled(16, 1);
    std::vector<std::byte> into(16);
    std::vector<std::byte> answer(16);
    for (int i = 0; i < 20; ++i) {
      // Outgoing: first by the stream, then by the host, which must wait for the stream.
      REQUIRE(mixed.stream().send(mixed.on, {mixed.memory(5000, i), 5000}, kPlain));
      CHECK_FALSE(own.is_drained());
      mixed.until([&] { return own.send(data, kPlain); });
      std::vector<std::byte> first(4096);
      std::vector<std::byte> second(904);
      mixed.until([&] { return mixed.host().receive(first, kPlain); });
      mixed.until([&] { return mixed.host().receive(second, kPlain); });
      mixed.until([&] { return mixed.host().receive(into, kPlain); });
      CHECK(StreamRanks::is_filled(first.data(), 4096, i));
      CHECK(into == data);
      // Incoming: the same.
      std::byte* const place = mixed.memory(100, 99);
      REQUIRE(mixed.stream().receive(mixed.on, {place, 100}, kPlain));
      CHECK_FALSE(own.receive(answer, kPlain));
      const auto hundred = filled(100, i + 7);
      mixed.until([&] { return mixed.host().send(hundred, kPlain); });
      mixed.until([&] { return mixed.host().send(data, kPlain); });
      mixed.until([&] { return own.receive(answer, kPlain); });
      CHECK(answer == data);
      mixed.finish();
      CHECK(StreamRanks::is_filled(place, 100, i + 7));
      mixed.until([&] { return own.is_drained() && mixed.host().is_drained(); });
    }
  });
}

TEST_CASE("pinned memory is allocated when channels meet, at most 4 MiB for each pair") {
  for (const std::size_t segment : {std::size_t{64}, std::size_t{4096}, std::size_t{256} << 10}) {
    StreamRanks ranks({"staged over tcp", "tcp"}, 3, [&](int, StagedSettings& settings) {
      settings.longest_segment_bytes = segment;
    });
    CHECK(ranks.stream(0, 1).capabilities().segment_bytes == segment);
    CHECK(ranks.stream(0, 2).can_send());
    const std::size_t pinned = ranks.machine.pinned_bytes();
    CHECK(pinned / 6 > 8 * segment);
    CHECK(pinned / 6 <= std::size_t{4} << 20);
    const int registered = ranks.driver(0).calls("register_host");
    const int allocated = ranks.driver(0).calls("allocate");
    ranks.begin();
    std::byte* const into = ranks.memory(1, 8 * segment, 9);
    ranks.view(1, 0, into, 8);  // this stream waits
    ranks.commit(0, 1, ranks.memory(0, 8, 3), 8);
    ranks.send(0, 1, {ranks.memory(0, 8 * segment, 4), 8 * segment});
    ranks.view_sent(1, 0, 8 * segment);
    ranks.stream(1, 0).release(ranks.on(1));
    ranks.finish();
    ranks.end();
    CHECK(ranks.machine.pinned_bytes() == pinned);
    CHECK(ranks.driver(0).calls("register_host") == registered);
    CHECK(ranks.driver(0).calls("allocate") == allocated);
    ranks.close();
    CHECK(ranks.machine.violations().empty());
    CHECK(ranks.machine.left_over().find("host memory") == std::string::npos);
  }
}

TEST_CASE("a stream's segments are no longer than the host's") {
  StreamRanks ranks({"staged over shm", "shm"}, 2, [](int, StagedSettings& settings) {
    settings.longest_segment_bytes = 1 << 18;
  });
  const std::size_t host = ranks.channel(0, 1).capabilities().segment_bytes;
  CHECK(host < std::size_t{1} << 18);
  CHECK(ranks.stream(0, 1).capabilities().segment_bytes == host);
}

TEST_CASE("adjacent pieces are copied together") {
  StreamRanks ranks(kOverInproc);
  constexpr std::size_t kPieces = 64;
  constexpr std::size_t kBytes = kPieces * kStreamSegment;
  ranks.begin();
  std::byte* const into = ranks.memory(1, kBytes, 9);
  ranks.send(0, 1, {ranks.memory(0, kBytes, 1), kBytes});
  ranks.receive(1, 0, {into, kBytes});
  ranks.finish();
  CHECK(StreamRanks::is_filled(into, kBytes, 1));
  CHECK(ranks.driver(0).calls("copy") <= static_cast<int>(kPieces / 2));
  CHECK(ranks.driver(1).calls("copy") <= static_cast<int>(kPieces / 2));
  ranks.end();
}

TEST_CASE("a host far ahead of its device must wait, and continues after progress") {
  StreamRanks ranks(kOverInproc, 2,
                    [](int, StagedSettings& settings) { settings.most_under_way = 8; });
  ranks.begin();
  std::byte* const into = ranks.memory(0, 64, 9);
  const std::byte* segment = nullptr;
  int given = 0;
  while ((segment = ranks.stream(0, 1).view(ranks.on(0), 8)) != nullptr) {
    ranks.copy(0, into, segment, 8);
    ranks.stream(0, 1).release(ranks.on(0));
    ++given;
  }
  CHECK(given == 8);
  CHECK(ranks.stream(0, 1).reserve(ranks.on(0), 8) == nullptr);
  CHECK(ranks.stream(0, 1).view_sent(ranks.on(0), 8) == nullptr);
  CHECK_FALSE(ranks.stream(0, 1).send(ranks.on(0), {into, 8}, kPlain));
  CHECK_FALSE(ranks.stream(0, 1).receive(ranks.on(0), {into, 8}, kPlain));
  for (int i = 0; i < 9; ++i) ranks.commit(1, 0, ranks.memory(1, 8, i), 8);
  ranks.view(0, 1, into, 8);
  ranks.finish();
  CHECK(StreamRanks::is_filled(into, 8, 8));
  ranks.end();
}

TEST_CASE("a rank sleeps while it waits for its peer, and stays awake for its device") {
  for (const char* host : {"inproc", "shm", "tcp"}) {
    DYNAMIC_SECTION(host) {
      StreamRanks ranks({"staged", host});
      Transport& own = ranks.transport(0);
      const auto settles = [&] {
        for (int i = 0; i < 100; ++i) {
          own.progress();
          if (!own.arm()) continue;
          own.disarm();
          return true;
        }
        return false;
      };
      CHECK(settles());
      ranks.begin();
      std::byte* const into = ranks.memory(0, 8, 9);
      ranks.view(0, 1, into, 8);
      REQUIRE(settles());  // arriving data wakes the host
      REQUIRE(own.arm());
      std::byte* const three = ranks.memory(1, 8, 3);
      std::byte* const slot = ranks.stream(1, 0).reserve(ranks.on(1), 8);
      ranks.copy(1, slot, three, 8);
      ranks.stream(1, 0).commit(ranks.on(1), kPlain);
      const Deadline deadline = Clock::now() + std::chrono::seconds(60);
      pollfd bell{own.descriptor(), POLLIN, 0};
      while (::poll(&bell, 1, 0) == 0 && Clock::now() < deadline) ranks.transport(1).progress();
      own.disarm();
      CHECK(bell.revents == POLLIN);
      ranks.finish();
      CHECK(StreamRanks::is_filled(into, 8, 3));
      ranks.view(0, 1, into, 8);
      ranks.commit(0, 1, into, 8);
      CHECK_FALSE(settles());  // the stream reaches this only after its wait
      ranks.commit(1, 0, ranks.memory(1, 8, 4), 8);
      ranks.view(1, 0, ranks.memory(1, 8, 0), 8);
      ranks.finish();
      CHECK(StreamRanks::is_filled(into, 8, 4));
      CHECK(settles());
      ranks.end();
    }
  }
}

// A rank's caller, its outgoing and its incoming copies have a stream each.
TEST_CASE("streams that share one hardware queue block each other, and those in eight do not") {
  for (const std::size_t queues : {std::size_t{1}, std::size_t{8}}) {
    INFO(queues << " queues");
    StreamRanks ranks(kOverInproc);
    ranks.machine.hardware_queues = queues;
    ranks.begin();
    std::byte* const into = ranks.memory(1, 8, 9);
    ranks.view(1, 0, into, 8);
    ranks.commit(0, 1, ranks.memory(0, 8, 3), 8);
    for (int i = 0; i < 1000; ++i) {
      ranks.machine.run();
      ranks.transport(0).progress();
      ranks.transport(1).progress();
    }
    CHECK(ranks.machine.run() == (queues == 8));
    CHECK(StreamRanks::is_filled(into, 8, 3) == (queues == 8));
    ranks.machine.hardware_queues = 0;
    ranks.finish();
    ranks.end();
  }
}

TEST_CASE("the error for staging without a driver or a device gives the reason") {
  FakeMachine machine;
  machine.absent = "no CUDA driver (libcuda.so.1)";
  const auto refusal = [](FakeMachine& played, const std::function<void(StagedSettings&)>& adjust) {
    return error_of(
        [&] { stage(std::move(make_hosts("inproc", 1)[0]), played.process(), adjust); });
  };
  auto error = refusal(machine, nullptr);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnavailable);
  CHECK_THAT(error->what(), ContainsSubstring("rank 0: device memory cannot go over inproc here: "
                                              "no CUDA driver (libcuda.so.1)"));
  machine.absent.clear();
  error = refusal(machine, [](StagedSettings& settings) { settings.device = 3; });
  REQUIRE(error);
  CHECK_THAT(error->what(), ContainsSubstring("no CUDA device 3"));
  CHECK_THROWS_AS(refusal(machine, [](auto& settings) { settings.longest_segment_bytes = 100; }),
                  std::invalid_argument);
  CHECK_THROWS_WITH(
      refusal(machine, [](auto& settings) { settings.longest_segment_bytes = 1 << 20; }),
      ContainsSubstring("no room for four pinned slots"));
  CHECK(machine.left_over().empty());
}

// Driver functions, and which of their calls fail.
const std::vector<std::pair<const char*, std::vector<int>>> kFailingCalls = {
    {"retain_context", {1}},
    {"create_event", {1, 2, 3}},
    {"create_stream", {1, 2}},
    {"register_host", {1}},
    {"host_address", {1}},
    {"allocate", {1, 2}},
    {"word_operations", {1, 2, 4, 9, 30}},
    {"copy", {1, 4, 12}},
    {"record_event", {1, 4}},
    {"pointer_attribute", {4}},
    {"capture_of", {1, 4}}};

TEST_CASE(
    "the error for a driver call that fails while data is staged names it, and the end is clean") {
  for (const auto& [function, nths] : kFailingCalls) {
    for (const int nth : nths) {
      INFO(function << ", call " << nth);
      FakeMachine machine;
      auto hosts = make_hosts("inproc", 2);
      const auto driver = machine.process();
      const auto other = machine.process();
      driver->fail(function, 999, nth);
      const auto error = error_of([&] {
        // An event that could not be recorded never completes: the end waits this long.
        const auto hasty = [](StagedSettings& settings) {
          settings.patience = std::chrono::milliseconds(200);
        };
        auto own = stage(std::move(hosts[0]), driver, hasty);
        auto peer = stage(std::move(hosts[1]), other, hasty);
        const cuda::Stream streams[] = {driver->make_stream(), other->make_stream()};
        std::byte* const memory[] = {driver->make_memory(100'000, FakeDriver::Kind::kDevice),
                                     other->make_memory(100'000, FakeDriver::Kind::kDevice)};
        StreamChannel* const ends[] = {own->channel(1).stream(), peer->channel(0).stream()};
        const Deadline deadline = Clock::now() + std::chrono::seconds(60);
        for (int round = 0; round < 8; ++round) {
          for (int i = 0; i < 2; ++i) {
            ends[i]->begin(streams[i]);
            ends[i]->send(streams[i], {memory[i], 20'000}, kPlain);
            ends[i]->reserve(streams[i], 100);
            ends[i]->commit(streams[i], kPlain);
            ends[i]->receive(streams[i], {memory[i] + 50'000, 20'000}, kPlain);
            ends[i]->view(streams[i], 100);
            ends[i]->release(streams[i]);
            ends[i]->drain(streams[i]);
            ends[i]->end(streams[i]);
          }
          while (!machine.run() && Clock::now() < deadline) {
            own->progress();
            peer->progress();
          }
        }
        own->quiesce();  // otherwise its end waits until the peer has received everything
      });
      const std::string said = error ? error->what() : "no error";
      CHECK_THAT(said, ContainsSubstring("the driver's error 999"));
      CHECK(machine.violations().empty());
      const std::string left = machine.left_over();
      CHECK(left.find("host memory") == std::string::npos);
      CHECK(left.find("context") == std::string::npos);
      CHECK(left.find("stream") == std::string::npos);
      CHECK(left.find("event") == std::string::npos);
    }
  }
}

TEST_CASE("memory that a destroyed stream may still use is kept, and the end does not hang") {
  auto machine = std::make_unique<FakeMachine>();
  auto hosts = make_hosts("inproc", 2);
  const auto driver = machine->process();
  auto own = stage(std::move(hosts[0]), driver, [](StagedSettings& settings) {
    settings.patience = std::chrono::milliseconds(30);
  });
  const cuda::Stream on = driver->make_stream();
  own->channel(1).stream()->begin(on);
  own->channel(1).stream()->view(on, 8);
  driver->destroy_stream(on);
  const auto error = error_of([&] { own->channel(1).stream()->release(on); });
  REQUIRE(error);
  CHECK_THAT(error->what(),
             ContainsSubstring("rank 0: sending to or receiving from rank 1 on a stream") &&
                 ContainsSubstring("was the stream destroyed"));
  own.reset();
  CHECK(machine->pinned_bytes() > 0);
  CHECK(machine->violations().empty());
  machine.release();  // it stays alive with the kept memory
}
