// Channel on device streams where hosts carry the data (staging through pinned memory).
//
// Slots and views are in device memory of this rank. Buffers of send() and receive() are copied
// from and to their own place. The caller's stream only writes and waits for words in pinned
// memory:
//
//     reserve   wait until the slot's last piece was `copied`    commit, send   write `handed`
//     view      wait until it has `landed`                       release        write `taken`
//     receive   write `opened`, wait until it has `landed`       drain          wait for `copied`
//
// The copies run on separate streams of the rank (staging.h). So outgoing copies, incoming copies
// and the caller's kernels run in parallel, and a stream that waits for its peer delays none of
// them.
//
// Cost: about a microsecond of host time per word, and a few microseconds per copy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "transports/cuda/batches.h"
#include "transports/cuda/copy_stream.h"
#include "transports/cuda/device.h"
#include "transports/cuda/device_memory.h"
#include "transports/cuda/pinned_ring.h"
#include "transports/cuda/shared_block.h"
#include "transports/cuda/staging.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::inline v0::cuda {

class StagedStream;

// State that the staged channels of a rank share.
struct Staging {
  Staging(std::shared_ptr<Driver> driver, int number)
      : device(std::move(driver), number), out(device), in(device) {}

  // Number of operations that streams have been given and may not have done.
  std::size_t under_way() const;

  Device device;
  CopyStream out;
  CopyStream in;
  int rank = 0;
  std::size_t longest_segment_bytes = 0;
  std::size_t most_under_way = 0;
  std::function<std::shared_ptr<std::byte[]>(std::size_t bytes)> allocate;  // of the host transport
  std::vector<std::unique_ptr<StagedStream>> streams;  // of channels whose stream() was called
  bool is_closed = false;
};

class StagedStream final : public StreamChannel {
 public:
  // Allocates and registers all memory for it, which may wait for all streams of the device: call
  // it before this process gives work to them. Error kSystem.
  StagedStream(Staging& staging, Channel& host);

  const Capabilities& capabilities() const override { return capabilities_; }

  void begin(void* stream) override;
  void end(void* stream) override;
  std::byte* reserve(void* stream, std::size_t bytes) override;
  void commit(void* stream, unsigned flags) override;
  const std::byte* view(void* stream, std::size_t bytes) override;
  void release(void* stream) override;
  bool is_one_with_host() const override { return true; }
  bool can_send() const override { return true; }
  bool send(void* stream, std::span<const std::byte> data, unsigned flags) override;
  bool receive(void* stream, std::span<std::byte> into, unsigned flags) override;
  const std::byte* view_sent(void* stream, std::size_t bytes) override;
  void drain(void* stream) override;

  // --- for the staged channel ---

  // Moves data as far as the channel's host calls allow: see Outgoing::pump, Incoming::pump. Throws
  // their errors, and repeats them while streams wait for data that will never come.
  bool pump(bool may_send, bool may_receive);  // true if something moved

  bool is_unused() const { return !is_used_; }
  bool is_out_idle() const { return memory_.out.is_idle(); }
  bool is_in_idle() const { return memory_.in.is_idle(); }
  bool has_sent_all_handed() const { return memory_.out.has_sent_all_handed(); }
  bool watches_device() const;
  std::size_t under_way() const;

  // --- end of the channel ---

  // Ends the last batch.
  void close() noexcept { batches_.close(); }
  // Releases waiting streams. Repeat it until has_finished().
  void free_streams() noexcept;
  bool has_finished() const noexcept { return batches_.has_finished(); }

 private:
  struct Memory {
    Memory(Staging& staging, std::size_t segment_bytes);

    PinnedMemory pinned;
    StagingWords& words;
    Outgoing out;
    Incoming in;
  };

  // Ring of slots on the device, with the number of the last piece in each, counted from 1.
  struct Slots {
    DeviceMemory memory;
    std::array<std::uint64_t, kMostSlots> ends{};
    std::uint64_t next = 0;
  };

  template <typename Body>
  auto on_device(const Body& body);
  [[noreturn]] void die(const Error& error, const char* doing);
  void require_open() const;
  void require_batch(void* stream);
  bool is_full() const { return staging_.under_way() >= staging_.most_under_way; }
  std::byte* slot(const Slots& slots) const;
  void require_known(const void* memory, std::size_t bytes, const char* operation);
  void write(const std::atomic<std::uint64_t>& word, std::uint64_t value, void* stream);
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t value, void* stream);
  Address address_of(const std::atomic<std::uint64_t>& word) const;
  void receive_into(void* stream, std::span<std::byte> into);

  Staging& staging_;
  Channel& host_;
  const Capabilities capabilities_;
  const std::uint64_t slots_;
  Batches batches_;
  Memory memory_;
  bool is_used_ = false;

  Slots out_slots_;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  std::uint64_t lent_ = 0;  // last piece of a send()

  Slots in_slots_;
  const std::byte* viewed_ = nullptr;
  std::uint64_t viewed_end_ = 0;
  Landings landings_;

  std::optional<Error> dead_;
};

}  // namespace kolo::inline v0::cuda
