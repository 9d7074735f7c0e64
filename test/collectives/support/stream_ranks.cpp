#include "test/collectives/support/stream_ranks.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "test/collectives/support/fake_device_math.h"

namespace kolo::test {

namespace {

constexpr std::chrono::minutes kPatience{1};

}  // namespace

std::shared_ptr<const RankDevice> fake_device(FakeMachine& machine,
                                              const std::shared_ptr<FakeDriver>& driver,
                                              int number) {
  auto device = std::make_shared<RankDevice>();
  device->number = number;
  device->driver = driver;
  device->make_math = [&machine, driver](int) {
    return std::make_unique<FakeDeviceMath>(machine, driver);
  };
  device->process = "played " + std::to_string(reinterpret_cast<std::uintptr_t>(driver.get()));
  return device;
}

std::vector<std::string> staged_transports() {
  auto names = transports_under_test();
  std::erase(names, "cuda_ipc");
  return names;
}

std::byte* StreamRank::upload(const std::vector<std::byte>& bytes) const {
  std::byte* const memory =
      driver.make_memory(std::max<std::size_t>(bytes.size(), 1), FakeDriver::Kind::kDevice, device);
  std::ranges::copy(bytes, memory);
  uploads.push_back(memory);
  return memory;
}

namespace {

void wait_for_end(FakeDriver& driver, cuda::Stream of, const std::function<void()>& meanwhile) {
  cuda::Event event = nullptr;
  driver.create_event(&event, 0);
  driver.record_event(event, of);
  const Deadline deadline = Clock::now() + kPatience;
  while (!driver.has_reached(event)) {
    meanwhile();
    std::this_thread::yield();
    expect(Clock::now() < deadline, "a stream does not come to its end");
  }
  driver.destroy_event(event);
}

}  // namespace

void StreamRank::synchronize(cuda::Stream of) const {
  wait_for_end(driver, of, [this] { communicator.progress(); });
}

void StreamRank::wait_alone() const {
  wait_for_end(driver, stream, [] {});
}

std::vector<RankOutcome> try_stream_ranks(const StreamJob& job, const StreamBody& body) {
  FakeMachine machine(job.devices, job.runs);
  machine.loads_lazily = true;
  std::vector<std::shared_ptr<FakeDriver>> drivers;
  for (int rank = 0; rank < job.size; ++rank) drivers.push_back(machine.process());
  for (const int rank : job.threads)
    drivers[static_cast<std::size_t>(rank)] = drivers[static_cast<std::size_t>(job.threads[0])];
  std::vector<std::vector<std::byte*>> uploads(drivers.size());
  auto outcomes = run_threads(job.size, [&](int rank, const std::shared_ptr<Store>& store) {
    const auto index = static_cast<std::size_t>(rank);
    const auto& driver = drivers[index];
    const bool is_host = std::ranges::find(job.hosts, rank) != job.hosts.end();
    CommunicatorOptions options = job.options;
    if (!is_host) options.device = fake_device(machine, driver, rank % job.devices);
    if (job.adjust) job.adjust(rank, *driver);
    Communicator communicator(rank, job.size, store, options);
    body({communicator, machine, *driver, uploads[index], rank % job.devices,
          is_host ? nullptr : driver->make_stream(rank % job.devices)});
  });
  const bool all_went_well = std::ranges::all_of(
      outcomes, [](const RankOutcome& outcome) { return outcome.text.empty(); });
  for (std::size_t rank = 0; rank < drivers.size(); ++rank) {
    if (job.at_end) job.at_end(static_cast<int>(rank), *drivers[rank]);
    for (std::byte* const memory : uploads[rank])
      drivers[rank]->free(reinterpret_cast<cuda::Address>(memory));
  }
  const bool leaves_nothing = job.leaves_nothing || (all_went_well && !job.ends_apart);
  if (const std::string left = machine.left_over(); leaves_nothing && !left.empty())
    outcomes.push_back({"left on the machine: " + left, {}, {}});
  for (const std::string& violation : machine.violations()) outcomes.push_back({violation, {}, {}});
  return outcomes;
}

void run_stream_ranks(const StreamJob& job, const StreamBody& body) {
  // A rank that ends waits half a second for its peers, then leaves memory that they may still have
  // mapped.
  const auto outcomes = try_stream_ranks(job, [&body](const StreamRank& rank) {
    body(rank);
    rank.communicator.barrier();
  });
  for (const bool is_fate : {false, true}) {
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (outcomes[rank].text.empty() || outcomes[rank].code.has_value() != is_fate) continue;
      throw std::runtime_error("rank " + std::to_string(rank) + ": " + outcomes[rank].text);
    }
  }
}

}  // namespace kolo::test
