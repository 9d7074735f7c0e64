// A library measured on device memory.
//
// The pass runner fills and checks host buffers. Each has a mirror on the device: inputs are copied
// there before the clock starts, and results are fetched after it has stopped. A library that
// enqueues is timed from the call until the host sees the end of the stream; the call alone is
// recorded separately (enqueue_us). A library that knows only host memory does what its users do:
// copy down, run, copy up.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/device/memory.h"
#include "bench/device/mirrored_buffers.h"
#include "bench/measure/library.h"

namespace kolo::bench {

class LibraryOnDevice final : public Library {
 public:
  // `rank` and `size` determine this rank's chunks.
  LibraryOnDevice(std::unique_ptr<Library> library, std::shared_ptr<DeviceMemory> memory, int rank,
                  int size);

  std::string name() const override { return library_->name(); }
  std::string transport() const override { return library_->transport(); }
  std::string carrier() const override { return library_->carrier(); }
  std::string algorithm(const Problem& problem) const override {
    return library_->algorithm(problem);
  }
  std::string objection(const Problem& problem) const override;
  std::string version() const override { return library_->version(); }
  std::string device() const override { return memory_->describe(); }
  const void* result(const Problem& problem, const void* in, const void* out) const override {
    return library_->result(problem, in, out);
  }
  const Communicator* communicator() const override { return library_->communicator(); }
  void write_records() override { library_->write_records(); }

  void place(std::span<std::byte> data, std::span<std::byte> input) override;
  void bring(const Problem& problem) override;
  void fetch(const Problem& problem) override;
  void run(const Problem& problem, const void* in, void* out) override;
  std::optional<double> take_enqueue_us() override;

 private:
  void run_on_host(const Problem& problem, const void* in, void* out);

  std::shared_ptr<DeviceMemory> memory_;
  int rank_;
  int size_;
  MirroredBuffers mirrors_;
  std::unique_ptr<Library> library_;  // destroyed first: its peers may have mirrors open
  std::vector<double> enqueue_us_;
};

// Bytes that a rank reads from its input and writes to its output.
struct Moved {
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
};
Moved moved_by(const Problem& problem, int rank, int size);

}  // namespace kolo::bench
