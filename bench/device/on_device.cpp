#include "bench/device/on_device.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/statistics.h"
#include "transports/check.h"

namespace kolo::bench {

using Microseconds = std::chrono::duration<double, std::micro>;

Moved moved_by(const Problem& problem, int rank, int size) {
  const std::size_t element = element_bytes(problem.type);
  const std::size_t all = problem.count * element;
  const std::size_t chunk = chunk_count(problem.count, size, rank) * element;
  const bool is_root = rank == kRoot;
  switch (problem.collective) {
    case Collective::kReduceScatter:
      return {all, chunk};
    case Collective::kAllGather:
      return {chunk, all};
    case Collective::kBroadcast:
      return is_root ? Moved{all, 0} : Moved{0, all};
    case Collective::kReduce:
      return {all, is_root ? all : 0};
    case Collective::kGather:
      return {chunk, is_root ? all : 0};
    case Collective::kScatter:
      return {is_root ? all : 0, chunk};
    case Collective::kExclusiveScan:
      return {all, rank == 0 ? 0 : all};
    case Collective::kBarrier:
      return {};
    default:
      return {all, all};
  }
}

OnDevice::OnDevice(std::unique_ptr<Library> library, std::shared_ptr<DeviceMemory> memory, int rank,
                   int size)
    : library_(std::move(library)), memory_(std::move(memory)), rank_(rank), size_(size) {}

std::string OnDevice::objection(const Problem& problem) const {
  if (library_->is_elsewhere()) return "its processes have no memory of devices";
  return library_->objection(problem);
}

void OnDevice::place(std::span<std::byte> data, std::span<std::byte> input) {
  place(data_, data);
  place(input_, input);
}

void OnDevice::place(Twin& twin, std::span<std::byte> host) {
  if (twin.host.data() == host.data() && twin.host.size() == host.size()) return;
  twin = {};
  twin.host = host;
  if (host.empty()) return;
  twin.pinned = memory_->pin(host);
  twin.device = memory_->allocate(host.size());
}

void OnDevice::bring(const Problem& problem) {
  copy_all(data_, problem, true);
  copy_all(input_, problem, true);
  memory_->wait();
}

void OnDevice::fetch(const Problem& problem) {
  if (!library_->enqueues()) return;  // it has left its result here as well
  copy_all(data_, problem, false);
  copy_all(input_, problem, false);
  memory_->wait();
}

void OnDevice::copy_all(const Twin& twin, const Problem& problem, bool to_device) {
  const std::size_t bytes = std::min(twin.host.size(), problem.count * element_bytes(problem.type));
  if (bytes == 0) return;
  std::byte* const device = twin.device.get();
  std::byte* const host = twin.host.data();
  memory_->copy(to_device ? device : host, to_device ? host : device, bytes);
}

std::byte* OnDevice::twin_of(const void* pointer) const {
  if (pointer == nullptr) return nullptr;
  const auto* const place = static_cast<const std::byte*>(pointer);
  for (const Twin* twin : {&data_, &input_}) {
    const auto offset = place - twin->host.data();
    const bool is_in = !twin->host.empty() && place >= twin->host.data() &&
                       place < twin->host.data() + twin->host.size();
    if (is_in) return twin->device.get() + offset;
  }
  check(false, "a buffer that was not placed has no twin on the device");
  return nullptr;
}

void OnDevice::run(const Problem& problem, const void* in, void* out) {
  if (!library_->enqueues()) return run_on_host(problem, in, out);
  const void* const device_in = twin_of(in);
  void* const device_out = twin_of(out);
  const auto before = Clock::now();
  library_->run(problem, device_in, device_out);
  enqueue_us_.push_back(Microseconds(Clock::now() - before).count());
  memory_->wait();
}

void OnDevice::run_on_host(const Problem& problem, const void* in, void* out) {
  const Moved moved = moved_by(problem, rank_, size_);
  const bool is_broadcast = problem.collective == Collective::kBroadcast;
  void* const from = is_broadcast ? out : const_cast<void*>(in);
  if (from != nullptr && moved.in_bytes > 0) {
    memory_->copy(from, twin_of(from), moved.in_bytes);
    memory_->wait();
  }
  library_->run(problem, in, out);
  const void* const result = library_->result(problem, in, out);
  if (out == nullptr || moved.out_bytes == 0) return;
  memory_->copy(twin_of(out), result, moved.out_bytes);
  memory_->wait();
}

std::optional<double> OnDevice::take_enqueue_us() {
  if (enqueue_us_.empty()) return std::nullopt;
  return quantile(std::exchange(enqueue_us_, {}), 0.5);
}

}  // namespace kolo::bench
