// NVIDIA device, through the CUDA runtime.
#include <fmt/format.h>

#include <utility>

#include "bench/device/memory.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/on_device.h"

namespace kolo::bench {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(device::Stream stream, const std::function<void()>& calls)
      : stream_(stream), graph_(stream, calls) {}
  void launch() override { graph_.launch(stream_); }

 private:
  device::Stream stream_;
  device::Graph graph_;
};

class CudaMemory final : public DeviceMemory {
 public:
  // The stream belongs to the device that is current when it is made.
  explicit CudaMemory(int number) : number_((device::use(number), number)) {}

  std::string describe() const override {
    return fmt::format("device {} ({})", number_, device::description());
  }
  std::shared_ptr<const RankDevice> rank_device() const override {
    return device::on_device(number_);
  }
  int number() const override { return number_; }
  int count() const override { return device::count(); }
  std::shared_ptr<DeviceMemory> beside() const override {
    return std::make_shared<CudaMemory>(number_);
  }
  void* stream() const override { return static_cast<device::Stream>(stream_); }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    const auto buffer = std::make_shared<device::Buffer>(bytes);
    return {buffer, buffer->data()};
  }
  std::shared_ptr<void> pin(std::span<std::byte> memory) override {
    return std::make_shared<device::Pinned>(memory.data(), memory.size());
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    device::copy(to, from, bytes, stream_);
  }
  void wait() override { device::wait(stream_); }
  std::shared_ptr<DeviceGraph> capture(const std::function<void()>& calls) override {
    return std::make_shared<CudaGraph>(stream_, calls);
  }

 private:
  int number_;
  device::OwnStream stream_;
};

}  // namespace

std::string why_no_device() { return device::why_unusable(); }

std::shared_ptr<DeviceMemory> open_device(int local) {
  const int count = device::count();
  return std::make_shared<CudaMemory>(count == 0 ? 0
                                                 : local % count);  // device 0 reports the error
}

}  // namespace kolo::bench
