// CUDA device: memory, copies, words and events, with an error text for every failure.
//
// Failures throw Error kSystem, or kUnavailable if the machine lacks the ability:
//
//     cuMemAlloc_v2 of 64.0 MiB on device 0 (NVIDIA H200): CUDA_ERROR_OUT_OF_MEMORY (out of
//     memory); 12.0 MiB of 139.8 GiB are free: ...
//
// Threading: all calls are safe from any thread. Each makes the device's primary context current,
// and restores the caller's context at its end. In between, the thread's capture mode is relaxed:
// all calls are allowed while this or another thread captures a graph. Lifetime: retains the
// primary context.
//
// The driver's frees, unregistrations and closings may wait for all streams of the context. They
// are put off while a stream of this process may wait for a peer (deferred_frees.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/cuda/driver.h"

namespace kolo::inline v0::cuda {

struct DriverSettings {
  // From this version on streams can wait for words without a module parameter.
  int oldest_version = 12000;
  // Version of the runtime that kernels were built with, 13000 for 13.0: a driver of an older major
  // version cannot run them. 0: no kernels.
  int runtime_version = 0;
};

// Why no device can be used here: no driver, a driver that is too old, or no device. Empty if one
// can.
std::string why_unusable(Driver& driver, const DriverSettings& settings = {});

// "GPU-...", as in nvidia-smi. Error kSystem.
std::string uuid_of(Driver& driver, int device);

// Number of devices; 0 if none can be used.
int count_devices(Driver& driver);

// The device whose context is current in this thread; -1 where none is.
int current_device(Driver& driver);

// Properties of a pointer.
struct Pointer {
  // Memory that the driver does not know is kHost.
  enum class Kind { kHost, kPinned, kManaged, kDevice };
  Kind kind = Kind::kHost;
  int device = -1;  // for kDevice and kManaged
  // The allocation; not set for kHost and kPinned:
  std::uint64_t buffer = 0;  // its number in this process, never used again
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::string why_unexported;  // empty if other processes can open it
};

class Device {
 public:
  // Error kUnavailable if there is no such device, or its streams cannot wait for words.
  Device(std::shared_ptr<Driver> driver, int number);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  const std::string& uuid() const { return uuid_; }          // "GPU-...", as in nvidia-smi
  const std::string& describe() const { return describe_; }  // "device 0 (NVIDIA H200)"

  // Peak bandwidth of its memory, reads and writes together; 0 if the driver does not report it.
  double memory_GBps() const;

  // Number in this process of the device with this uuid; -1 if it is not visible.
  int find(const std::string& other_uuid) const;
  bool can_reach(int other) const;
  // Enables access to memory of another device of this process.
  void enable_peer(const Device& peer) const;

  // May wait for all streams of the context.
  std::byte* allocate(std::size_t bytes) const;
  // For work on `stream` and after it; waits for no stream. Other processes cannot open it.
  std::byte* allocate(std::size_t bytes, Stream stream) const;
  void free(std::byte* memory) const noexcept;
  std::byte* allocate_host(std::size_t bytes) const;
  void free_host(std::byte* memory) const noexcept;
  // Device address of such memory.
  std::byte* seen_by_device(std::byte* memory) const;

  // Registers host memory with devices. Returns its device address.
  Address register_host(std::span<std::byte> memory) const;
  // `owner`: keeps the memory until it is unregistered.
  void unregister_host(std::byte* memory,
                       std::shared_ptr<const void> owner = nullptr) const noexcept;

  Pointer look_at(const void* pointer) const;
  // True if the driver knows the memory, so that a stream can access it.
  bool is_known(const void* pointer) const;
  // Number of the allocation that `pointer` is in now; 0 for host memory and for no allocation.
  std::uint64_t buffer_at(const void* pointer) const;
  // As buffer_at(), with one driver call. May also return a number for host memory.
  std::uint64_t number_at(const void* pointer) const;

  IpcHandle export_memory(const std::byte* base) const;
  // Maps memory of another process until it is closed. `bytes`: the expected size. Error kProtocol,
  // with nothing left open, if the driver reports less.
  std::byte* open(const IpcHandle& handle, std::size_t bytes, const std::string& whose) const;
  void close(std::byte* mapped) const noexcept;
  // Runs `then` after all frees and closings so far.
  void after_frees(std::function<void()> then) const noexcept;
  DeferredFrees& frees() const { return driver_->frees(); }
  // As open(), for numbered work (ipc_mappings.h). Null `mapped` if the call must be repeated
  // later, when other work is done, or another mapping is closed.
  struct Opened {
    std::byte* mapped = nullptr;
    std::uint64_t ticket = 0;
  };
  Opened open_for(IpcMappings::Use use, const IpcHandle& handle, std::size_t bytes,
                  const std::string& whose) const;
  // False if the mapping has been closed.
  bool use(std::uint64_t ticket, std::uint64_t work) const;
  void close(std::uint64_t ticket) const noexcept;

  // --- operations on a stream ---

  // Creates a stream that waits for no other. A device has few hardware queues for its streams. A
  // stream that shares a queue with one waiting for a word would wait too, for ever if it is to
  // write that word. High-priority streams have queues of their own.
  Stream make_stream() const;
  void destroy_stream(Stream stream) const noexcept;

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) const;
  // At most kMostWordOperations, one after another, with one driver call.
  void run(std::span<WordOperation> operations, Stream stream) const;
  void run(WordOperation operation, Stream stream) const { run({&operation, 1}, stream); }

  // Number of the graph capture that the stream is part of; 0: none.
  std::uint64_t capture_of(Stream stream) const;
  // While it lives, the context is current in this thread and its capture mode is relaxed. Use it
  // for calls of the CUDA runtime, or to avoid the set-up in each of several calls of a Device (or
  // of another Device of the same device). A stream's capture is queried once meanwhile.
  class Entered;

  Event make_event() const;
  void destroy_event(Event event) const noexcept;
  void record(Event event, Stream stream) const;
  bool has_come(Event event) const;  // Error kSystem if the work before it failed
  // True if the work before it is done, or the context is lost, which ends all work. Any other
  // error does not end the work, so its memory is still in use.
  bool is_done(Event event) const noexcept;
  void wait_for(Event event, Stream stream) const;

 private:
  class BesideCapture;

  // The Entered object of this thread for this context; null if there is none.
  Entered* entered() const;
  static Entered* entered(const Driver& driver, Context context);
  template <typename Body>
  static void clean_up(Driver& driver, Context context, const Body& body) noexcept;
  template <typename Body>
  void clean_up(const Body& body) const noexcept;
  void put_off(std::function<void(Driver&)> call) const noexcept;
  void put_off_closing(Address mapped) const noexcept;
  // 0 if the driver does not know the address.
  std::uint32_t type_of(Address address) const;
  std::string why_unexported(Address address) const;
  // Bytes from `place` to the end of its allocation.
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
  std::shared_ptr<void> context_;  // retained until its last user has gone
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
  bool has_entered_ = false;  // this object changed the context, not an outer one
  Stream asked_ = nullptr;    // stream whose capture is cached, if has_asked_
  bool has_asked_ = false;
  std::uint64_t captured_by_ = 0;
};

// The driver's own text: "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string words_for(Driver& driver, int code);

// Advice for a code, for any call: "; was the stream destroyed, ...", or empty.
std::string advice_for(int code);

// Size as text: "64.0 MiB".
std::string in_units(std::size_t bytes);

}  // namespace kolo::inline v0::cuda
