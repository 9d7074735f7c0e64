// A channel's form on device streams where hosts carry the data.
//
// Slots and views lie in device memory of this rank; what send() and receive() are given is copied
// from and to where it lies. The stream itself only writes and waits for words in pinned memory:
//
//     reserve   wait until the slot's last piece was `copied`    commit, send   write `handed`
//     view      wait until it has `landed`                       release        write `taken`
//     receive   write `opened`, wait until it has `landed`       drain          wait for `copied`
//
// and the copies are on streams of the rank's own (staging.h), so that those out, those in and the
// caller's kernels are at work at once, and a stream that waits for its peer holds up none of them.
//
// Cost: about a microsecond of the host's time per word, and a few for each copy.
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
#include "transports/cuda/pinned_ring.h"
#include "transports/cuda/shared_block.h"
#include "transports/cuda/staging.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::cuda {

class StagedStream;

// What the staged channels of a rank share.
struct Staging {
  Staging(std::shared_ptr<Driver> driver, int number)
      : device(std::move(driver), number), out(device), in(device) {}

  // Operations that streams have been given and may not have done.
  std::size_t under_way() const;

  Device device;
  CopyStream out;
  CopyStream in;
  int rank = 0;
  std::size_t longest_segment_bytes = 0;
  std::size_t most_under_way = 0;
  std::function<std::shared_ptr<std::byte[]>(std::size_t bytes)> allocate;  // the host transport's
  std::vector<std::unique_ptr<StagedStream>> streams;  // of channels that have been asked for one
  bool is_closed = false;
};

class StagedStream final : public StreamChannel {
 public:
  StagedStream(Staging& staging, Channel& host);
  ~StagedStream() override;

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

  // --- for the channel ---

  // What the host's own form leaves room for: see Outgoing::pump, Incoming::pump. Errors as those
  // have them, the same again afterwards as long as streams wait for what will not come.
  bool pump(bool may_send, bool may_receive);  // true where something moved

  bool is_unused() const { return !used_; }
  bool is_out_idle() const { return !used_ || used_->out.is_idle(); }
  bool is_in_idle() const { return !used_ || used_->in.is_idle(); }
  bool has_sent_all_handed() const { return !used_ || used_->out.has_sent_all_handed(); }
  bool watches_device() const;
  std::size_t under_way() const;

  // --- for the end ---

  // The last batch ends here.
  void close() noexcept { batches_.close(); }
  // Frees streams from waiting; to be repeated until has_finished().
  void free_streams() noexcept;
  bool has_finished() const noexcept { return batches_.has_finished(); }

 private:
  // From when on the form has been used.
  struct Used {
    Used(Staging& staging, std::size_t segment_bytes);

    PinnedMemory pinned;
    StagingWords& words;
    Outgoing out;
    Incoming in;
  };

  // A ring of slots on the device: which piece was the last in each, by its number from 1 on.
  struct Slots {
    std::byte* memory = nullptr;
    std::array<std::uint64_t, kMostSlots> ends{};
    std::uint64_t next = 0;
  };

  template <typename Body>
  auto on_device(const Body& body);
  [[noreturn]] void die(const Error& error, const char* doing);
  void require_open() const;
  void require_batch(void* stream);
  bool is_full() const { return staging_.under_way() >= staging_.most_under_way; }
  std::byte* slot(Slots& slots);
  void require_known(const void* memory, std::size_t bytes, const char* operation);
  void write(const std::atomic<std::uint64_t>& word, std::uint64_t value, void* stream);
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t value, void* stream);
  Address address_of(const std::atomic<std::uint64_t>& word) const;
  void receive_into(void* stream, std::span<std::byte> into);
  std::byte* landing(std::size_t bytes);

  Staging& staging_;
  Channel& host_;
  Capabilities capabilities_;
  std::uint64_t slots_ = 0;
  Batches batches_;
  std::optional<Used> used_;

  Slots out_slots_;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  std::uint64_t lent_ = 0;  // pieces up to the last one of send()

  Slots in_slots_;
  const std::byte* viewed_ = nullptr;
  std::uint64_t viewed_end_ = 0;
  std::vector<std::byte*> landings_;  // device memory for long segments, the last one in use
  std::size_t landing_bytes_ = 0;

  std::optional<Error> dead_;
};

}  // namespace kolo::cuda
