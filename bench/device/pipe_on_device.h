// Messages of two ranks measured on a device's memory, as on_device.h has collectives there.
//
// What the game fills and checks is the host's memory, brought to its twins before the clock starts
// and fetched after it has stopped. In between a pipe that enqueues is timed with its streams'
// work, until the host has seen their end; what it took to give a sample's work there is counted
// apart. A pipe that knows the host's memory alone does what its users do: copies down what it
// sends, to pages that are pinned, and up what it has received.
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
  // Of a pipe that works on the host's memory, beside a twin.
  struct Stage {
    Buffer pages;
    std::shared_ptr<void> pinned;
  };

  std::byte* stage_of(const Messages& messages) const;
  void exchange_on_host(const Messages& out, const Messages& in);

  std::shared_ptr<DeviceMemory> memory_;
  MirroredBuffers mirrors_;
  std::vector<Stage> stages_;
  double given_us_ = 0;  // of this sample
  std::vector<double> enqueue_us_;
  std::unique_ptr<Pipe> pipe_;  // ends first: its peer may have twins open
};

}  // namespace kolo::bench
