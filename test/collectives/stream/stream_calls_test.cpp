// Contract of calls on streams: what waits for what, the order of operations, and the calls that
// are refused.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 1009;

std::vector<std::byte> floats(float value) {
  const std::vector<float> all(kCount, value);
  std::vector<std::byte> bytes(kCount * sizeof(float));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

bool holds(const std::byte* memory, float value) {
  std::vector<float> found(kCount);
  std::memcpy(found.data(), memory, kCount * sizeof(float));
  return found == std::vector<float>(kCount, value);
}

CallOptions on(cuda::Stream stream) {
  CallOptions options;
  options.stream = DeviceStream{stream};
  return options;
}

void sum(const StreamRank& rank, std::byte* memory, const CallOptions& options) {
  rank.communicator.all_reduce({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum, options);
}
Work sum_async(const StreamRank& rank, std::byte* memory, const CallOptions& options) {
  return rank.communicator.all_reduce_async({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum,
                                            options);
}

std::string refusal(const std::function<void()>& body) {
  const RankOutcome outcome = outcome_of(body);
  return outcome.is_bug ? outcome.text : "not refused: " + outcome.text;
}

void expect_said(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
}

}  // namespace

TEST_CASE("blocking calls on a stream return before the device has done anything") {
  StreamJob job;
  job.runs = FakeMachine::Runs::kWhenTold;
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    for (int i = 0; i < 3; ++i) sum(rank, memory, on(rank.stream));
    rank.communicator.barrier();  // on the host: both ranks have enqueued everything
    expect(holds(memory, 1), "the device was waited for");
    rank.communicator.barrier();
    if (rank.communicator.rank() == 0) expect(rank.machine.run(), "something is left");
    rank.communicator.barrier();
    expect(holds(memory, 8), "wrong sums");
  });
}

TEST_CASE("a rank that waits on its stream alone does not block the others") {
  constexpr int kCalls = 40;
  // Longer than rank 1 needs for its calls if nothing blocks it; far below the timeout, also on a
  // busy machine, where a number of yields would take any time.
  constexpr auto kHeadStart = std::chrono::milliseconds(200);
  std::atomic<int> calls_of_rank_1 = 0;
  StreamJob job;
  job.options.transport = "cuda_ipc";
  job.options.timeout = std::chrono::seconds(20);
  run_stream_ranks(job, [&](const StreamRank& rank) {
    const bool is_root = rank.communicator.rank() == 0;
    std::byte* const memory = rank.upload(floats(is_root ? 7.0F : 1.0F));
    const auto until = Clock::now() + kHeadStart;
    while (is_root && Clock::now() < until && calls_of_rank_1 < 10) std::this_thread::yield();
    for (int i = 0; i < kCalls; ++i) {
      rank.communicator.broadcast({memory, kCount, ElementType::kFloat32}, 0, on(rank.stream));
      if (!is_root) ++calls_of_rank_1;
    }
    rank.wait_alone();
    expect(holds(memory, 7), "the root's numbers");
  });
}

TEST_CASE("a message sent on a stream arrives whatever its rank does afterwards") {
  constexpr int kMessages = 20;
  constexpr auto kPatience = std::chrono::seconds(20);
  for (const std::string& transport : staged_transports()) {
    INFO(transport);
    std::atomic<int> received = 0;
    StreamJob job;
    job.options.transport = transport;
    job.options.timeout = kPatience;
    run_stream_ranks(job, [&](const StreamRank& rank) {
      const bool sends = rank.communicator.rank() == 0;
      std::byte* const memory = rank.upload(floats(sends ? 7.0F : 1.0F));
      for (int i = 0; i < kMessages; ++i) {
        if (!sends) {
          rank.communicator.receive({memory, kCount, ElementType::kFloat32}, 0, on(rank.stream));
          rank.wait_alone();
          ++received;
          continue;
        }
        rank.communicator.send({memory, kCount, ElementType::kFloat32}, 1, on(rank.stream));
        rank.wait_alone();
        const auto deadline = Clock::now() + kPatience;
        while (received <= i && Clock::now() < deadline) std::this_thread::yield();
        expect(received > i, "a message does not arrive");
      }
      expect(holds(memory, 7), "the sender's numbers");
    });
  }
}

TEST_CASE("a Work on a stream is done, and runs its callbacks, when the device is done") {
  StreamJob job;
  job.runs = FakeMachine::Runs::kWhenTold;
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    int calls = 0;
    Work work = sum_async(rank, memory, on(rank.stream));
    work.when_done([&](const Error* failure) { calls += failure == nullptr ? 1 : 100; });
    rank.communicator.barrier();
    expect(!work.test() && calls == 0, "done before the device was");
    rank.communicator.barrier();
    if (rank.communicator.rank() == 0) expect(rank.machine.run(), "something is left");
    rank.communicator.barrier();
    work.wait();
    expect(work.test() && calls == 1 && holds(memory, 2), "not done");
  });
}

TEST_CASE("a persistent operation on a stream is started again and again") {
  StreamJob job;
  job.size = 3;
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    CallOptions options = on(rank.stream);
    options.is_persistent = true;
    Work work = sum_async(rank, memory, options);
    expect(holds(memory, 1), "it ran before it was started");
    float expected = 1;
    for (int i = 0; i < 3; ++i) {
      work.start();
      work.wait();
      expected *= 3;
      expect(holds(memory, expected), "a wrong sum");
    }
  });
}

TEST_CASE("operations on two streams, on the host, and messages keep the order of issue") {
  StreamJob job;
  job.size = 3;
  run_stream_ranks(job, [](const StreamRank& rank) {
    cuda::Stream const other = rank.driver.make_stream();
    std::byte* const one = rank.upload(floats(1));
    std::byte* const two = rank.upload(floats(2));
    std::vector<float> host(kCount, 3);
    for (int i = 0; i < 20; ++i) {
      sum(rank, one, on(rank.stream));
      Work work = sum_async(rank, two, on(other));
      rank.communicator.all_reduce(std::span<float>(host), ReduceOp::kMax);
      const int next = (rank.communicator.rank() + 1) % 3;
      const int before = (rank.communicator.rank() + 2) % 3;
      rank.communicator.send_receive({host.data(), 5, ElementType::kFloat32}, next,
                                     {host.data() + 10, 5, ElementType::kFloat32}, before);
      rank.communicator.send_receive({one, kCount, ElementType::kFloat32}, next,
                                     {two, kCount, ElementType::kFloat32}, before, on(other));
      work.wait();
      rank.synchronize();
      rank.synchronize(other);
      expect(holds(one, 3) && holds(two, 3), "round " + std::to_string(i));
      const auto again = floats(1);
      std::memcpy(one, again.data(), again.size());
    }
    expect(host == std::vector<float>(kCount, 3), "on the host");
  });
}

TEST_CASE("host calls of a rank with a device use the call cache only while no stream is busy") {
  StreamJob job;
  job.size = 1;
  job.runs = FakeMachine::Runs::kWhenTold;
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::vector<float> host(8, 1);
    // Whether the call ended while it was issued. An operation that goes into the queue does not.
    const auto ends_at_once = [&] {
      bool has_ended = false;
      Work work = rank.communicator.all_reduce_async(host, ReduceOp::kSum);
      work.when_done([&has_ended](const Error*) { has_ended = true; });
      const bool did = has_ended;
      work.wait();
      return did;
    };
    expect(!ends_at_once(), "the first call");
    expect(ends_at_once(), "a repeat");
    std::byte* const memory = rank.upload(floats(1));
    Work work = sum_async(rank, memory, on(rank.stream));
    rank.communicator.barrier();  // queued behind it, so it is enqueued now
    expect(!ends_at_once(), "a repeat beside a stream at work");
    rank.machine.run_at_once();
    work.wait();
    expect(ends_at_once(), "a repeat once the stream is done");
  });
}

TEST_CASE("device memory is refused in a repeated host call, as in the first") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    std::vector<float> host(kCount, 1);
    const auto sum_into = [&](void* out) {
      rank.communicator.all_reduce({host.data(), kCount, ElementType::kFloat32},
                                   {out, kCount, ElementType::kFloat32}, ReduceOp::kSum);
    };
    std::vector<float> out(kCount);
    for (int i = 0; i < 3; ++i) sum_into(out.data());
    std::byte* const memory = rank.upload(floats(1));
    expect_said(refusal([&] { sum_into(memory); }), "'out' is device memory");
    sum_into(out.data());
    expect(out == std::vector<float>(kCount, 2), "the sum after it");
  });
}

TEST_CASE("repeated host calls and calls on streams alternate over any transport") {
  auto transports = staged_transports();
  transports.emplace_back("auto");
  for (const std::string& transport : transports) {
    INFO(transport);
    StreamJob job;
    job.size = 3;
    job.hosts = {2};
    job.options.transport = transport;
    run_stream_ranks(job, [](const StreamRank& rank) {
      std::vector<float> host(5, 1);
      const auto sum_on_host = [&](int times) {
        for (int i = 0; i < times; ++i) {
          std::ranges::fill(host, 1.0F);
          rank.communicator.all_reduce(std::span(host));
          expect(host == std::vector<float>(5, 3), "a sum on the host");
        }
      };
      std::vector<float> third(kCount);
      std::byte* const memory =
          rank.has_device() ? rank.upload(floats(1)) : reinterpret_cast<std::byte*>(third.data());
      for (int round = 0; round < 5; ++round) {
        sum_on_host(3);
        const auto ones = floats(1);
        std::memcpy(memory, ones.data(), ones.size());
        sum(rank, memory, rank.has_device() ? on(rank.stream) : CallOptions{});
        sum_on_host(round);
        if (rank.has_device()) rank.synchronize();
        expect(holds(memory, 3), "a sum on streams");
      }
    });
  }
}

TEST_CASE("groups have the device of their parent") {
  StreamJob job;
  job.size = 4;
  job.devices = 2;
  run_stream_ranks(job, [](const StreamRank& rank) {
    auto half = rank.communicator.split(rank.communicator.rank() / 2);
    auto twin = rank.communicator.duplicate();
    std::byte* const memory = rank.upload(floats(1));
    half->all_reduce({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum, on(rank.stream));
    twin.all_reduce({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum, on(rank.stream));
    Work last = twin.barrier_async(on(rank.stream));
    last.wait();
    rank.synchronize();
    expect(holds(memory, 8), "wrong sums");
  });
}

TEST_CASE("a buffer of a world and its groups is opened once per process") {
  StreamJob job;
  job.size = 3;
  job.threads = {0, 1};
  run_stream_ranks(job, [](const StreamRank& rank) {
    constexpr std::size_t kBytes = std::size_t{3} << 20;  // more than a slot
    const auto own = static_cast<std::byte>(rank.communicator.rank());
    std::byte* const memory = rank.upload(std::vector<std::byte>(kBytes, own));
    auto split = rank.communicator.split(0);
    auto twin = rank.communicator.duplicate();
    CallOptions options = on(rank.stream);
    options.algorithm = "binomial_tree";
    for (Communicator* const each : {&rank.communicator, &*split, &twin})
      each->broadcast({memory, kBytes, ElementType::kUint8}, 2, options);
    rank.synchronize();
    expect(memory[0] == std::byte{2} && memory[kBytes - 1] == std::byte{2}, "wrong numbers");
    rank.communicator.barrier();
    // The slots of each rank of another process, for each communicator, and the memory of rank 2.
    const int opened = rank.driver.calls("ipc_open");
    expect(opened == (rank.communicator.rank() == 2 ? 6 : 4),
           "opened " + std::to_string(opened) + " times");
  });
}

TEST_CASE("statistics count the payload of calls on streams, without openings") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    CallOptions options = on(rank.stream);
    options.algorithm = "ring";
    const auto before = rank.communicator.statistics();
    Work work = rank.communicator.all_reduce_async({memory, 1000, ElementType::kFloat32},
                                                   ReduceOp::kSum, options);
    work.wait();
    const auto after = rank.communicator.statistics();
    expect(after.operations == before.operations + 1, "operations");
    expect(after.payload_bytes_sent - before.payload_bytes_sent == 4000, "bytes sent");
    expect(after.payload_bytes_received - before.payload_bytes_received == 4000, "bytes received");
  });
}

TEST_CASE("wrong memory and unsupported calls on streams are refused before anything is sent") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    std::vector<float> host(kCount);
    const auto call = [&](void* data, const CallOptions& options) {
      return refusal([&] {
        rank.communicator.all_reduce({data, kCount, ElementType::kFloat32}, ReduceOp::kSum,
                                     options);
      });
    };
    expect_said(call(host.data(), on(rank.stream)),
                "all_reduce: 'in' is host memory, and the call is on a device's stream");
    expect_said(call(memory, {}),
                "all_reduce: 'in' is device memory, and the call names no stream");
    UserReduceOp reducer;
    reducer.element_bytes = sizeof(float);
    reducer.combine = [](void*, const void*, const void*, std::size_t) {};
    expect_said(refusal([&] {
                  rank.communicator.all_reduce({memory, 1, reducer}, reducer, on(rank.stream));
                }),
                "a user function runs on the host");
    expect_said(refusal([&] {
                  rank.communicator.push_pull(
                      {memory, 8, ElementType::kFloat32}, {memory, 8, ElementType::kFloat32},
                      ReduceOp::kSum, {true, {}}, [](std::size_t, std::span<std::byte>) {},
                      on(rank.stream));
                }),
                "an update runs on the host");
    cuda::Stream const gone = rank.driver.make_stream();
    rank.driver.destroy_stream(gone);
    expect_said(outcome_of([&] { sum(rank, memory, on(gone)); }).text, "was the stream destroyed");
    sum(rank, memory, on(rank.stream));  // the communicator still works
    rank.synchronize();
    expect(holds(memory, 2), "a wrong sum");
  });
}

TEST_CASE("wrong memory is refused after calls with right memory, too") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    std::byte* const memory = rank.upload(floats(1));
    sum(rank, memory, on(rank.stream));
    auto host = floats(1);
    expect_said(refusal([&] { sum(rank, host.data(), on(rank.stream)); }),
                "all_reduce: 'in' is host memory, and the call is on a device's stream");
    rank.synchronize();
    expect(holds(memory, 2), "a wrong sum");
  });
}

TEST_CASE("pinned memory counts as host memory: refused on streams, accepted without") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    auto registered = floats(1);
    void* allocated = nullptr;
    rank.driver.register_host(registered.data(), registered.size(), 0);
    rank.driver.allocate_host(&allocated, registered.size());
    std::ranges::copy(registered, static_cast<std::byte*>(allocated));
    for (std::byte* const pinned : {registered.data(), static_cast<std::byte*>(allocated)}) {
      expect_said(refusal([&] { sum(rank, pinned, on(rank.stream)); }),
                  "all_reduce: 'in' is host memory, and the call is on a device's stream");
      for (int round = 0; round < 3; ++round) sum(rank, pinned, {});
      expect(holds(pinned, 8), "a wrong sum");
    }
    rank.driver.free_host(allocated);
    rank.driver.unregister_host(registered.data());
  });
}

TEST_CASE("memory of another device is refused with both devices before anything is sent") {
  StreamJob job;
  job.devices = 2;
  run_stream_ranks(job, [](const StreamRank& rank) {
    const int other = 1 - rank.device;
    std::byte* const theirs =
        rank.driver.make_memory(kCount * sizeof(float), FakeDriver::Kind::kDevice, other);
    rank.uploads.push_back(theirs);
    const std::string said = refusal([&] {
      rank.communicator.all_reduce({theirs, kCount, ElementType::kFloat32}, ReduceOp::kSum,
                                   on(rank.stream));
    });
    expect_said(said, "device " + std::to_string(other));
    expect_said(said, "device " + std::to_string(rank.device) + " (Played");
    std::byte* const memory = rank.upload(floats(1));
    sum(rank, memory, on(rank.stream));  // the communicator still works
    rank.synchronize();
    expect(holds(memory, 2), "a wrong sum");
  });
}

TEST_CASE("a communicator without a device refuses streams without a driver call") {
  run_ranks(2, "auto", [](Communicator& communicator) {
    std::vector<float> host(kCount);
    expect_said(refusal([&] {
                  communicator.all_reduce({host.data(), kCount, ElementType::kFloat32},
                                          ReduceOp::kSum, on(nullptr));
                }),
                "all_reduce: the call is on a device's stream, but this rank's communicator has no "
                "device");
  });
}

TEST_CASE("a missing device of one rank is reported on every rank") {
  StreamJob job;
  job.devices = 0;
  for (const RankOutcome& outcome : try_stream_ranks({2,
                                                      FakeMachine::Runs::kAtOnce,
                                                      1,
                                                      {},
                                                      {},
                                                      [](int rank, FakeDriver&driver) {
                                                        if (rank == 1)
                                                          driver.fail("init", cuda::kNoDevice, 0);
                                                      }},
                                                     [](const StreamRank&) {})) {
    INFO(outcome.text);
    CHECK(outcome.text.find("its device: the CUDA driver finds no device") != std::string::npos);
  }
}

TEST_CASE("a driver older than the kernels' runtime is refused with both versions") {
  FakeMachine machine;
  machine.driver_version = 12080;
  RankDevice device = *fake_device(machine, machine.process());
  device.runtime_version = 13000;
  CommunicatorOptions options;
  options.device = std::make_shared<const RankDevice>(device);
  CHECK_THROWS_WITH(Communicator(0, 1, make_local_store(), options),
                    ContainsSubstring("driver is for CUDA 12.8, older than the runtime 13.0"));
}

}  // namespace kolo::test
