#include "bench/device/library_on_device.h"

#include <array>
#include <chrono>
#include <utility>

#include "bench/measure/statistics.h"

namespace kolo::bench {

using Microseconds = std::chrono::duration<double, std::micro>;

namespace {

// For a parameter server's collectives, in which a rank serves, works, or does both.
Moved moved_with_servers(const Problem& problem, int rank, int size) {
  const std::size_t element = element_bytes(problem.type);
  const int servers = problem.servers > 0 ? problem.servers : size;
  const std::size_t all = problem.servers > rank ? 0 : problem.count * element;
  const std::size_t served =
      rank < servers ? chunk_count(problem.count, servers, rank) * element : 0;
  switch (problem.collective) {
    case Collective::kPush:
      return {all, served};
    case Collective::kPull:
      return {served, all};
    default:
      return {all, all};
  }
}

}  // namespace

Moved moved_by(const Problem& problem, int rank, int size) {
  if (has_servers(problem.collective)) return moved_with_servers(problem, rank, size);
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

LibraryOnDevice::LibraryOnDevice(std::unique_ptr<Library> library,
                                 std::shared_ptr<DeviceMemory> memory, int rank, int size)
    : memory_(std::move(memory)),
      rank_(rank),
      size_(size),
      mirrors_(memory_, MirroredBuffers::Hosts::kPinned),
      library_(std::move(library)) {}

std::string LibraryOnDevice::objection(const Problem& problem) const {
  if (library_->runs_in_workers()) return "its processes cannot use device memory";
  return library_->objection(problem);
}

void LibraryOnDevice::place(std::span<std::byte> data, std::span<std::byte> input) {
  const std::array buffers{data, input};
  mirrors_.place(buffers);
}

void LibraryOnDevice::bring(const Problem& problem) {
  mirrors_.bring(problem.count * element_bytes(problem.type));
}

void LibraryOnDevice::fetch(const Problem& problem) {
  if (!library_->enqueues()) return;  // the result is in host memory already
  mirrors_.fetch(problem.count * element_bytes(problem.type));
}

void LibraryOnDevice::run(const Problem& problem, const void* in, void* out) {
  if (!library_->enqueues()) return run_on_host(problem, in, out);
  const void* const device_in = mirrors_.of(in);
  void* const device_out = mirrors_.of(out);
  const auto before = Clock::now();
  library_->run(problem, device_in, device_out);
  enqueue_us_.push_back(Microseconds(Clock::now() - before).count());
  memory_->wait();
}

void LibraryOnDevice::run_on_host(const Problem& problem, const void* in, void* out) {
  const Moved moved = moved_by(problem, rank_, size_);
  const bool is_broadcast = problem.collective == Collective::kBroadcast;
  void* const from = is_broadcast ? out : const_cast<void*>(in);
  if (from != nullptr && moved.in_bytes > 0) {
    memory_->copy(from, mirrors_.of(from), moved.in_bytes);
    memory_->wait();
  }
  library_->run(problem, in, out);
  const void* const result = library_->result(problem, in, out);
  if (out == nullptr || moved.out_bytes == 0) return;
  memory_->copy(mirrors_.of(out), result, moved.out_bytes);
  memory_->wait();
}

std::optional<double> LibraryOnDevice::take_enqueue_us() {
  if (enqueue_us_.empty()) return std::nullopt;
  return quantile(std::exchange(enqueue_us_, {}), 0.5);
}

}  // namespace kolo::bench
