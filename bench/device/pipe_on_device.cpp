#include "bench/device/pipe_on_device.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/measure/statistics.h"

namespace kolo::bench {

PipeOnDevice::PipeOnDevice(std::unique_ptr<Pipe> pipe, std::shared_ptr<DeviceMemory> memory)
    : memory_(std::move(memory)), mirrors_(memory_), pipe_(std::move(pipe)) {}

std::string PipeOnDevice::objection() const {
  if (pipe_->runs_in_workers()) return "its processes cannot use device memory";
  return pipe_->objection();
}

void PipeOnDevice::place(std::span<const std::span<std::byte>> memory) {
  mirrors_.place(memory);
  if (pipe_->enqueues()) return;
  stages_.resize(std::max(stages_.size(), memory.size()));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Stage& stage = stages_[i];
    if (stage.pages.bytes() >= memory[i].size()) continue;
    stage.pinned = nullptr;
    stage.pages = Buffer(memory[i].size(), Pages::kOwn);
    stage.pinned = memory_->pin({stage.pages.data(), stage.pages.bytes()});
  }
}

void PipeOnDevice::exchange(const Messages& out, const Messages& in) {
  if (!pipe_->enqueues()) return exchange_on_host(out, in);
  const Messages device_out{mirrors_.of(out.first), out.bytes, out.count};
  const Messages device_in{mirrors_.of(in.first), in.bytes, in.count};
  const auto before = Clock::now();
  pipe_->exchange(device_out, device_in);
  given_us_ += std::chrono::duration<double, std::micro>(Clock::now() - before).count();
}

void PipeOnDevice::exchange_on_host(const Messages& out, const Messages& in) {
  std::byte* const from = stage_of(out);
  std::byte* const into = stage_of(in);
  if (out.count > 0) {
    memory_->copy(from, mirrors_.of(out.first), out.bytes * out.count);
    memory_->wait();
  }
  pipe_->exchange({from, out.bytes, out.count}, {into, in.bytes, in.count});
  if (in.count == 0) return;
  memory_->copy(mirrors_.of(in.first), into, in.bytes * in.count);
  memory_->wait();
}

std::byte* PipeOnDevice::stage_of(const Messages& messages) const {
  if (messages.count == 0) return nullptr;
  const MirroredBuffers::Place place = mirrors_.find(messages.first);
  return stages_[place.buffer].pages.data() + place.offset;
}

void PipeOnDevice::finish() {
  if (!pipe_->enqueues()) return pipe_->finish();
  enqueue_us_.push_back(std::exchange(given_us_, 0));
  pipe_->finish();
}

std::optional<double> PipeOnDevice::take_enqueue_us() {
  if (enqueue_us_.empty()) return std::nullopt;
  return quantile(std::exchange(enqueue_us_, {}), 0.5);
}

}  // namespace kolo::bench
