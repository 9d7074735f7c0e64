// One rank of a job on streams in which another rank dies: a program for
// killed_stream_rank_test.cpp.
//
//   crashing_stream_rank TRANSPORT VICTIM OPERATION STATE WORKS
//
// Each rank has a fake device in its own process. It issues collectives on a stream in a loop and
// waits for each. The victim kills itself in operation number OPERATION (from 0), in one STATE:
// "uncalled": before the call;
// "in_part": after WORKS attempts to enqueue the operation;
// "given": when all of it is enqueued and the device has run WORKS pieces of its work.
//
// The other ranks print their error and exit with 3. They exit with 4, and print why, if their fake
// machine still has resources or their stream still waits. Exit code 0 means that nothing failed.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "collectives/communicator.h"
#include "test/collectives/support/stream_ranks.h"
#include "test/support/sanitizers.h"

namespace {

using kolo::test::FakeDriver;
using kolo::test::FakeMachine;

constexpr int kOperations = 8;
constexpr std::size_t kShort = 9'000;   // elements; at most one segment
constexpr std::size_t kLong = 400'000;  // more than a slot: zero copy where possible
// Four times the limit of the test: under a sanitizer, ranks may take seconds to start.
constexpr std::chrono::seconds kPatience{kolo::test::kIsSanitized ? 120 : 40};

struct Death {
  int victim = -1;
  int operation = 0;
  std::string state;
  int works = 0;
};

struct Memory {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
};

kolo::Work issue(kolo::Communicator& communicator, int number, const Memory& memory,
                 kolo::cuda::Stream stream) {
  const auto type = kolo::ElementType::kFloat32;
  const auto sum = kolo::ReduceOp::kSum;
  kolo::CallOptions on;
  on.stream = kolo::DeviceStream{stream};
  switch (number % 6) {
    case 0:
      return communicator.all_reduce_async({memory.in, kShort, type}, {memory.out, kShort, type},
                                           sum, on);
    case 1:
      return communicator.all_reduce_async({memory.in, kLong, type}, {memory.out, kLong, type}, sum,
                                           on);
    case 2:
      return communicator.broadcast_async({memory.in, kLong, type}, 0, on);
    case 3:
      return communicator.all_gather_async(
          {memory.in, kolo::chunk_count(kLong, communicator.size(), communicator.rank()), type},
          {memory.out, kLong, type}, on);
    case 4:
      return communicator.all_to_all_async({memory.in, kShort, type}, {memory.out, kShort, type},
                                           on);
    default:
      return communicator.reduce_scatter_async(
          {memory.in, kShort, type},
          {memory.out, kolo::chunk_count(kShort, communicator.size(), communicator.rank()), type},
          sum, on);
  }
}

// The last call of the victim.
[[noreturn]] void die(kolo::Communicator& communicator, FakeMachine& machine, const Death& death,
                      const Memory& memory, kolo::cuda::Stream stream) {
  machine.run_when_told();
  const auto before = communicator.statistics().operations;
  if (death.state != "uncalled") {
    const kolo::Work work = issue(communicator, death.operation, memory, stream);
    if (death.state == "in_part") {
      for (int i = 0; i < death.works; ++i) communicator.progress();
    } else {
      while (communicator.statistics().operations == before) communicator.progress();
      for (int i = 0; i < death.works; ++i) {
        communicator.progress();
        machine.run_some(1);
      }
    }
    std::raise(SIGKILL);
  }
  std::raise(SIGKILL);
  std::abort();
}

void run(kolo::Communicator& communicator, FakeMachine& machine, const Death& death,
         const Memory& memory, kolo::cuda::Stream stream) {
  communicator.barrier();  // all ranks are connected before one dies
  for (int number = 0; number < kOperations; ++number) {
    if (communicator.rank() == death.victim && number == death.operation)
      die(communicator, machine, death, memory, stream);
    issue(communicator, number, memory, stream).wait();
  }
}

// Whether the stream finishes all enqueued work, or is released from its wait.
bool comes_to_its_end(FakeDriver& driver, kolo::cuda::Stream stream) {
  kolo::cuda::Event event = nullptr;
  driver.create_event(&event, 0);
  driver.record_event(event, stream);
  const kolo::Deadline until = kolo::Clock::now() + kPatience;
  while (!driver.has_reached(event)) {
    if (kolo::Clock::now() > until) return false;
    std::this_thread::yield();
  }
  driver.destroy_event(event);
  return true;
}

// The leftovers on the machine of a surviving rank.
std::string left_of(FakeMachine& machine) {
  std::string left = machine.left_over();
  for (const std::string& violation : machine.violations()) left += violation + "; ";
  return left;
}

int run(const std::string& transport, const Death& death) {
  FakeMachine machine;
  const auto driver = machine.process();
  auto device = std::make_shared<kolo::RankDevice>(*kolo::test::fake_device(machine, driver));
  device->process.clear();  // ranks are identified by this process instead
  const kolo::cuda::Stream stream = driver->make_stream();
  std::string told;
  bool is_stuck = false;
  {
    Memory memory;
    const auto allocate = [&driver](std::size_t count) {
      return driver->make_memory(count * sizeof(float), FakeDriver::Kind::kDevice);
    };
    kolo::CommunicatorOptions options;
    options.transport = transport;
    options.timeout = kPatience;
    options.device = device;
    auto communicator = kolo::Communicator::from_environment(options);
    memory.in = allocate(kLong);
    memory.out = allocate(kLong * static_cast<std::size_t>(communicator.size()));
    try {
      run(communicator, machine, death, memory, stream);
      communicator.barrier();
    } catch (const std::exception& error) {
      told = error.what();
    }
    is_stuck = !comes_to_its_end(*driver, stream);
    for (std::byte* const each : {memory.in, memory.out})
      driver->free(reinterpret_cast<kolo::cuda::Address>(each));
  }
  // Under a sanitizer, ranks may close their mappings too late: their peers wait half a second
  // only.
  const std::string left = kolo::test::kIsSanitized ? "" : left_of(machine);
  std::printf("%s\n", told.c_str());
  if (is_stuck) std::printf("the stream still waits\n");
  if (!left.empty()) std::printf("left on the machine: %s\n", left.c_str());
  if (is_stuck || !left.empty()) return 4;
  return told.empty() ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    return run(argv[1], {std::atoi(argv[2]), std::atoi(argv[3]), argv[4], std::atoi(argv[5])});
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
