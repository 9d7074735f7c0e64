// Messages between two ranks on device memory, as library_on_device.h for collectives.
//
// The pass fills and checks host memory, which is brought to its mirrors before the clock starts
// and fetched after it has stopped. A pipe that enqueues is timed until the host sees the end of
// its streams; the time to enqueue a sample is recorded separately. A pipe that knows only host
// memory does what its users do: it copies sent data down to pinned pages, and received data up.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/device/memory.h"
#include "bench/device/mirrored_buffers.h"
#include "bench/measure/buffer.h"
#include "bench/p2p/pipe.h"

namespace kolo::bench {

class PipeOnDevice final : public Pipe {
 public:
  PipeOnDevice(std::unique_ptr<Pipe> pipe, std::shared_ptr<DeviceMemory> memory);

  std::string library() const override { return pipe_->library(); }
  std::string level() const override { return pipe_->level(); }
  std::string transport() const override { return pipe_->transport(); }
  std::string carrier() const override { return pipe_->carrier(); }
  std::string version() const override { return pipe_->version(); }
  std::string objection() const override;
  std::string device() const override { return memory_->describe(); }
  bool needs_calls() const override { return pipe_->needs_calls(); }
  void get_on() override { pipe_->get_on(); }
  void write_records() override { pipe_->write_records(); }

  void place(std::span<const std::span<std::byte>> memory) override;
  void bring() override { mirrors_.bring(); }
  void fetch() override { mirrors_.fetch(); }
  void exchange(const Messages& out, const Messages& in) override;
  void finish() override;
  std::optional<double> take_enqueue_us() override;

 private:
  // Pinned pages beside a mirror, for pipes that work on host memory.
  struct Stage {
    Buffer pages;
    std::shared_ptr<void> pinned;
  };

  std::byte* stage_of(const Messages& messages) const;
  void exchange_on_host(const Messages& out, const Messages& in);

  std::shared_ptr<DeviceMemory> memory_;
  MirroredBuffers mirrors_;
  std::vector<Stage> stages_;
  double given_us_ = 0;  // in this sample
  std::vector<double> enqueue_us_;
  std::unique_ptr<Pipe> pipe_;  // destroyed first: its peer may have mirrors open
};

}  // namespace kolo::bench
