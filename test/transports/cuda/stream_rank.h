// One rank with a stream on a device, as the stream clauses use it. Its peers are threads or
// processes, and the driver is a fake one or the installed one.
//
// Every wait has a deadline. Failures are thrown.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "test/transports/cuda/stream_kinds.h"
#include "transports/cuda/device.h"
#include "transports/rendezvous.h"

namespace kolo::test {

// The driver of a rank.
struct StreamMachine {
  std::shared_ptr<cuda::Driver> driver;
  // Allocates memory that a stream can access and no peer can open; the last owner frees it.
  std::function<std::shared_ptr<std::byte>(const std::shared_ptr<cuda::Device>& device,
                                           std::size_t bytes)>
      allocate_closed;
  std::string process = {};           // of CudaIpcSettings
  std::chrono::seconds patience{60};  // for each wait
};

StreamMachine fake_machine(const std::shared_ptr<FakeDriver>& driver, const std::string& process);
StreamMachine installed_machine();

class StreamRank {
 public:
  enum class Memory { kOpen, kClosed };  // kClosed: no peer can open it

  // Collective over the ranks that share the store.
  StreamRank(const StreamKind& kind, const StreamMachine& machine, int rank, int size,
             std::shared_ptr<Store> store);
  ~StreamRank();
  StreamRank(const StreamRank&) = delete;
  StreamRank& operator=(const StreamRank&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int peer() const { return 1 - rank_; }  // with two ranks
  Transport& transport() { return *transport_; }
  Channel& channel(int peer) { return transport_->channel(peer); }
  StreamChannel& stream(int peer) { return *channel(peer).stream(); }
  cuda::Stream on() const { return stream_; }

  // On all channels.
  void begin();
  void end();

  // Memory of the device with its fill pattern, until the end of the clause. A driver may wait for
  // streams before it allocates, so call this while the stream has no work.
  std::byte* memory(std::size_t bytes, int seed, Memory kind = Memory::kOpen);
  // Reads the memory beside the stream, without waiting for it.
  bool is_filled(const std::byte* memory, std::size_t bytes, int seed);

  // Work of the caller on the stream.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  // Each retries until the call is accepted.
  void commit(int to, const std::byte* data, std::size_t bytes);
  void view(int from, std::byte* into, std::size_t bytes);
  void send(int to, std::span<const std::byte> data);
  void receive(int from, std::span<std::byte> into);
  const std::byte* view_sent(int from, std::size_t bytes);

  // Makes progress until `is_done` holds.
  void until(const std::function<bool()>& is_done, std::string_view what);
  // Waits until the stream has done all enqueued work.
  void finish();
  // True if enqueued work of the stream is not done, although another stream of the device has
  // worked meanwhile.
  bool is_waiting();
  // The error that progress() finally throws.
  Error error_of_progress();
  // Barrier of all ranks, over the store. Makes progress until all have come, and not after that.
  void meet();

  // Destroys the stream, and continues on a new one.
  void change_stream();
  cuda::Stream make_stream();  // a second one; destroyed at the end of the clause

  void quiesce();
  void drop_transport();
  // Ends the clause on all ranks: no memory is freed while a rank's stream may still use it.
  void close();

 private:
  void wait_beside();

  const int rank_;
  const int size_;
  const std::shared_ptr<Store> store_;
  const StreamMachine machine_;
  const std::shared_ptr<cuda::Device> device_;
  const cuda::Stream side_;  // for fill patterns
  const cuda::Event side_event_;
  const cuda::Event event_;
  std::byte* const bounce_;        // pinned host memory
  std::byte* const bounce_there_;  // its address on the device
  std::byte* const side_memory_;   // of the device
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<cuda::Stream> other_streams_;
  cuda::Stream stream_ = nullptr;
  std::unique_ptr<Transport> transport_;
  bool is_open_ = true;  // until() makes progress
  int meetings_ = 0;
};

}  // namespace kolo::test
