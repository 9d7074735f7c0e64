// One device of the driver's: its memory, copies, words and events, with every failure in words.
//
// What throws throws Error kSystem, or kUnavailable where the machine cannot do it at all:
//
//   cuMemAlloc_v2 of 64.0 MiB on device 0 (NVIDIA H200): CUDA_ERROR_OUT_OF_MEMORY (out of memory);
//   12.0 MiB of 139.8 GiB are free: ...
//
// Threading: all calls from any thread; each makes the device's primary context current for as long
// as it takes, and the caller's again afterwards. Meanwhile the thread may do anything beside a
// capture into a graph, its own or another thread's. Lifetime: it keeps the primary context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/cuda/driver.h"

namespace kolo::cuda {

struct DriverSettings {
  // cuStreamWaitValue64_v2 needs no module parameter from here on.
  int oldest_version = 12000;
  // Of the runtime that kernels were built with, 13000 for 13.0: a driver of an older major version
  // cannot run them. 0: there are none.
  int runtime_version = 0;
};

// Why no device can be used here: no driver, one that is too old, no device; empty where one can.
std::string why_unusable(Driver& driver, const DriverSettings& settings = {});

// "GPU-..." as nvidia-smi says it. Error kSystem.
std::string uuid_of(Driver& driver, int device);

// How many there are, 0 where none can be used.
int count_devices(Driver& driver);

// The device whose context is current in this thread; -1 where none is.
int current_device(Driver& driver);

// What is known of a pointer.
struct Pointer {
  // Host memory that no driver call has seen is kHost, as is all that the driver does not know.
  enum class Kind { kHost, kPinned, kManaged, kDevice };
  Kind kind = Kind::kHost;
  int device = -1;  // where kDevice or kManaged
  // Of an allocation, so not where kHost or kPinned:
  std::uint64_t buffer = 0;  // its number in this process, never used again
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::string why_unexported;  // empty: other processes can open it
};

class Device {
 public:
  // Error kUnavailable where there is no such device, or it cannot wait for words.
  Device(std::shared_ptr<Driver> driver, int number);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  const std::string& uuid() const { return uuid_; }          // "GPU-..." as nvidia-smi says it
  const std::string& describe() const { return describe_; }  // "device 0 (NVIDIA H200)"

  // What its memory does at best, reads and writes together; 0 where the driver does not say.
  double memory_GBps() const;

  // The number in this process of the device with this uuid; -1 where it is not visible.
  int find(const std::string& other_uuid) const;
  bool can_reach(int other) const;
  // For memory of another device of this process.
  void enable_peer(const Device& peer) const;

  std::byte* allocate(std::size_t bytes) const;
  void free(std::byte* memory) const noexcept;
  std::byte* allocate_host(std::size_t bytes) const;
  void free_host(std::byte* memory) const noexcept;
  // Where devices see such memory.
  std::byte* seen_by_device(std::byte* memory) const;

  // Makes host memory visible to devices. Returns where they see it.
  Address register_host(std::span<std::byte> memory) const;
  void unregister_host(std::byte* memory) const noexcept;

  Pointer look_at(const void* pointer) const;
  // Whether the driver knows it: a stream can reach it.
  bool is_known(const void* pointer) const;
  // The number of the allocation that `pointer` is in now; 0 where it is in none, or the host's.
  std::uint64_t buffer_at(const void* pointer) const;
  // The same by one question; of the host's memory it may have a number as well.
  std::uint64_t number_at(const void* pointer) const;

  IpcHandle export_memory(const std::byte* base) const;
  // Until it is closed. `bytes`: what must be there. Error kProtocol, and nothing stays open, where
  // the driver has less.
  std::byte* open(const IpcHandle& handle, std::size_t bytes, const std::string& whose) const;
  void close(std::byte* mapped) const noexcept;
  // For work (openings.h). Null where it must be asked for again later, when other work is done.
  struct Opened {
    std::byte* mapped = nullptr;
    std::uint64_t ticket = 0;
  };
  Opened open_for(IpcMappings::Use use, const IpcHandle& handle, std::size_t bytes,
                  const std::string& whose) const;
  // False where it is open no more.
  bool use(std::uint64_t ticket, std::uint64_t work) const;
  void close(std::uint64_t ticket) const noexcept;

  // --- on a stream ---

  // One that waits for no other. A device has few queues for its streams, and what shares one with
  // a stream that waits for a word would wait as well, maybe for ever where it is to write that
  // word. Urgent streams have queues of their own.
  Stream make_stream() const;
  void destroy_stream(Stream stream) const noexcept;

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) const;
  void wait_until_at_least(Address word, std::uint64_t value, Stream stream) const;
  // After all that was enqueued before, for whoever sees the word.
  void write(Address word, std::uint64_t value, Stream stream) const;
  // The low half of a word, likewise: who else writes its high half keeps that.
  void write_low(Address word, std::uint32_t value, Stream stream) const;

  // The number of the capture into a graph that the stream is in; 0: in none.
  std::uint64_t capture_of(Stream stream) const;
  // While it lives this thread has the context and goes beside captures, as above: for calls of the
  // runtime's that are no Device's, and so that many of a Device's, or another's of the same
  // device, need not each ask for both. A stream's capture is asked for once meanwhile.
  class Entered;

  Event make_event() const;
  void destroy_event(Event event) const noexcept;
  void record(Event event, Stream stream) const;
  bool has_come(Event event) const;  // Error kSystem where what was before it failed
  bool is_done(Event event) const;   // also where the driver has lost it: nothing more will happen
  void wait_for(Event event, Stream stream) const;

 private:
  class BesideCapture;

  // What this thread has it by; null: it has not.
  Entered* entered() const;
  template <typename Body>
  void clean_up(const Body& body) const noexcept;
  // 0: the driver does not know it.
  std::uint32_t type_of(Address address) const;
  std::string why_unexported(Address address) const;
  // From there to the end of the allocation.
  std::size_t bytes_from(Address place) const;

  [[noreturn]] void fail(int code, const std::string& call, const std::string& advice = "") const;
  [[noreturn]] void fail_to_open(int code, const std::string& whose) const;
  void check_call(int code, const char* call) const {
    if (code != kSuccess) [[unlikely]]
      fail(code, call);
  }
  int count_visible() const;
  std::string free_memory() const;

  const std::shared_ptr<Driver> driver_;
  const int number_;
  Context context_ = nullptr;
  std::string name_;
  std::string uuid_;
  std::string describe_;
};

class Device::Entered {
 public:
  explicit Entered(const Device& device);  // Error kSystem
  ~Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  friend class Device;

  const Device& device_;
  Entered* const outer_;  // of this thread
  int mode_;
  bool has_entered_ = false;  // and not what is around it
  Stream asked_ = nullptr;    // what that is captured by is known, once it has been asked for
  bool has_asked_ = false;
  std::uint64_t captured_by_ = 0;
};

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", the driver's own words.
std::string words_for(Driver& driver, int code);

// What to do about a code, whatever call met it: "; was the stream destroyed, ...", or nothing.
std::string advice_for(int code);

// "64.0 MiB".
std::string in_units(std::size_t bytes);

}  // namespace kolo::cuda
