#include "test/bench/device/machine_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace kolo::bench {

using test::FakeDriver;
using test::FakeMachine;

namespace {

class MachineGraph final : public DeviceGraph {
 public:
  MachineGraph(FakeDriver& driver, cuda::Stream stream, test::FakeGraph& graph)
      : driver_(driver), stream_(stream), graph_(graph) {}
  void launch() override { driver_.replay(graph_, stream_); }

 private:
  FakeDriver& driver_;
  cuda::Stream stream_;
  test::FakeGraph& graph_;
};

}  // namespace

MachineMemory::MachineMemory(FakeMachine& machine) : MachineMemory(machine, machine.process()) {}

MachineMemory::MachineMemory(FakeMachine& machine, std::shared_ptr<FakeDriver> driver)
    : machine_(machine), driver_(std::move(driver)), stream_(driver_->make_stream()) {}

MachineMemory::~MachineMemory() {
  for (const std::span<std::byte> memory : given_)
    driver_->free(reinterpret_cast<cuda::Address>(memory.data()));
}

std::shared_ptr<const RankDevice> MachineMemory::rank_device() const {
  return test::fake_device(machine_, driver_);
}

std::shared_ptr<DeviceMemory> MachineMemory::beside() const {
  return std::make_shared<MachineMemory>(machine_, driver_);
}

std::shared_ptr<std::byte[]> MachineMemory::allocate(std::size_t bytes) {
  std::byte* const memory = driver_->make_memory(bytes, FakeDriver::Kind::kDevice);
  given_.push_back({memory, bytes});
  return {memory, [](std::byte*) {}};
}

std::shared_ptr<void> MachineMemory::pin(std::span<std::byte> memory) {
  return {memory.data(), [](void*) {}};
}

bool MachineMemory::holds(const void* pointer) const {
  return std::ranges::any_of(given_, [pointer](std::span<const std::byte> memory) {
    return pointer >= memory.data() && pointer < memory.data() + memory.size();
  });
}

// Copies run on the fake machine, which checks the owners of device memory.
void MachineMemory::copy(void* to, const void* from, std::size_t bytes) {
  const bool is_to_device = holds(to);
  const bool is_from_device = holds(from);
  std::vector<FakeDriver::Operand> operands;
  if (is_to_device) operands.push_back({to, bytes});
  if (is_from_device) operands.push_back({from, bytes});
  driver_->launch(stream_, operands, [=](const std::vector<std::byte*>& found) {
    void* const into = is_to_device ? found.front() : to;
    std::memmove(into, is_from_device ? found.back() : from, bytes);
  });
}

std::shared_ptr<DeviceGraph> MachineMemory::capture(const std::function<void()>& calls) {
  driver_->capture(stream_);
  try {
    calls();
  } catch (...) {
    driver_->end_capture(stream_);
    throw;
  }
  return std::make_shared<MachineGraph>(*driver_, stream_, *driver_->end_capture(stream_));
}

void MachineMemory::wait() {
  cuda::Event event = nullptr;
  driver_->create_event(&event, 0);
  driver_->record_event(event, stream_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!driver_->has_reached(event)) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a stream does not come to its end");
    std::this_thread::yield();
  }
  driver_->destroy_event(event);
}

}  // namespace kolo::bench
