// Interface to the CUDA driver: the functions that kolo calls, with the driver's own meaning.
//
// Every call returns the driver's result code, 0 for success. The implementation is the installed
// library (library.h) or, in tests, a simulated machine. Device (device.h) adds error texts,
// contexts and clean-up. Safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transports/cuda/deferred_frees.h"
#include "transports/cuda/driver_values.h"
#include "transports/cuda/ipc_mappings.h"

namespace kolo::inline v0::cuda {

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // Why no function below may be called: the library or some of its functions are missing. Empty if
  // all may be called.
  virtual std::string why_absent() const = 0;

  virtual int init() = 0;
  virtual int version(int* version) = 0;  // 13000 for 13.0
  // Both return null if the driver does not know the code.
  virtual const char* error_name(int code) = 0;
  virtual const char* error_text(int code) = 0;

  virtual int device_count(int* count) = 0;
  virtual int device_name(char* name, int bytes, int device) = 0;
  virtual int device_uuid(std::array<std::uint8_t, 16>* uuid, int device) = 0;
  virtual int device_attribute(int* value, DeviceAttribute attribute, int device) = 0;
  virtual int can_access_peer(int* can, int device, int peer) = 0;

  virtual int retain_context(Context* context, int device) = 0;
  virtual int release_context(int device) = 0;
  virtual int push_context(Context context) = 0;
  virtual int pop_context(Context* context) = 0;
  virtual int current_device(int* device) = 0;  // kInvalidContext if none is current
  virtual int enable_peer_access(Context peer) = 0;

  // The functions below need a current context.
  virtual int allocate(Address* memory, std::size_t bytes) = 0;
  // In the order of the stream, from the device's pool. free() of it waits for no stream.
  virtual int allocate_async(Address* memory, std::size_t bytes, Stream stream) = 0;
  virtual int free(Address memory) = 0;
  virtual int memory_info(std::size_t* free, std::size_t* total) = 0;
  virtual int allocate_host(void** memory, std::size_t bytes) = 0;
  virtual int free_host(void* memory) = 0;
  virtual int register_host(void* memory, std::size_t bytes, unsigned flags) = 0;
  virtual int unregister_host(void* memory) = 0;
  virtual int host_address(Address* address, void* memory) = 0;
  virtual int pointer_attribute(void* value, PointerAttribute attribute, Address pointer) = 0;

  virtual int ipc_handle(IpcHandle* handle, Address memory) = 0;
  virtual int ipc_open(Address* memory, const IpcHandle& handle, unsigned flags) = 0;
  virtual int ipc_close(Address memory) = 0;

  virtual int create_stream(Stream* stream, unsigned flags, int priority) = 0;
  virtual int destroy_stream(Stream stream) = 0;  // its pending work is still done
  virtual int copy(Address to, Address from, std::size_t bytes, Stream stream) = 0;
  // At most kMostWordOperations, one after another.
  virtual int word_operations(Stream stream, std::span<WordOperation> operations) = 0;
  // Status 0: the stream is not being captured. `number` identifies the capture; all streams that
  // have joined it share the number, and it is never used again.
  virtual int capture_of(Stream stream, int* status, std::uint64_t* number) = 0;
  // Sets the mode of this thread, and returns the previous one in `mode`.
  virtual int exchange_capture_mode(int* mode) = 0;

  virtual int create_event(Event* event, unsigned flags) = 0;
  virtual int destroy_event(Event event) = 0;
  virtual int record_event(Event event, Stream stream) = 0;
  virtual int query_event(Event event) = 0;  // kNotReady until the stream has reached it
  virtual int wait_event(Stream stream, Event event) = 0;

  // Open mappings, and calls put off. A process has one object for each driver.
  IpcMappings& openings() { return mappings_; }
  DeferredFrees& frees() { return frees_; }

 private:
  IpcMappings mappings_;
  DeferredFrees frees_;
};

}  // namespace kolo::inline v0::cuda
